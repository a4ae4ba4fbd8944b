/* SPDX-License-Identifier: MIT */
/*
 * Messages by which the two ends of a link can follow sends. TRACE asks for rings and offers them,
 * CLOCK compares the clocks of two hosts. Service thread.
 */
#ifndef SHUNT_CORE_PEER_TRACING_H
#define SHUNT_CORE_PEER_TRACING_H

struct shunt_engine;
struct shunt_link;
struct shunt_message;
struct shunt_task;

/* The link is up: if sends are followed, its peer is asked for rings. */
void shunt_tracing_introduce(struct shunt_link *link);
/* A TRACE or a CLOCK: a wrong one ends the link. */
void shunt_tracing_hear(struct shunt_link *link, const struct shunt_message *message);
/* Peers that have not been asked; records to complete; clocks to compare. */
void shunt_tracing_run(struct shunt_task *task);
/* All that is known of what has been read becomes entries of the book. */
void shunt_tracing_settle(struct shunt_engine *engine);

#endif
