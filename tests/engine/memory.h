/* SPDX-License-Identifier: MIT */
/* Shared by the files of tests/engine/memory: time that goes by, and the memory of a link. */
#ifndef SHUNT_TESTS_ENGINE_MEMORY_H
#define SHUNT_TESTS_ENGINE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include "tests/engine/bed.h"

#define M (1 << 20)
#define SECOND 1000000000ull

void serve_one(int i);
/* A thread of the process waits for something else, and polls for it. */
void hear_one(int i);
/* No program sends or receives. */
void serve(void);
/* So many seconds in which nothing is sent or received. */
void pass(int seconds);
void close_all(void);
/* Memory regions beside that of the control lines. */
uint32_t blocks(int i);
/* Pages of rings that are backed by memory. */
size_t resident(int i);

/* --- shrink.c --- */

void an_idle_ring_shrinks(void **state);
void a_ring_in_use_stays(void **state);
void an_idle_ring_has_no_pages(void **state);
void a_ring_of_one_way_has_no_pages(void **state);
void pages_of_a_closed_stream_are_not_inherited(void **state);
void a_ring_that_stays(void **state);
void idle_rings_take_little_room(void **state);
void a_sender_with_staged_bytes(void **state);
void a_send_before_the_offer_is_heard(void **state);
void a_send_after_the_offer_is_heard(void **state);
void the_end_during_an_offer(void **state);
void what_nobody_reads_is_kept(void **state);
void offers_that_are_none(void **state);

#endif
