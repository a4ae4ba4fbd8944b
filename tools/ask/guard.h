/* SPDX-License-Identifier: MIT */
/*
 * Sockets to doors, which may be anybody's. The process behind a door may send descriptors. A thread that closes a TCP
 * socket with SO_LINGER and unsent bytes waits for as long as the sender likes. So no descriptor is received.
 *
 * Since Linux 6.16 a socket refuses them (SO_PASSRIGHTS). On older kernels each message is looked at before it is
 * received. A socket that may have descriptors in its queue is neither read nor closed here. It is closed by a child that ends:
 * a process that is exiting does not linger.
 */
#ifndef SHUNT_TOOLS_GUARD_H
#define SHUNT_TOOLS_GUARD_H

#include <stddef.h>
#include <sys/types.h>

/* A non-blocking Unix socket, not yet connected. -1: errno says why. */
int shunt_guard_socket(int type);
/*
 * recv() that never waits. -1 with EBADMSG: descriptors have come, and the socket is good for shunt_guard_close() only.
 */
ssize_t shunt_guard_recv(int fd, void *to, size_t room, int flags);
/* An errno as text for people. */
const char *shunt_guard_reason(int error);
/* Never waits. The descriptor may stay open until shunt_guard_settle(). */
void shunt_guard_close(int fd);
/* The end of a look: the descriptors that were left open go. */
void shunt_guard_settle(void);

#endif
