/* SPDX-License-Identifier: MIT */
/* The owner of a link hands streams over to its relatives (core/stream/handover.h). Service thread. */
#ifndef SHUNT_CORE_PEER_FORK_OWNER_H
#define SHUNT_CORE_PEER_FORK_OWNER_H

#include <stdint.h>

struct shunt_engine;
struct shunt_source;
struct shunt_stream;
struct shunt_task;

/* A relative has come: see loop.h. */
void shunt_fork_owner_serve(struct shunt_source *source, uint32_t events);
/*
 * A relative wants this stream; `fd`: its knock, hung up on when it is answered. Takes the caller's
 * hold.
 */
void shunt_fork_owner_asked(struct shunt_engine *engine, struct shunt_stream *stream, int fd);
/* The work of proofs (core/stream/proof.h), and of relatives that have waited for one. */
void shunt_fork_owner_run(struct shunt_task *task);

#endif
