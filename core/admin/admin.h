/* SPDX-License-Identifier: MIT */
/*
 * The control socket of a process, "shunt/adm/IDENTITY": its user and root send a command as one
 * packet and get one back, '+' and what was done or '-' and why not. A silent client costs a
 * descriptor, and the next client but some ends it; nobody is ever waited for. Service thread.
 */
#ifndef SHUNT_CORE_ADMIN_ADMIN_H
#define SHUNT_CORE_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include "core/loop/loop.h"

struct shunt_service;

#define SHUNT_ADMIN_CLIENTS 4

struct shunt_admin_client {
	struct shunt_source source;
	struct shunt_engine *engine;
	int fd;			/* -1: nobody */
	uint64_t number;	/* of those that have come */
};

struct shunt_admin {
	struct shunt_source source;
	int fd;			/* listens; -1: there is no control socket */
	uint64_t came;
	struct shunt_admin_client clients[SHUNT_ADMIN_CLIENTS];
};

/* Offers the socket; where it cannot, there is none. */
void shunt_admin_open(struct shunt_service *service);
void shunt_admin_close(struct shunt_service *service);

#endif
