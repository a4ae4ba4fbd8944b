/* SPDX-License-Identifier: MIT */
/*
 * A user's own place for the names of rendezvous: /run/shunt/UID, where UID is the user of the listening socket. Anybody
 * may take an abstract name (rendezvous.h). In that directory only the user can, so no other user can be in the way.
 * The names have the network namespace's cookie, because several may have one /run.
 *
 * root owns /run/shunt, and it is sticky if others may write in it: then a process makes its user's directory itself.
 * The directory belongs to that user, and no other may write in it. Without one there are abstract names alone. Errors
 * are -errno. rendezvous_lock held, or the service thread.
 */
#ifndef SHUNT_CORE_PEER_USER_DIR_H
#define SHUNT_CORE_PEER_USER_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_name;

struct shunt_user_dir {		/* where an address has its names */
	uid_t user;		/* of the listening socket */
	uint64_t network;	/* SO_NETNS_COOKIE; 0: unknown, there is no such place */
};

/* There are such directories on this machine. */
bool shunt_user_dir_exists(const struct shunt_engine *engine);
/* Of a listening socket of ours. */
void shunt_user_dir_of(struct shunt_engine *engine, int fd, struct shunt_user_dir *where);
/* The directory is as it must be. `make`: and is made, if it is ours and can be. */
bool shunt_user_dir_is_usable(struct shunt_engine *engine, const struct shunt_user_dir *where,
			      bool make);
/* Takes an abstract name's equivalent there: a listening private descriptor. -EADDRINUSE: it has an owner. */
int shunt_user_dir_offer(struct shunt_engine *engine, const struct shunt_user_dir *where,
		     const struct shunt_name *name);
/* The name goes. Its owner calls it, and before the descriptor is closed. */
void shunt_user_dir_withdraw(struct shunt_engine *engine, const struct shunt_user_dir *where,
			 const struct shunt_name *name);
/* A private descriptor that is connected to the name's owner. -ECONNREFUSED: none. */
int shunt_user_dir_connect(struct shunt_engine *engine, const struct shunt_user_dir *where,
		       const struct shunt_name *name);

#endif
