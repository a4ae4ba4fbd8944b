/* SPDX-License-Identifier: MIT */
/* A window in which the accesses of a counting build are noted (lines.c). Programs find these with dlsym(3). */
#ifndef TESTS_BENCH_LINES_H
#define TESTS_BENCH_LINES_H

/* The kind of call that the calling thread makes from now on. */
enum lines_kind { LINES_OTHER, LINES_SEND, LINES_RECEIVE, LINES_WAIT, LINES_KINDS };

/* Threads call these while no thread is in the library: a barrier of the program's stands before each. */
void lines_begin(void);
void lines_end(void);
/* A call of this kind begins; with LINES_OTHER the last one has ended. */
void lines_call(enum lines_kind kind);
/* Appends all that was noted to a file, for lines.py. */
void lines_write(const char *path);

#endif
