/* SPDX-License-Identifier: MIT */
/*
 * Engines of two users, in some seeds: each connection is proven before it is claimed. A hash of the seed chooses, and
 * everything here, so all other seeds are what they were.
 */
#ifndef SIM_TRUST_H
#define SIM_TRUST_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_sys;

void sim_trust_choose(uint64_t seed);
bool sim_trust_chosen(void);
/* The surroundings of that engine. */
const struct shunt_sys *sim_trust_sys(int which);
/* Between two steps of the play: a proof is a conversation, and connections are short. */
void sim_trust_serve(void);
/* After each step. A program may read or set an option; all options that are in no proof are the programs'. */
void sim_trust_step(void);
/* After the seed: no proof is left, and all options are the programs'. */
void sim_trust_check(void);
/* Connections that were proven, by both ends. */
uint64_t sim_trust_proven(void);

#endif
