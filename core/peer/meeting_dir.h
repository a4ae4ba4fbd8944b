/* SPDX-License-Identifier: MIT */
/*
 * A directory that processes of several network namespaces mount, and the sockets in it (SHUNT_DIR). Its path is
 * absolute, and the directory is checked whenever it is opened. Root or the process's user owns it, and if others may
 * write in it, it is sticky. A socket is reached by an O_PATH descriptor that follows no link, and bound below
 * /proc/self/fd, so the path may be long. A socket's further names are hard links.
 *
 * A name stays when its owner has ended. A process that wants the name removes it with the directory's flock, for
 * which it does not wait. Everything else in the directory is anybody's: a name is a hint. Errors are -errno. Service
 * thread, except shunt_meeting_dir_drop().
 */
#ifndef SHUNT_CORE_PEER_MEETING_DIR_H
#define SHUNT_CORE_PEER_MEETING_DIR_H

#include <stdbool.h>
#include <sys/types.h>

struct shunt_engine;

/* Names begin so: with an address and port behind it, and with the identity of a process. */
#define SHUNT_MEETING_TCP "tcp-"
#define SHUNT_MEETING_LINK "link-"
#define SHUNT_MEETING_ENTRIES 1024	/* of the directory that are looked at, at most */

/* A private descriptor of the directory. -EPERM: its owner or mode is not as it must be. */
int shunt_meeting_dir_open(struct shunt_engine *engine, const char *path);
/*
 * The same of a user's directory in one of root's, which is sticky if others may write in it.
 * `user` owns the directory, and no other may write in it. `list`: it is for names to be taken.
 */
int shunt_meeting_dir_open_of(struct shunt_engine *engine, const char *above, const char *path,
			      uid_t user, bool list);
/* Takes the name, for any user to connect to: a listening private descriptor. */
int shunt_meeting_dir_listen(struct shunt_engine *engine, int dir, const char *name);
/* The same; a name whose owner has ended is taken, too. */
int shunt_meeting_dir_take(struct shunt_engine *engine, int dir, const char *name);
/*
 * One more name for the socket of ours. -EADDRINUSE: it has an owner; -EAGAIN: another process is removing names that
 * have none.
 */
int shunt_meeting_dir_link(struct shunt_engine *engine, int dir, const char *socket,
			   const char *name);
/* A name of the socket goes, if it is one; the socket's own last. */
void shunt_meeting_dir_drop(int dir, const char *socket, const char *name);
/*
 * A private descriptor connected to the name's owner. -ECONNREFUSED: nobody whom we may reach has; -ENODEV: the
 * directory cannot be used.
 */
int shunt_meeting_dir_connect(struct shunt_engine *engine, const char *path, const char *name);
/* The same in an open directory. */
int shunt_meeting_dir_reach(struct shunt_engine *engine, int dir, const char *name);
/* Removes names of our user whose owners have ended; root those of all users. */
void shunt_meeting_dir_sweep(struct shunt_engine *engine, int dir);

#endif
