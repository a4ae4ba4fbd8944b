/* SPDX-License-Identifier: MIT */
/*
 * The hostile peer of peer.c, as a script wants it. Messages and WRs of its engine are changed on their way. Others are its
 * own: messages, arrivals, words in shared memory, records.
 */
#ifndef FUZZ_HOSTILE_H
#define FUZZ_HOSTILE_H

#include <stdbool.h>
#include "tests/fuzz/world.h"

struct shunt_link;

/* The world of world.h, with a hostile peer whom the script leads. The script outlives it. */
void hostile_begin(struct fuzz_input *script);
/* Some of its engine's next messages, or WRs, are changed. */
void hostile_changes_messages(void);
void hostile_changes_wrs(void);
/* None is from now on. */
void hostile_is_honest(void);
/* One of the connections that the script draws. */
struct fuzz_conn *hostile_conn(void);

/* By its link, out of turn: a message of its channel; `traced`: both engines follow sends. */
void hostile_message(struct shunt_link *link, bool traced);
/* A message of its queue pair. */
void hostile_arrival(struct shunt_link *link);
/* A word of the victim's segment, or of its own. */
void hostile_scribble(struct shunt_link *link, bool own);
/* A record of a send that the victim follows. */
void hostile_record(void);

#endif
