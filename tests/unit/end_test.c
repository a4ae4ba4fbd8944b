/* SPDX-License-Identifier: MIT */
/*
 * The ledger of a stream's end: events by a table, and the reader's answers by another. In all states that any order of
 * events reaches, no known end is forgotten, and an error is told once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include "core/stream/end.h"

#define E(error) ((uint64_t)(error) << 16)
#define KEPT(error) ((uint64_t)(error) << 32)
#define GONE (SHUNT_END_RESET | SHUNT_END_BROKEN)

struct row {
	const char *name;
	uint64_t before;
	enum shunt_end_event event;
	int error;
	uint64_t after;
};

static const struct row rows[] = {
	{ "TCP ends", 0, SHUNT_LEARN_EOF, 0, SHUNT_END_TCP_OVER },
	{ "TCP ends behind what kept a reset back", SHUNT_END_OWES_RESET | GONE, SHUNT_LEARN_EOF, 0, SHUNT_END_TCP_OVER | GONE },
	{ "a reset", 0, SHUNT_LEARN_RESET, ECONNRESET, GONE | E(ECONNRESET) },
	{ "a reset of the other track: the first error counts", GONE | E(EPIPE), SHUNT_LEARN_RESET,
	  ECONNRESET, GONE | E(EPIPE) },
	{ "a reset whose error was told is none again", GONE | SHUNT_END_TOLD, SHUNT_LEARN_RESET,
	  ECONNRESET, GONE | SHUNT_END_TOLD },
	{ "a reset where this end could not send any more", SHUNT_END_BROKEN, SHUNT_LEARN_RESET,
	  EPIPE, GONE | E(EPIPE) },
	{ "a loss", 0, SHUNT_LEARN_LOSS, ECONNRESET, GONE | E(ECONNRESET) },
	{ "a loss names its own error", GONE | E(EPIPE), SHUNT_LEARN_LOSS, ETIMEDOUT,
	  GONE | E(ETIMEDOUT) },
	{ "a suspicion", 0, SHUNT_LEARN_SUSPICION, 0, SHUNT_END_SUSPECT },
	{ "FIN ahead of the proof", 0, SHUNT_LEARN_EARLY_FIN, 0, SHUNT_END_EARLY },
	{ "the proof", SHUNT_END_EARLY, SHUNT_LEARN_PROOF, 0, 0 },
	{ "the link is left",
	  SHUNT_END_SUSPECT | SHUNT_END_EARLY | SHUNT_END_REFUSED | SHUNT_END_TOLD,
	  SHUNT_LEARN_LINK_LEFT, 0, SHUNT_END_TOLD },
	{ "shutdown(SHUT_RD)", 0, SHUNT_LEARN_SHUT_READ, 0, SHUNT_END_SHUT_READ },
	{ "shutdown(SHUT_WR)", SHUNT_END_SHUT_READ, SHUNT_LEARN_SHUT_WRITE, 0, SHUNT_END_SHUT_READ | SHUNT_END_SHUT_WRITE },
	{ "this end resets", 0, SHUNT_LEARN_OWN_RESET, 0, SHUNT_END_BROKEN },
	{ "this end refuses data", 0, SHUNT_LEARN_REFUSAL, 0, SHUNT_END_BROKEN | SHUNT_END_REFUSED },
	{ "a reset is owed", GONE, SHUNT_LEARN_RESET_OWED, 0, GONE | SHUNT_END_OWES_RESET },
	{ "a reset is paid", GONE | SHUNT_END_OWES_RESET, SHUNT_LEARN_RESET_PAID, 0, GONE },
	{ "the error is told", GONE | E(ECONNRESET), SHUNT_LEARN_ERROR_TOLD, 0,
	  GONE | SHUNT_END_TOLD },
	{ "there is no error to tell", GONE, SHUNT_LEARN_ERROR_TOLD, 0, GONE },
	{ "the kernel tells of a reset: the link's RESET may follow", 0, SHUNT_LEARN_KERNEL_TOLD,
	  ECONNRESET, SHUNT_END_BROKEN | SHUNT_END_TOLD },
	{ "the kernel has given up: nobody else tells", 0, SHUNT_LEARN_KERNEL_TOLD, ETIMEDOUT,
	  GONE | SHUNT_END_TOLD },
	{ "the link's RESET behind the kernel's", SHUNT_END_BROKEN | SHUNT_END_TOLD,
	  SHUNT_LEARN_RESET, ECONNRESET, GONE | SHUNT_END_TOLD | E(ECONNRESET) },
	{ "an error before there is a link", 0, SHUNT_LEARN_CANDIDATE_TOLD, 0, SHUNT_END_TOLD },
	{ "recv takes the kernel's reset first", 0, SHUNT_LEARN_KERNEL_RESET, 0, SHUNT_END_TOLD },
	{ "recv takes it behind the link's", GONE | SHUNT_END_TOLD, SHUNT_LEARN_KERNEL_RESET, 0,
	  GONE | SHUNT_END_TOLD | SHUNT_END_TCP_OVER },
	{ "recv takes it before the link's was told", GONE | E(ECONNRESET),
	  SHUNT_LEARN_KERNEL_RESET, 0, GONE | SHUNT_END_TOLD },
	{ "EOF under suspicion", SHUNT_END_SUSPECT | SHUNT_END_TCP_OVER, SHUNT_LEARN_SUSPICION_TOLD,
	  0, SHUNT_END_TCP_OVER | SHUNT_END_TOLD | GONE },
	{ "EOF under suspicion behind SHUT_RD", SHUNT_END_SUSPECT | SHUNT_END_SHUT_READ,
	  SHUNT_LEARN_SUSPICION_TOLD, 0, SHUNT_END_SHUT_READ },
	{ "EOF under suspicion behind a reset", SHUNT_END_SUSPECT | GONE | E(EPIPE),
	  SHUNT_LEARN_SUSPICION_TOLD, 0, GONE | E(EPIPE) },
	{ "EOF under suspicion behind a told error", SHUNT_END_SUSPECT | SHUNT_END_TOLD,
	  SHUNT_LEARN_SUSPICION_TOLD, 0, SHUNT_END_TOLD },
	{ "a send that has moved bytes", SHUNT_END_TOLD | SHUNT_END_BROKEN, SHUNT_LEARN_UNTOLD,
	  ETIMEDOUT, SHUNT_END_BROKEN | E(ETIMEDOUT) },
	{ "connect() anew", SHUNT_END_TOLD, SHUNT_LEARN_UNTOLD, 0, 0 },
	{ "a recv that has moved bytes", GONE, SHUNT_LEARN_KEPT, ECONNRESET,
	  GONE | KEPT(ECONNRESET) },
	{ "the next call", GONE | KEPT(ECONNRESET), SHUNT_LEARN_KEPT_TOLD, 0, GONE },
};

static void events_by_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t after = shunt_end_after(rows[i].before, rows[i].event, rows[i].error);

		if (after != rows[i].after)
			fail_msg("%s: 0x%llx, not 0x%llx", rows[i].name, (unsigned long long)after,
				 (unsigned long long)rows[i].after);
	}
}

static void each_event_has_a_row(void **state)
{
	bool seen[SHUNT_END_EVENTS] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		seen[rows[i].event] = true;
	for (int event = 0; event < SHUNT_END_EVENTS; event++)
		if (!seen[event])
			fail_msg("no row for event %d", event);
}

/* The answer of recv() with nothing to read. The end is at 10 where it is known. */
struct saying {
	uint64_t word, fin, head;
	bool by_link;
	enum shunt_end_due due;
};

static const struct saying sayings[] = {
	{ 0, SHUNT_NEVER, 10, true, SHUNT_END_OPEN },
	{ 0, 10, 10, true, SHUNT_END_EOF },
	{ 0, 10, 9, true, SHUNT_END_OPEN },
	{ SHUNT_END_EARLY, 10, 10, true, SHUNT_END_OPEN },
	{ SHUNT_END_SHUT_READ, SHUNT_NEVER, 3, false, SHUNT_END_EOF },
	{ GONE | E(ECONNRESET), SHUNT_NEVER, 3, true, SHUNT_END_ERROR },
	{ GONE | E(ECONNRESET), SHUNT_NEVER, 3, false, SHUNT_END_OPEN }, /* bytes may be unread in TCP */
	{ GONE | E(ECONNRESET) | SHUNT_END_TCP_OVER, SHUNT_NEVER, 3, false, SHUNT_END_ERROR },
	{ GONE | E(EPIPE), 10, 10, true, SHUNT_END_EOF },
	{ GONE | SHUNT_END_TOLD, SHUNT_NEVER, 3, true, SHUNT_END_ERROR }, /* with no error left: EOF again and again */
	{ SHUNT_END_BROKEN, SHUNT_NEVER, 3, true, SHUNT_END_OPEN },
};

static void reader_by_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sayings) / sizeof(*sayings); i++) {
		struct shunt_end end = { .word = sayings[i].word, .fin = sayings[i].fin };
		enum shunt_end_due due = shunt_end_due(&end, sayings[i].head, sayings[i].by_link);

		if (due != sayings[i].due)
			fail_msg("row %zu: %d, not %d", i, due, sayings[i].due);
	}
}

/* All states that any order of events reaches, from a new stream on. */
#define STATES (1 << 16)

static uint64_t packed(uint64_t word) /* an error is there or not: which one makes no state */
{
	return (word & 0x3ff) | (uint64_t) !!shunt_end_error_of(word) << 10 |
	       (uint64_t) !!shunt_end_kept_of(word) << 11;
}

static void invariants_hold_in_all_states(void **state)
{
	static uint64_t queue[STATES];
	static bool seen[STATES];
	size_t count = 1;

	(void)state;
	seen[0] = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = queue[i];

		/* A peer's end that is gone takes no bytes, and an error to tell makes poll() report it. */
		if (word & SHUNT_END_RESET)
			assert_true(word & SHUNT_END_BROKEN);
		for (int event = 0; event < SHUNT_END_EVENTS; event++) {
			uint64_t after = shunt_end_after(word, event, ECONNRESET),
				 index = packed(after);

			assert_int_equal(after & ~(0x3ffull | E(0xffff) | KEPT(0xffff)), 0);
			/* These are never forgotten. */
			assert_int_equal(word &
						 (GONE | SHUNT_END_TCP_OVER | SHUNT_END_SHUT_READ |
						  SHUNT_END_SHUT_WRITE) &
						 ~after,
					 0);
			/* Once told, and not untold, no other error is told but a loss's or another reset's. */
			if (word & SHUNT_END_TOLD && event != SHUNT_LEARN_UNTOLD)
				assert_true(after & SHUNT_END_TOLD);
			if (!seen[index]) {
				seen[index] = true;
				queue[count++] = after;
			}
		}
	}
	print_message("%zu states\n", count);
}

static void *learns(void *arg)
{
	struct shunt_end *end = arg;

	for (int i = 0; i < 20000; i++) {
		shunt_end_learn(end, SHUNT_LEARN_KEPT, i % 100 + 1);
		shunt_end_learn(end, SHUNT_LEARN_KEPT_TOLD, 0);
	}
	return NULL;
}

/* Events under different locks do not undo each other. */
static void threads_lose_no_event(void **state)
{
	struct shunt_end end;
	pthread_t thread;
	uint64_t told = 0;

	(void)state;
	shunt_end_begin(&end);
	assert_int_equal(end.fin, SHUNT_NEVER);
	assert_int_equal(pthread_create(&thread, NULL, learns, &end), 0);
	for (int i = 0; i < 20000; i++) {
		shunt_end_learn(&end, SHUNT_LEARN_UNTOLD, ECONNRESET);
		if (shunt_end_error_of(shunt_end_learn(&end, SHUNT_LEARN_ERROR_TOLD, 0)) ==
		    ECONNRESET)
			told++;
	}
	pthread_join(thread, NULL);
	assert_int_equal(told, 20000);
	assert_int_equal(end.word, SHUNT_END_TOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_by_table),
		cmocka_unit_test(each_event_has_a_row),
		cmocka_unit_test(reader_by_table),
		cmocka_unit_test(invariants_hold_in_all_states),
		cmocka_unit_test(threads_lose_no_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
