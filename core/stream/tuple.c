/* SPDX-License-Identifier: MIT */
#include "core/stream/tuple.h"
#include <errno.h>
#include <netinet/in.h>
#include "core/base/address.h"
#include "core/fd/own_fds.h"

int shunt_tuple_of(const struct shunt_sys *sys, int fd, struct shunt_tuple *tuple)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (sys->getsockname(fd, (struct sockaddr *)&address, &length))
		return -errno;
	if (shunt_address_of(&address, tuple->local, &tuple->local_port))
		return -EAFNOSUPPORT;
	length = sizeof(address);
	if (sys->getpeername(fd, (struct sockaddr *)&address, &length))
		return -errno;
	return shunt_address_of(&address, tuple->peer, &tuple->peer_port);
}

/* The peer's address is one of this host's: it can be bound. */
static bool can_bind(struct shunt_fds *fds, const uint8_t address[16])
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	bool local = false;
	int fd;

	memcpy(&v6.sin6_addr, address, 16);
	shunt_own_fds_begin(fds);
	fd = fds->sys->socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		local = fds->sys->bind(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0;
		fds->sys->close(fd);
	}
	shunt_own_fds_end(fds);
	return local;
}

bool shunt_tuple_is_local(struct shunt_fds *fds, const struct shunt_tuple *tuple)
{
	if (!memcmp(tuple->local, tuple->peer, 16))
		return true;
	if (shunt_address_is_v4(tuple->peer) && tuple->peer[12] == 127)
		return true;
	return can_bind(fds, tuple->peer);
}
