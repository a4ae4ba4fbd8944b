/* SPDX-License-Identifier: MIT */
/*
 * Two engines of two users: a claimant's and an acceptor's. Each proves that it holds a connection
 * before the other gives it anything (core/peer/possession.h). make_strangers() sets back what a
 * test has changed here.
 */
#ifndef TESTS_ENGINE_USERS_H
#define TESTS_ENGINE_USERS_H

#include "tests/engine/bed.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include "core/peer/possession.h"
#include "core/peer/witness.h"

#define CLAIMANT 0
#define ACCEPTOR 1
#define FOREVER 400	/* steps until nothing moves any more */
#define AS_MADE (SHUNT_WITNESS_MC_ALL | SHUNT_WITNESS_MC_LOOP)	/* the options of a new socket */

extern uint32_t refused_for[2];	/* why engine i has refused last, + 1 */
extern bool is_blind;	/* engine 1 has no witness */
extern bool is_elsewhere;	/* engine 1's sockets are not those that its witness sees */
extern in_port_t replaced;	/* engine 1's witness shows another socket of that port; 0: none */

/* Two new engines. No pair yet. */
void make_strangers(void);
void step(int i);
void settle(void);
int links_of(int i);
uint64_t proven(int i);
uint64_t disproven(int i);
/* Wrong proofs that engine i counts against the other's user, once none is in doubt. */
uint32_t wrong(int i);
/* The options that a witness sees, as SHUNT_WITNESS_ bits. */
uint8_t options_of(int fd);
void set_options(int fd, uint8_t bits);
/* A connection whose end `unknown` no engine knows. The program of the other engine has used it. */
struct pair half_known(int unknown);
void close_pair(struct pair *pair);
/* Nothing of a proof is left, and the link may be. */
void assert_clean(int i);

/* The door of a middleman: engine 0 comes there, whatever name it looks for. */
void make_door(void);
void close_door(void);
/* The channel of the next that has come to the door, or -1. */
int come(void);

#endif
