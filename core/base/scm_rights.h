/* SPDX-License-Identifier: MIT */
/* Descriptors that travel with a packet over a Unix socket (SCM_RIGHTS). */
#ifndef SHUNT_CORE_BASE_SCM_RIGHTS_H
#define SHUNT_CORE_BASE_SCM_RIGHTS_H

#include <stdbool.h>
#include <sys/socket.h>

struct shunt_sys;

/* Puts them beside the packet, in `space`: CMSG_SPACE of so many, all zero. None: it goes alone. */
void shunt_scm_rights_attach(struct msghdr *header, char *space, const int *fds, int count);

/*
 * Descriptors that have come with a packet. The caller gets the first `most`; others are closed.
 * How many. There may be more than `space` was meant for, because its padding has room, too.
 */
int shunt_scm_rights_take(const struct shunt_sys *sys, struct msghdr *header, int *fds, int most);

/*
 * Has the packet that waits first descriptors? The packet stays in the queue and keeps them, so nothing is closed here.
 * The last close of a stranger's socket or file takes as long as the stranger likes. `named`: the socket has
 * SO_PASSCRED. 1: it has none; 0: no packet; -EBADMSG: it has some; another -errno: the peer is gone. No other thread
 * receives from the socket.
 */
int shunt_scm_rights_look(const struct shunt_sys *sys, int fd, bool named);

#endif
