/* SPDX-License-Identifier: MIT */
#include "tests/sim/names.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>

#define PATH offsetof(struct sockaddr_un, sun_path)

/* By chance, not by PID: processes of two PID namespaces may have the same, and may share their names. */
static uint64_t own(void)
{
	static uint64_t number;

	while (!number)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			number = 0;
	return number;
}

/* The address to use in place of this one, which is in `out` if it is not this one. NULL: it is too long. */
static const struct sockaddr *private_name(const struct sockaddr *address, socklen_t *length, struct sockaddr_un *out)
{
	const struct sockaddr_un *name = (const struct sockaddr_un *)address;
	int before;

	if (address->sa_family != AF_UNIX || *length <= PATH + 1 || name->sun_path[0])
		return address;
	*out = (struct sockaddr_un) { .sun_family = AF_UNIX };
	before = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "%016" PRIx64 "/", own());
	if (*length + (socklen_t)before > sizeof(*out))
		return NULL;
	memcpy(out->sun_path + 1 + before, name->sun_path + 1, *length - PATH - 1);
	*length += (socklen_t)before;
	return (struct sockaddr *)out;
}

int sim_names_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_un own_name;
	const struct sockaddr *name = private_name(address, &length, &own_name);

	if (name)
		return bind(fd, name, length);
	errno = ENAMETOOLONG;
	return -1;
}

int sim_names_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_un own_name;
	const struct sockaddr *name = private_name(address, &length, &own_name);

	if (name)
		return connect(fd, name, length);
	errno = ENAMETOOLONG;
	return -1;
}
