/* SPDX-License-Identifier: MIT */
/*
 * The control socket of a process, "shunt/adm/IDENTITY": its user and root send a command as one packet. The answer
 * is packets of at most SHUNT_ADMIN_PACKET bytes: '+' and what was done, or '-' and why not. Packets of '*' and text,
 * which goes on in the next packet, come before that. A silent client costs a descriptor, and the next client but
 * some ends it; nobody is ever waited for. Service thread.
 */
#ifndef SHUNT_CORE_ADMIN_ADMIN_H
#define SHUNT_CORE_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>
#include "core/loop/loop.h"

struct shunt_service;

#define SHUNT_ADMIN_CLIENTS 4
#define SHUNT_ADMIN_PACKET 4097	/* the first byte says whether it is the last one */

struct shunt_admin_client {
	struct shunt_source source;
	struct shunt_engine *engine;
	int fd;			/* -1: nobody */
	uint64_t number;	/* of those that have come */
	char sign;		/* of the last packet */
	bool keeps; /* behind that the connection is the listener's (dump.h) */
	char *text;		/* what is still to be sent begins at `sent`; malloc'ed, or NULL: the command is awaited */
	size_t length, sent;
};

struct shunt_admin {
	struct shunt_source source;
	int fd;			/* listens; -1: there is no control socket */
	uint64_t came;
	struct shunt_admin_client clients[SHUNT_ADMIN_CLIENTS];
};

/* Offers the socket, if that is possible. */
void shunt_admin_open(struct shunt_service *service);
void shunt_admin_close(struct shunt_service *service);

#endif
