/* SPDX-License-Identifier: MIT */
#include "core/stream/tuple.h"
#include <errno.h>
#include "core/base/address.h"
#include "core/engine.h"

int shunt_tuple_of(struct shunt_engine *engine, int fd, struct shunt_tuple *tuple)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (engine->sys->getsockname(fd, (struct sockaddr *)&address, &length))
		return -errno;
	if (shunt_address_of(&address, tuple->local, &tuple->local_port))
		return -EAFNOSUPPORT;
	length = sizeof(address);
	if (engine->sys->getpeername(fd, (struct sockaddr *)&address, &length))
		return -errno;
	return shunt_address_of(&address, tuple->peer, &tuple->peer_port);
}
