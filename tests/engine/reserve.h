/* SPDX-License-Identifier: MIT */
/* Shared by the files of tests/engine/reserve. */
#ifndef TESTS_ENGINE_RESERVE_H
#define TESTS_ENGINE_RESERVE_H

#include "tests/engine/bed.h"
#include "core/qos/monitor.h"
#include "core/qos/pool.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"

#define MS 1000000ull
#define CAPACITY 3051ull /* 100 Mbit/s: tokens a second */

struct shunt_config reserve_config(const char *rules);
struct shunt_link *link_of(int i, int side);
/* Of the first link. */
struct shunt_throttle *throttle_of(int side);
/* Of the node. */
struct shunt_monitor *monitor(void);
struct shunt_qos *node(void);
/* A bed with a clock that stands still. */
void make(const struct shunt_config *config, int pairs);
void set_rules(const char *rules);
/* Nothing that the monitor knows is beyond the capacity. */
void check_ledger(void);
/* A millisecond of all programs: each sends `bytes` at a time while it can. */
void play_ms(int side, size_t bytes);
void play(int side, size_t bytes, int ms);
/* Until the node's next period has begun, and the client has heard of it. */
void next_period(int side, size_t bytes);
/* Until all has arrived that was sent. */
void let_out(void);
/* Without rules all arrives, and the bed ends. */
void end(void);

/* reserve_spoilt.c */
void nonsense_is_distrusted(void **state);
void a_false_page_is_distrusted(void **state);
void any_period_is_obeyed(void **state);
void hostile_reports(void **state);
void a_pool_that_a_client_fills(void **state);

/* reserve_many.c */
void many_clients_come(void **state);

#endif
