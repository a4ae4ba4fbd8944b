/* SPDX-License-Identifier: MIT */
/*
 * An engine on real sockets, with a clock of our own. For the tests of channels, of the gate and of
 * processes that share an address.
 */
#ifndef UNIT_SOCKETS_H
#define UNIT_SOCKETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/engine.h"

#define MS 1000000ull

extern uint64_t clock_ns;
extern size_t at_most;	/* bytes that one sendmsg or recvmsg moves; 0: as many as it likes */
extern bool full;	/* sendmsg finds no room */
extern struct shunt_engine *engine;

/* Before each test: an engine, and sockets that work. */
int set_up(void **state);
/* Open ones. */
int descriptors(void);

struct shunt_message hello(void);
/* A message without descriptors, as shunt_channel_receive() tells it. */
int take(struct shunt_channel *channel, struct shunt_message *message);
/* Until a message has come: a stream may need several calls. */
int take_whole(struct shunt_channel *channel, struct shunt_message *message);

#endif
