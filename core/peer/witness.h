/* SPDX-License-Identifier: MIT */
/*
 * The kernel as witness (sock_diag(7)). It shows every process of a network namespace any TCP socket there, by its
 * exact addresses. The answer has the socket's user, a cookie that no other socket ever has, and the state of some of
 * its options. Only a process that holds the socket can change those, so it can be asked to (possession.h). The
 * kernel also shows the two ends of a Unix channel, which makes a proof good for that channel alone.
 *
 * The answers are of the namespace in which the witness was called, the service thread's. Errors are -errno: there is
 * no witness (an old kernel, a policy that forbids AF_NETLINK, no descriptor). Service thread.
 */
#ifndef SHUNT_CORE_PEER_WITNESS_H
#define SHUNT_CORE_PEER_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "shunt/wire.h"

struct shunt_links;
struct shunt_service;

/* Options of a socket that mean nothing to a connected TCP socket, and that the kernel shows. */
#define SHUNT_WITNESS_FREEBIND 1	/* IP_FREEBIND */
#define SHUNT_WITNESS_NO_PORT 2		/* IP_BIND_ADDRESS_NO_PORT */
#define SHUNT_WITNESS_MC_ALL 4		/* IP_MULTICAST_ALL */
#define SHUNT_WITNESS_MC_LOOP 8		/* IP_MULTICAST_LOOP */
#define SHUNT_WITNESS_BITS 4

#define SHUNT_WITNESS_BATCH 32		/* questions that the kernel gets at once */

struct shunt_witness {
	int fd;			/* a netlink socket, ours; -1: none yet */
	uint32_t sequence;	/* of the last question */
	pid_t process;		/* whose inode is known; 0: none's */
	uint64_t inode;
};

/* The kernel's answer about a socket. */
struct shunt_sighting {
	bool seen;		/* false: there is no connection that has these addresses */
	bool established;	/* neither end has said that it ends */
	uint8_t bits;		/* SHUNT_WITNESS_* */
	uid_t user;		/* of the socket, as our user namespace names it */
	uint64_t cookie;
};

/*
 * Looks for the sockets whose ends have these addresses, as their owners see them. 0: `seen` is filled in. Any number;
 * SHUNT_WITNESS_BATCH of them cost two system calls and one for each answer.
 */
int shunt_witness_look(struct shunt_service *service, const struct shunt_tuple tuples[],
		       struct shunt_sighting seen[], uint32_t count);
/*
 * The peer's end of the stream's connection, whose addresses are known, is not in the network namespace. It is in
 * another, or the addresses are translated on the way. False also where there is no witness.
 */
bool shunt_witness_misses(struct shunt_service *service, const struct shunt_tuple *own);
/* The user of the socket that listens at the connection's far end. False: the kernel shows none. */
bool shunt_witness_listener(struct shunt_service *service, const struct shunt_tuple *own,
			    uid_t *user);
/* The inodes of a connected Unix socket's own end and of its peer's, which has been accepted. */
int shunt_witness_channel(struct shunt_service *service, int fd, uint32_t ends[2]);
/*
 * The inodes of the processes at both ends of a connected Unix socket, our own first. Since Linux 6.9 no other process
 * ever has the same (pidfs). Before that all have one, and before 6.5 it is 0.
 */
int shunt_witness_processes(struct shunt_service *service, int fd, uint64_t processes[2]);
/* See `sent_nothing` of struct shunt_links. */
bool shunt_witness_sent_nothing(struct shunt_links *links, int fd);
/* Also in a fork's child. */
void shunt_witness_dismiss(struct shunt_service *service);

/* Reads the kernel's answer, from the message on: for the fuzzer. False: it is no sighting. */
bool shunt_witness_read(const void *message, size_t bytes, const struct shunt_tuple *tuple,
			struct shunt_sighting *seen);

#endif
