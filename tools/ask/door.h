/* SPDX-License-Identifier: MIT */
/*
 * Finding shunted processes. Each has doors, sockets of abstract names "shunt/SERVICE/IDENTITY"
 * (docs/dev/PROTOCOL.md, "Names"), and the kernel says who listens at a door. Anybody may take a name
 * of that form, so the name proves nothing. A door's owner is known once it has let us in.
 */
#ifndef SHUNT_TOOLS_DOOR_H
#define SHUNT_TOOLS_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SHUNT_DOOR_IDENTITY 33	/* bytes: 32 hexadecimal digits and a 0 */
#define SHUNT_DOOR_TEXT 64	/* bytes for shunt_door_text() */

/* Reasons for people. */
#define SHUNT_DOOR_SILENT "it gave no answer (stopped, or not yours?)"
#define SHUNT_DOOR_STOPPED "it is stopped, by a signal or a debugger, and answers when it goes on"
#define SHUNT_DOOR_NO_ROOT "it is in another user namespace, which has no root to ask as"

struct shunt_door {
	char identity[SHUNT_DOOR_IDENTITY];	/* "": none is known */
	bool met;	/* it has let us in, so the next is known */
	pid_t pid;	/* of the process that listens, as seen from here; 0: it has none here */
	uid_t user;	/* who made the socket, and once it is met the user of the process; -1: not known */
	unsigned long inode;
};

#define SHUNT_DOOR_NOBODY ((uid_t)-1)
#define SHUNT_DOOR_UNHEARD 0.3	/* seconds until those that have not answered are looked at: shunt_door_stopped() */
#define SHUNT_DOOR_CROWDED 1.0	/* seconds for which doors that let nobody in are tried again, where none is named */
#define SHUNT_DOOR_STRANGE 2.0	/* seconds for which other users' processes are waited for, where none is named */

struct shunt_doors {
	struct shunt_door *door;
	size_t count;
};

/*
 * All doors of this network namespace for a service, "stat" or "adm"; `type`: of their sockets. Those of our own user and
 * of root come first. With `count` processes that are wanted, doors that are known to be of others are left out, and so
 * are those of one stranger beyond SHUNT_BUDGET_DOORS. 0, or -errno of /proc/net/unix.
 */
int shunt_door_list(const char *service, int type, const struct shunt_door *wanted, size_t count,
		    struct shunt_doors *doors);
/* The users of all doors, as far as the kernel tells (sock_diag(7)). */
void shunt_door_users(struct shunt_doors *doors);
/*
 * A non-blocking connection to a door whose process lives, and is of our user or root's, or we are
 * root. Else -errno, and the reason in `why`. -EAGAIN: too many clients have come just now.
 * -EMFILE: we have too few descriptors.
 */
int shunt_door_try(struct shunt_door *door, const char *service, int type, char *why, size_t len);
/*
 * The same from inside the user namespace of the door's process, as its root. There the root of an
 * outer namespace has no number by which it would be known. Tells -ENOENT where that helps nothing:
 * we are not root, or the process is in our user namespace.
 */
int shunt_door_enter(struct shunt_door *door, const char *service, int type);
/* Its process is stopped: there is no answer to wait for. */
bool shunt_door_stopped(const struct shunt_door *door);

/*
 * A process id or an identity, as a person gives it, as a door to be looked for. False: it is
 * neither.
 */
bool shunt_door_parse(const char *word, struct shunt_door *wanted);
/*
 * Could that door be of the process that is wanted? A door that has not let us in might be any
 * process's.
 */
bool shunt_door_may_match(const struct shunt_door *wanted, const struct shunt_door *door);
/* Is it? */
bool shunt_door_matches(const struct shunt_door *wanted, const struct shunt_door *door);
/* "17", or the identity where the process has no number here. Returns buf. */
const char *shunt_door_text(const struct shunt_door *door, char buf[SHUNT_DOOR_TEXT]);
/*
 * Why the door that is wanted is not among those that were asked; `shut`: some of them let nobody
 * in.
 */
const char *shunt_door_absence(const struct shunt_door *wanted, bool shut);

#endif
