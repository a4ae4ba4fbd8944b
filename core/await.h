/* SPDX-License-Identifier: MIT */
/*
 * Waits for completions that only Shunt waits for: the service thread's while a lane has work (watch.h),
 * and that of exit() for what was sent.
 */
#ifndef SHUNT_CORE_AWAIT_H
#define SHUNT_CORE_AWAIT_H

#include <stdint.h>

struct shunt_engine;
struct shunt_service;

/*
 * Before the service thread sleeps for `timeout_ms` (-1: for ever): where completions must be waited for, it
 * does that here, also for its sources. Milliseconds for which it may sleep then. No lock held.
 */
int shunt_await_completions(struct shunt_service *service, int timeout_ms);
/* At exit: until all that was sent has been given to the device, but not beyond `until`. No lock held. */
void shunt_await_drained(struct shunt_engine *engine, uint64_t until);

#endif
