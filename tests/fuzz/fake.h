/* SPDX-License-Identifier: MIT */
/* Descriptors that are only numbers, and an engine around calls that the fuzzer writes itself: no system call. */
#ifndef FUZZ_FAKE_H
#define FUZZ_FAKE_H

#include "core/engine.h"
#include "tests/fuzz/fuzz.h"

#define FAKE_FDS 512	/* numbers there are */

extern struct shunt_sys fake_sys;	/* close, fcntl and now are there; the rest is the fuzzer's */
extern uint64_t fake_clock;
extern bool fake_full;			/* no number is free */

struct shunt_engine *fake_engine(void);
/* A new number, or -1 and errno. */
int fake_open(void);
bool fake_is_open(int fd);
int fake_count(void);

#endif
