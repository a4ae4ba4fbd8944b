/* SPDX-License-Identifier: MIT */
/* TCP sockets of a network namespace, as /proc/PID/net/tcp and tcp6 have them, and the processes that hold them. */
#ifndef SHUNT_TOOLS_SOCKETS_H
#define SHUNT_TOOLS_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SHUNT_SOCKET_ADDRESS (INET6_ADDRSTRLEN + 8)

struct shunt_socket {
	char local[SHUNT_SOCKET_ADDRESS],
		peer[SHUNT_SOCKET_ADDRESS]; /* as `shunt stat` writes them */
	int state; /* TCP_ESTABLISHED and its like */
	uid_t user;
	unsigned long inode; /* 0: no process holds it */
	int fd; /* of the process, with shunt_sockets_of() */
};

struct shunt_sockets {
	struct shunt_socket *of;
	size_t count;
};

/* All of the process's network namespace. They cannot be read: none. */
void shunt_sockets_read(pid_t pid, struct shunt_sockets *sockets);
/* Keeps the connections that the process holds; each once. */
void shunt_sockets_of(pid_t pid, struct shunt_sockets *sockets);
void shunt_sockets_free(struct shunt_sockets *sockets);
/* The connection with these addresses, or NULL. */
const struct shunt_socket *shunt_sockets_find(const struct shunt_sockets *sockets,
					      const char *local, const char *peer);

/* A descriptor of a socket. */
struct shunt_holder {
	unsigned long inode;
	pid_t pid;
	int fd;
};
struct shunt_holders {
	struct shunt_holder *of; /* in ascending order of inodes */
	size_t count;
};
/* Of all processes whose descriptors this user may see. */
void shunt_holders_read(struct shunt_holders *holders);
void shunt_holders_free(struct shunt_holders *holders);
/* The first process that holds the socket, and in *count how many do; 0: none that is visible. */
pid_t shunt_holders_find(const struct shunt_holders *holders, unsigned long inode, size_t *count);

#endif
