/* SPDX-License-Identifier: MIT */
/*
 * The names of a process where others come in for anything but connections: readers of statistics,
 * clients of the control socket, relatives. Service thread, or while it does not run.
 */
#ifndef SHUNT_CORE_ADMIN_LOCAL_SOCKETS_H
#define SHUNT_CORE_ADMIN_LOCAL_SOCKETS_H

struct shunt_service;

/*
 * 0, or -errno: a child of a fork could not have back what is on a link. The engine has an
 * identity, and the page of fork_slots.h.
 */
int shunt_local_sockets_open(struct shunt_service *service);
/* Also in a fork's child. */
void shunt_local_sockets_close(struct shunt_service *service);

#endif
