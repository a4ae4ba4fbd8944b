/* SPDX-License-Identifier: MIT */
/*
 * The second word of a slot (fork_slots.h): whether the owner has used its stream since a fork, and which relative has
 * taken it meanwhile (core/stream/rest.h). Ending a rest and taking the stream are each one compare-and-swap, so one of
 * the two comes first. Any thread of any relative.
 */
#ifndef SHUNT_CORE_FORK_FORK_REST_H
#define SHUNT_CORE_FORK_FORK_REST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shunt_fork_slot;

/* The count of the rest that would begin now; 0: none can, because a relative has taken the stream or it rests. */
uint64_t shunt_fork_rest_next(const struct shunt_fork_slot *slot);
/* The owner's stream rests: before a fork. */
void shunt_fork_rest_begin(struct shunt_fork_slot *slot, uint64_t rest);
/* The owner is about to use the stream. False: a relative has taken it. */
bool shunt_fork_rest_end(struct shunt_fork_slot *slot);
/* The stream is the owner's, also if a relative has tried; or the slot has been taken for a new stream. */
void shunt_fork_rest_revoke(struct shunt_fork_slot *slot);
/* A relative has taken the stream, or is about to. `slot`: NULL: no. */
bool shunt_fork_rest_is_taken(const struct shunt_fork_slot *slot);
/* The process `pid` takes the stream, which is in the rest with this count. False: its owner has used it, or another has taken it. */
bool shunt_fork_rest_take(struct shunt_fork_slot *slot, uint64_t rest, pid_t pid);

#endif
