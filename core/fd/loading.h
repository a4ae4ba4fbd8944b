/* SPDX-License-Identifier: MIT */
/*
 * A fork waits for RDMA libraries. While the service thread loads one, opens a device or speaks with the connection
 * manager, it holds locks of libc's loader and of the libraries. A child that is forked then has those locks for
 * ever, and half-loaded libraries. Its own dlopen() may hang or find symbols missing, and so may the program's. So a
 * fork begins when no thread is inside such a library, and until it is over no thread enters one.
 *
 * Neither waits longer than ten seconds. A constructor of a library that the program loads may fork while the service
 * thread waits for that very loader.
 */
#ifndef SHUNT_CORE_FD_LOADING_H
#define SHUNT_CORE_FD_LOADING_H

struct shunt_fds;

struct shunt_loading {
	_Atomic unsigned int inside; /* threads that are in libraries */
	_Atomic unsigned int forking; /* threads that are in fork() */
};

/* Around calls of the libraries that may load, or take locks of more than one device. May be nested. Any thread. */
void shunt_loading_begin(struct shunt_fds *fds);
void shunt_loading_end(struct shunt_fds *fds);

/* Around a fork, in the parent; no lock is held. */
void shunt_loading_wait(struct shunt_fds *fds);
void shunt_loading_parted(struct shunt_fds *fds);
/* In its child, which has no other threads. */
void shunt_loading_forget(struct shunt_fds *fds);

#endif
