/* SPDX-License-Identifier: MIT */
/*
 * How packets of a link go to another host: by which device, and with what the fabric wants a queue
 * pair to know. A device that is not open yet is opened. A course needs a device. Service thread.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_COURSE_H
#define SHUNT_CORE_PEER_REMOTE_COURSE_H

#include "core/link/channel.h"

struct cm_route;
struct shunt_engine;
struct shunt_have;

/* By the route that the connection manager, or the directory, has told. */
struct shunt_course shunt_remote_course(struct shunt_engine *engine, const struct cm_route *route);
/* By the one that the owner of our address has told in its INVITE. */
struct shunt_course shunt_remote_course_invited(struct shunt_engine *engine,
						const struct shunt_have *have);

#endif
