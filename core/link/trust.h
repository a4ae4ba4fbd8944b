/* SPDX-License-Identifier: MIT */
/*
 * May the process at the other end of a Unix socket be linked? Two processes of one host are linked
 * if each of them could ptrace the other (ptrace(2), "access mode checking"). Such a peer needs no
 * lie: it could take the sockets and the memory themselves. So what it states, a connection's tuple
 * for one, needs no proof, and no socket of a program is ever passed.
 *
 * Each process asks this about its peer, at every use. The kernel says that we could trace the peer: /proc/PID/ns/ can be
 * read (PTRACE_MODE_READ), and we may attach (core/base/attach.h). That the peer could trace us follows from the rule: its
 * user, group and capabilities, and nothing of ours that forbids it. Both are to see each other: one user namespace, one
 * PID namespace.
 *
 * The kernel says nothing about the other direction. Without Yama it is the same. With Yama a process may attach to its
 * descendants, which may not attach to it. Then only CAP_SYS_PTRACE is believed, which both have or neither.
 */
#ifndef SHUNT_CORE_LINK_TRUST_H
#define SHUNT_CORE_LINK_TRUST_H

#include <stdbool.h>
#include <sys/socket.h>
#include "core/base/reason.h"

struct shunt_fds;
struct shunt_sys;

/*
 * 0 if our own user could trace us: the process is dumpable, and its real, effective and saved ids
 * are equal. Otherwise -ENOKEY: it gets no links. `self` is ours to tell a peer.
 */
int shunt_trust_self(const struct shunt_sys *sys, struct ucred *self);

/* The peer as of connect() or listen(), from the kernel. False: none. */
bool shunt_trust_peer(const struct shunt_sys *sys, int fd, struct ucred *peer);
/*
 * 0: the process at the other end of the socket may be linked. Otherwise -errno, see
 * shunt_trust_reason().
 */
int shunt_trust_ask(struct shunt_fds *fds, int fd);
/*
 * May it read statistics and give commands? Root may, and a process that could read /proc/PID of ours (PTRACE_MODE_READ).
 * Yama has no say in that: its processes could also kill us.
 */
bool shunt_trust_commands(struct shunt_fds *fds, int fd);
/* Why it may not, of those errors; none: it is another error. */
enum shunt_cause shunt_trust_reason(int error);

#endif
