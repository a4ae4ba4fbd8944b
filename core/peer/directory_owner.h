/* SPDX-License-Identifier: MIT */
/*
 * Which process of this host is to answer a question to the directory (directory.h): this one, or the owner of the
 * address's rendezvous. The owner hears the question where its co-listeners come in (listener_owner.h). Service thread.
 */
#ifndef SHUNT_CORE_PEER_DIRECTORY_OWNER_H
#define SHUNT_CORE_PEER_DIRECTORY_OWNER_H

#include <shunt/wire.h>

struct shunt_engine;
struct shunt_rendezvous;

/*
 * `asked`: the address asked for, and the asker's. `asker`: its socket, for the network namespace. Returns a private
 * connection to the owner, which may be a stranger (porter.h). With -EALREADY this process is the owner, of `*ours`.
 * With -ECONNREFUSED no process of this host listens there. Or another -errno: the owner cannot be reached.
 */
int shunt_directory_owner_find(struct shunt_engine *engine, int asker,
			       const struct shunt_tuple *asked, struct shunt_rendezvous **ours);

#endif
