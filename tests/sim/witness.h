/* SPDX-License-Identifier: MIT */
/*
 * The kernel as witness, scripted (core/peer/witness.h): what sock_diag would say of the script's sockets. The
 * descriptor is a real netlink socket, and the real kernel answers for Unix sockets: the channels are real ones.
 */
#ifndef SIM_WITNESS_H
#define SIM_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct sim_sock;

/* The options of a scripted socket that the witness shows, as bits (core/peer/witness.h): as it is made. */
#define SIM_OPTIONS_FIRST 0xc
#define SIM_OPTIONS 4

/* The bit of IP_FREEBIND and its kind; -1: another option. */
int sim_witness_bit(int level, int name);
/* SO_COOKIE of a scripted socket. */
uint64_t sim_witness_cookie(struct sim_sock *sock);
/* A message to the kernel, not to a peer: so is one that is to be received. */
bool sim_witness_is_asked(const struct msghdr *message);
/* As sendmsg(), recvmsg() on its descriptor. */
ssize_t sim_witness_send(int fd, const struct msghdr *message, int flags);
ssize_t sim_witness_receive(int fd, struct msghdr *message, int flags);

#endif
