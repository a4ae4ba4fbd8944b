/* SPDX-License-Identifier: MIT */
/*
 * Programs that connect for each request, in some seeds: connections that both ends have closed are used again
 * (core/stream/spare.h). A hash of the seed chooses, so all other seeds are what they were.
 */
#ifndef SIM_BORN_H
#define SIM_BORN_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_config;
struct sim_conn;
struct sim_end;

void sim_born_choose(uint64_t seed);
void sim_born_config(struct shunt_config *config);
/* The listener of that engine, which is made, waits for connections in its own style. */
void sim_born_listen(int which);
/* Plans both ends of a connection. */
void sim_born_plan(struct sim_conn *conn);
/* The program connects: by a spare, or the kernel. */
void sim_born_open(struct sim_conn *conn, uint8_t *rings[2]);
/* The kernel has made a connection, which waits for accept(). */
void sim_born_queued(struct sim_conn *conn);
/* One step of who listens, of ends that are through, or of what goes wrong. */
void sim_born_step(void);
/* The accepting end does not live yet: its program does what it can. True: it got somewhere. */
bool sim_born_wait(struct sim_end *end);
/* epoll reports this. False: it is no listener. */
bool sim_born_told(int which, const void *data, uint32_t events);
/* Is the end through, in the manner of one that closes without a shutdown? */
bool sim_born_is_through(const struct sim_end *end);
/* Listeners that are open. */
int sim_born_listeners(void);
/* Births so far. */
uint64_t sim_born_count(void);
/* After the seed: what a process that was killed has left is put away. */
void sim_born_bury(void);

#endif
