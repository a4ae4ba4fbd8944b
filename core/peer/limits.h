/* SPDX-License-Identifier: MIT */
/*
 * What one peer may cost: links, time until it introduces itself, claims that wait, places among
 * those who tell what they have. docs/PROTOCOL.md has the numbers. What is beyond them is refused,
 * and said once.
 */
#ifndef SHUNT_CORE_PEER_LIMITS_H
#define SHUNT_CORE_PEER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_LINKS_PER_PROCESS 256	/* accepted links; usual is one for each name */
#define SHUNT_TELLERS_PER_PROCESS 64	/* at our names for co-listeners; usual is one for each */
#define SHUNT_PARKED_PER_LINK 16384	/* claims whose connections our program has not used yet */
#define SHUNT_HELLO_NS 5000000000ull	/* that who comes may take to say HELLO */

struct shunt_engine;
struct shunt_link;
struct shunt_service;
struct shunt_task;

/* One more of a peer, which has `count` already. False: it is refused. Service thread. */
bool shunt_limits_allow(struct shunt_service *service, uint32_t pid, uint32_t count, uint32_t most,
			const char *what);
/* One more link over the channel `fd`. Service thread. */
bool shunt_limits_link(struct shunt_service *service, int fd);
/* Ends links without a HELLO. */
void shunt_limits_run(struct shunt_task *task);

#endif
