/* SPDX-License-Identifier: MIT */
/*
 * Our Unix sockets (unix(7)): each door of a process, and each connection to one. A name is abstract: text without
 * the leading zero byte, shorter than SHUNT_ENDPOINT_NAME. A path is one of the file system, of the same size. No lock.
 */
#ifndef SHUNT_CORE_LOOP_ENDPOINT_H
#define SHUNT_CORE_LOOP_ENDPOINT_H

#include <sys/socket.h>
#include <sys/un.h>

struct shunt_porter;

#define SHUNT_ENDPOINT_NAME sizeof(((struct sockaddr_un *)0)->sun_path)

/* The address of a name; returns its length. */
socklen_t shunt_endpoint_address(const char *name, struct sockaddr_un *address);
/* Takes the name, guarded (porter.h): a listening private descriptor, or -errno. */
int shunt_endpoint_listen(struct shunt_porter *porter, const char *name, int type, int backlog);
/*
 * A private descriptor that is connected to the name's owner and guarded (porter.h), or -errno. Its calls do not block;
 * connecting does not either. -EAGAIN: the owner's queue is full.
 */
int shunt_endpoint_connect(struct shunt_porter *porter, const char *name, int type);

/* The same at a path. -EADDRINUSE: there is a file of that name. */
int shunt_endpoint_listen_at(struct shunt_porter *porter, const char *path, int type, int backlog);
/* -EPROTOTYPE: the path's socket is of another type, so it has an owner; -ECONNREFUSED: its owner has ended. */
int shunt_endpoint_connect_at(struct shunt_porter *porter, const char *path, int type);

#endif
