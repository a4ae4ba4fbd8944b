/* SPDX-License-Identifier: MIT */
/*
 * Does any other process hold a socket of ours? The kernel keeps no such count, but /proc has the descriptors of each
 * process that we may read, with the inode of each socket.
 *
 * - A process that cannot be read is a doubt. The exception is another user's process that is no relative of ours, if our
 *   user has made the socket. New holders come from former ones, so a process of our user would have given it away.
 *   Relatives are ancestors, descendants and those of the same session.
 * - There is no answer without a /proc of our own PID namespace that shows all processes, nor where an ancestor is outside
 *   of it. A look that takes more than 100 ms has none, either.
 * - A descriptor that lies in the queue of a Unix socket is not seen. A holder outside the PID namespace is not, either.
 *   Bytes that those write or read past a link are noticed (core/stream/bypass.h).
 * - A descriptor may move from one process to another during a look. So a socket has only one holder if two looks say so.
 */
#ifndef SHUNT_CORE_FORK_SOLE_H
#define SHUNT_CORE_FORK_SOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_fds;

enum shunt_sole {
	SHUNT_SOLE_YES,
	SHUNT_SOLE_HELD,	/* another process has it, or this one by a number or an epoll set that is not in the table */
	SHUNT_SOLE_UNSEEN,	/* a process that cannot be looked at may have it */
};

/* A socket that is asked about. */
struct shunt_sole_socket {
	int fd;			/* one of its numbers, in the table */
	uint64_t inode;
	uid_t user;		/* who has made it */
	enum shunt_sole sole;	/* the answer */
};

/* False: the number is not open. */
bool shunt_sole_ask(int fd, struct shunt_sole_socket *socket);
/* Answers for all. It takes some system calls for each process, and one for each descriptor of it. Of locks only seats_lock is held. */
void shunt_sole_look(struct shunt_fds *fds, struct shunt_sole_socket *sockets, unsigned int count);

#endif
