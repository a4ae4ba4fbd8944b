/* SPDX-License-Identifier: MIT */
/*
 * The silent part of a client: it takes tokens from the node's pool by FETCH_AND_ADD (HA-06…08), and writes reports
 * (HA-10). Both are work requests of the link's first lane that take no receive of the node's. The service thread
 * posts them; the node's program and its service thread take no notice.
 *
 * A fetch. A client's service thread posts the FETCH_AND_ADD on the first lane, beside the bytes (core/qos/fetch.c).
 * It does so when a quarter of a batch is left, so the lane does not wait for it. A page of pool words is lent to
 * each link of a domain (core/device/page.h). Where the device's atomics are not the processor's, the monitor changes
 * the word through a queue pair to itself.
 */
#ifndef SHUNT_CORE_QOS_FETCH_H
#define SHUNT_CORE_QOS_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct shunt_message;
struct shunt_task;
struct shunt_throttle;

enum shunt_fetch_state {
	SHUNT_FETCH_IDLE, /* there are tokens, or nobody needs any */
	SHUNT_FETCH_WANTED, /* few are left: the service thread fetches more */
	SHUNT_FETCH_POSTED, /* the answer is due */
	SHUNT_FETCH_EMPTY, /* the pool had none: it is asked again at `at`, if somebody still waits */
};

/* Service thread, except `state`, which any thread takes from IDLE to WANTED. */
struct shunt_fetch {
	_Atomic uint8_t state;
	bool reachable; /* there is a pool: its word has */
	uint64_t address; /* this address, as the device calls it, */
	uint32_t rkey; /* and this key */
	uint32_t batch;
	uint64_t number; /* of the work request that is under way */
	uint64_t at; /* ns: when to look again */
	uint64_t pause; /* ns: the last wait for an empty pool */
	_Atomic uint64_t fetches; /* that were answered with tokens, in all; statistics */
	bool asked; /* reports are wanted until the period ends */
	uint64_t report, report_at; /* the last one, and ns of the next */
	uint64_t report_number; /* of its work request */
	uint64_t posted; /* bytes of data, at the last look for a report */
	_Atomic uint64_t reports; /* written, in all; statistics */
};

/* Few tokens are left. Any thread. True: nobody has said so before; the service thread is to look. */
bool shunt_fetch_want(struct shunt_fetch *fetch);
/* A period has begun: what was empty may be full. */
void shunt_fetch_begin(struct shunt_fetch *fetch, uint32_t batch, uint64_t now);
/* Does the fetch, the answer and the report that are due. `task` is told when to look again. */
void shunt_fetch_run(struct shunt_throttle *throttle, struct shunt_task *task, uint64_t now);

#endif
