/* SPDX-License-Identifier: MIT */
/* The entries and counts of the book (core/trace/book.h) as JSON, for the command `trace`. */
#ifndef SHUNT_CORE_ADMIN_TRACE_SHOW_H
#define SHUNT_CORE_ADMIN_TRACE_SHOW_H

struct shunt_answer;
struct shunt_engine;

/* The book has all sends that count until now. Takes streams_lock. */
void shunt_trace_settle(struct shunt_engine *engine);
/* 0; or -1, and one line. */
int shunt_trace_show(struct shunt_engine *engine, struct shunt_answer *answer);

#endif
