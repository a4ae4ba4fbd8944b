/* SPDX-License-Identifier: MIT */
/* An engine whose askers seem to come from another host, and its directory: shared by the directory's tests. */
#ifndef SHUNT_TESTS_UNIT_DIRECTORY_BED_H
#define SHUNT_TESTS_UNIT_DIRECTORY_BED_H

#include <netinet/in.h>
#include "core/peer/directory.h"
#include "core/peer/directory_ask.h"
#include "tests/unit/sockets.h"

#define STEPS 1000
#define WORDS "a question" /* which the directory only carries */

extern struct shunt_directory directory;

/* The last answer that this engine was asked for, how many there were, and whether it refuses them. */
extern struct shunt_rendezvous *answered_by;
extern struct shunt_tuple answered_for;
extern int answers;
extern bool says_nothing;

extern const uint8_t outside[16];	/* where askers seem to come from */
extern const uint8_t loopback[16];
extern bool within; /* askers come from where they come from */

/* A test's setup. */
int begin(void **state);
uint16_t port_of(int fd);
/* The directory is at this port; 0: at any. */
void open_at(uint16_t port);
/* The directory and the engine do what there is to do. */
void step(void);

/* A listener of the program, its rendezvous, and its end. */
int listen_on(in_addr_t address);
struct shunt_rendezvous *offer(int fd);
void withdraw(int fd);

/* A connection over loopback to `port`. */
struct shunt_tuple to(uint16_t port);
/* The directory `at` is asked for the listener at `port`. */
void begin_ask(struct shunt_directory_ask *ask, uint16_t port, uint16_t at);
/* The result, after as many steps as it takes; 0: there is none. */
int end_ask(struct shunt_directory_ask *ask);
int ask_for(uint16_t port);

#endif
