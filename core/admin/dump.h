/* SPDX-License-Identifier: MIT */
/*
 * The listener of a process: `shunt dump`, which gets the bytes of streams (core/trace/tap.h). It gives the command
 * `dump`, and keeps its connection to the control socket. On that it sends memory as one packet with a descriptor, is
 * answered as to a command, and has the streams from then on. The tap ends with the connection. There is one listener
 * at a time. Service thread.
 */
#ifndef SHUNT_CORE_ADMIN_DUMP_H
#define SHUNT_CORE_ADMIN_DUMP_H

#include "core/loop/loop.h"

struct shunt_answer;
struct shunt_engine;
struct shunt_service;
struct shunt_tap;

struct shunt_dump {
	struct shunt_source source;
	int fd; /* of the listener, or -1 */
	struct shunt_tap *tap; /* NULL: no memory has come. Without a listener: threads may still be at work with it */
};

/* A row of the table of commands (command.c): 0 and the number of the layout, or -1. */
int shunt_dump_command(struct shunt_engine *engine, int count, char **words,
		       struct shunt_answer *answer);
/* The connection that has given it, with its answer sent. Its loop has it. */
void shunt_dump_hold(struct shunt_service *service, int fd);

/* The service thread begins, perhaps anew; and it ends, or is a fork's parent's. */
void shunt_dump_open(struct shunt_service *service);
void shunt_dump_close(struct shunt_service *service);
void shunt_dump_run(struct shunt_task *task);

#endif
