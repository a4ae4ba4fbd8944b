/* SPDX-License-Identifier: MIT */
#include "core/loop/endpoint.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "core/base/sys.h"
#include "core/loop/loop.h"
#include "core/fd/own_fds.h"
#include "core/loop/porter.h"

socklen_t shunt_endpoint_address(const char *name, struct sockaddr_un *address)
{
	size_t bytes = strnlen(name, sizeof(address->sun_path) - 1);

	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int endpoint_make(struct shunt_porter *porter, int type)
{
	return shunt_own_fds_make(
		porter->loop->fds,
		porter->loop->fds->sys->socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static int endpoint_fail(struct shunt_porter *porter, int fd)
{
	int result = -errno;

	shunt_own_fds_close(porter->loop->fds, fd);
	return result;
}

static socklen_t address_of_path(const char *path, struct sockaddr_un *address)
{
	size_t bytes = strnlen(path, sizeof(address->sun_path) - 1);

	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + 1);
}

static int endpoint_listen_at(struct shunt_porter *porter, const struct sockaddr_un *address,
			      socklen_t length, int type, int backlog)
{
	int fd = endpoint_make(porter, type);

	if (fd < 0)
		return fd;
	shunt_porter_guard(porter, fd);
	if (porter->loop->fds->sys->bind(fd, (const struct sockaddr *)address, length) ||
	    porter->loop->fds->sys->listen(fd, backlog))
		return endpoint_fail(porter, fd);
	return fd;
}

static int connect_to(struct shunt_porter *porter, const struct sockaddr_un *address,
		      socklen_t length, int type)
{
	int fd = endpoint_make(porter, type);

	if (fd < 0)
		return fd;
	shunt_porter_guard(porter, fd);
	if (porter->loop->fds->sys->connect(fd, (const struct sockaddr *)address, length))
		return endpoint_fail(porter, fd);
	return fd;
}

int shunt_endpoint_listen(struct shunt_porter *porter, const char *name, int type, int backlog)
{
	struct sockaddr_un address;
	socklen_t length = shunt_endpoint_address(name, &address);

	return endpoint_listen_at(porter, &address, length, type, backlog);
}

int shunt_endpoint_connect(struct shunt_porter *porter, const char *name, int type)
{
	struct sockaddr_un address;
	socklen_t length = shunt_endpoint_address(name, &address);

	return connect_to(porter, &address, length, type);
}

int shunt_endpoint_listen_at(struct shunt_porter *porter, const char *path, int type, int backlog)
{
	struct sockaddr_un address;
	socklen_t length = address_of_path(path, &address);

	return endpoint_listen_at(porter, &address, length, type, backlog);
}

int shunt_endpoint_connect_at(struct shunt_porter *porter, const char *path, int type)
{
	struct sockaddr_un address;
	socklen_t length = address_of_path(path, &address);

	return connect_to(porter, &address, length, type);
}
