/* SPDX-License-Identifier: MIT */
#include "core/loop/endpoint.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "core/base/sys.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/loop/porter.h"

socklen_t shunt_endpoint_address(const char *name, struct sockaddr_un *address)
{
	size_t bytes = strnlen(name, sizeof(address->sun_path) - 1);

	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static int endpoint_make(struct shunt_engine *engine, int type)
{
	return shunt_own_fds_make(&engine->fds, engine->sys->socket(AF_UNIX, type | SOCK_CLOEXEC |
							      SOCK_NONBLOCK, 0));
}

static int endpoint_fail(struct shunt_engine *engine, int fd)
{
	int result = -errno;

	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

static socklen_t address_of_path(const char *path, struct sockaddr_un *address)
{
	size_t bytes = strnlen(path, sizeof(address->sun_path) - 1);

	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + 1);
}

static int endpoint_listen_at(struct shunt_engine *engine, const struct sockaddr_un *address,
			      socklen_t length, int type, int backlog)
{
	int fd = endpoint_make(engine, type);

	if (fd < 0)
		return fd;
	shunt_porter_guard(engine, fd);
	if (engine->sys->bind(fd, (const struct sockaddr *)address, length) ||
	    engine->sys->listen(fd, backlog))
		return endpoint_fail(engine, fd);
	return fd;
}

static int connect_to(struct shunt_engine *engine, const struct sockaddr_un *address,
		      socklen_t length, int type)
{
	int fd = endpoint_make(engine, type);

	if (fd < 0)
		return fd;
	shunt_porter_guard(engine, fd);
	if (engine->sys->connect(fd, (const struct sockaddr *)address, length))
		return endpoint_fail(engine, fd);
	return fd;
}

int shunt_endpoint_listen(struct shunt_engine *engine, const char *name, int type, int backlog)
{
	struct sockaddr_un address;
	socklen_t length = shunt_endpoint_address(name, &address);

	return endpoint_listen_at(engine, &address, length, type, backlog);
}

int shunt_endpoint_connect(struct shunt_engine *engine, const char *name, int type)
{
	struct sockaddr_un address;
	socklen_t length = shunt_endpoint_address(name, &address);

	return connect_to(engine, &address, length, type);
}

int shunt_endpoint_listen_at(struct shunt_engine *engine, const char *path, int type, int backlog)
{
	struct sockaddr_un address;
	socklen_t length = address_of_path(path, &address);

	return endpoint_listen_at(engine, &address, length, type, backlog);
}

int shunt_endpoint_connect_at(struct shunt_engine *engine, const char *path, int type)
{
	struct sockaddr_un address;
	socklen_t length = address_of_path(path, &address);

	return connect_to(engine, &address, length, type);
}
