/* SPDX-License-Identifier: MIT */
/* The parts of following sends that know no stream: the offset of another host's clock, sends that wait, records that came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/clock.h"
#include "core/trace/followed.h"
#include "core/trace/pending.h"
#include "tests/sim/random.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

uint64_t sim_random_state;

/* --- clocks --- */

/* Another host's clock: ahead by `ahead` at our time 0, and `ppm` faster. */
struct host {
	int64_t ahead, ppm;
};

static uint64_t their_time(const struct host *host, uint64_t ours)
{
	return (uint64_t)((int64_t)ours + host->ahead + (int64_t)ours / 1000000 * host->ppm);
}

/* A question at `now` and its answer, with these times on the way. Returns when the answer has come. */
static uint64_t ask(struct shunt_clock *clock, const struct host *host, uint64_t now,
		    uint64_t there, uint64_t inside, uint64_t back)
{
	uint64_t heard = their_time(host, now + there),
		 told = their_time(host, now + there + inside);

	assert_true(shunt_clock_sample(clock, now, heard, told, now + there + inside + back));
	return now + there + inside + back;
}

/* The offset is known at `now`, and off by no more than is said. Returns that. */
static uint64_t check(const struct shunt_clock *clock, const struct host *host, uint64_t now)
{
	int64_t offset, off;
	uint64_t error;

	assert_true(shunt_clock_read(clock, now, &offset, &error));
	off = (int64_t)(their_time(host, now) + (uint64_t)offset - now);
	assert_true((uint64_t)llabs(off) <= error);
	return error;
}

static void the_error_is_as_it_is_said(void **state)
{
	sim_random_state = 7;
	(void)state;
	for (int run = 0; run < 2000; run++) {
		struct host host = { (int64_t)sim_between(0, 1 << 30) * 1000 - (1ll << 39),
				     sim_between(0, 200) - 100 };
		struct shunt_clock clock = { 0 };
		uint64_t now = (1ull << 40) + (uint64_t)sim_between(0, 1 << 30);

		for (int n = 0; n < 40; n++) {
			/* Queues lengthen one way, or the other, or both. */
			uint64_t there = 10000 +
					 (sim_one_in(2) ? (uint64_t)sim_between(0, 5 << 20) : 0);
			uint64_t back = 10000 +
					(sim_one_in(2) ? (uint64_t)sim_between(0, 5 << 20) : 0);

			now = ask(&clock, &host, now, there, (uint64_t)sim_between(0, 1 << 20),
				  back);
			check(&clock, &host, now);
			now += (uint64_t)sim_between(1, 500) * MS;
			check(&clock, &host, now);
		}
	}
}

static void the_shortest_way_counts(void **state)
{
	struct host host = { -5 * (int64_t)SECOND, 0 };
	struct shunt_clock clock = { 0 };
	uint64_t now = 100 * SECOND;

	(void)state;
	now = ask(&clock, &host, now, 5 * MS, 0, 1 * MS);
	assert_in_range(check(&clock, &host, now), 3 * MS, 3 * MS + 2000);
	now = ask(&clock, &host, now, 20000, MS, 20000); /* its own time does not count for the way */
	assert_in_range(check(&clock, &host, now), 20000, 20000 + 10);
	now = ask(&clock, &host, now, 5 * MS, 0, 5 * MS);
	assert_in_range(check(&clock, &host, now), 20000, 20000 + 10 + 10 * MS / SHUNT_CLOCK_DRIFT);
	/* The best of all is forgotten by and by: later ones are better then. */
	for (int n = 0; n < SHUNT_CLOCK_SAMPLES; n++)
		now = ask(&clock, &host, now + 250 * MS, 50000, 0, 50000);
	assert_in_range(check(&clock, &host, now), 50000, 50000 + 10);
}

static void times_that_cannot_be_are_refused(void **state)
{
	struct shunt_clock clock = { 0 };
	int64_t offset;
	uint64_t error;

	(void)state;
	assert_false(shunt_clock_sample(&clock, 100, 50, 40, 200)); /* told before it was heard */
	assert_false(shunt_clock_sample(&clock, 100, 50, 151, 200)); /* longer than we waited */
	assert_false(shunt_clock_sample(&clock, 200, 50, 50, 100));
	assert_false(shunt_clock_sample(&clock, 100, UINT64_MAX - 10, UINT64_MAX, 200));
	assert_false(shunt_clock_read(&clock, 100, &offset, &error));
	assert_true(shunt_clock_sample(&clock, 100, 0, 0, 200));
	assert_true(shunt_clock_read(&clock, 200, &offset, &error));
	assert_int_equal(offset, 150);
	assert_int_equal(error, 51);
}

/* --- sends that wait --- */

static bool add(struct shunt_pendings *pendings, uint64_t end)
{
	uint32_t dropped;

	return shunt_pendings_add(
		pendings, &(struct shunt_pending) { .id = end, .end = end, .called = 1 }, &dropped);
}

static void sends_come_out_by_their_ends(void **state)
{
	struct shunt_pendings pendings = { .lock = SHUNT_LOCK(PENDINGS) };
	struct shunt_pending pending;
	uint32_t dropped;

	(void)state;
	assert_int_equal(shunt_pendings_end(&pendings), UINT64_MAX);
	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t n = 1; n <= SHUNT_TRACE_PENDING; n++)
			assert_true(add(&pendings, round * 100 + n));
		assert_false(add(&pendings, round * 100 + 50));
		for (uint64_t n = 1; n <= SHUNT_TRACE_PENDING; n++) {
			assert_false(shunt_pendings_take(&pendings, round * 100 + n - 1, &pending));
			assert_true(shunt_pendings_take(&pendings, round * 100 + n, &pending));
			assert_int_equal(pending.id, round * 100 + n);
		}
		assert_false(shunt_pendings_any(&pendings));
	}
	/* A send that did not end where it said gives way to the next. */
	assert_true(add(&pendings, 1000));
	assert_true(
		shunt_pendings_add(&pendings, &(struct shunt_pending) { .end = 600 }, &dropped));
	assert_int_equal(dropped, 1);
	assert_int_equal(shunt_pendings_drop(&pendings), 1);
}

static void a_send_in_vain_is_withdrawn(void **state)
{
	struct shunt_pendings pendings = { .lock = SHUNT_LOCK(PENDINGS) };
	struct shunt_pending pending;

	(void)state;
	assert_true(add(&pendings, 10));
	shunt_pendings_accept(&pendings, 5);
	assert_false(shunt_pendings_withdraw(&pendings)); /* bytes of it were taken */
	assert_true(add(&pendings, 20));
	assert_true(shunt_pendings_withdraw(&pendings));
	assert_true(shunt_pendings_take(&pendings, 20, &pending));
	assert_int_equal(pending.accepted, 5);
	assert_false(shunt_pendings_take(&pendings, 20, &pending));
	shunt_pendings_accept(&pendings, 5);
	assert_false(shunt_pendings_withdraw(&pendings));
}

/* --- records that came --- */

static struct shunt_trace_record ring[SHUNT_TRACE_SLOTS];
static struct shunt_trace_book *book;
static struct shunt_followed *followed;

static int make(void **state)
{
	(void)state;
	memset(ring, 0, sizeof(ring));
	book = shunt_trace_book_make();
	followed = shunt_followed_make(book, ring, 42);
	return !book || !followed;
}

static int unmake(void **state)
{
	(void)state;
	free(followed);
	free(book);
	return 0;
}

static void write_record(uint64_t number, uint64_t end, uint64_t at)
{
	ring[number % SHUNT_TRACE_SLOTS] = (struct shunt_trace_record) {
		.number = number,
		.id = number,
		.end = end,
		.stream = 1,
		.bytes = 10,
		.called = at,
		.posted = at + 1,
	};
}

/* Takes what there is at `now`. */
static void look(uint64_t now)
{
	struct shunt_trace_record record;

	while (shunt_followed_next(followed, &record))
		shunt_followed_tell(followed, &record, now);
}

static void stages_are_in_order(void **state)
{
	struct shunt_trace *trace = &book->of[0];
	uint64_t id;

	(void)state;
	write_record(1, 100, 1000);
	look(2000);
	assert_int_equal(shunt_followed_see(followed, 1, 99, 2000, 0), 0);
	assert_int_equal(shunt_followed_see(followed, 2, 100, 2100, 0), 0); /* another stream's */
	assert_int_equal(shunt_followed_see(followed, 1, 100, 2200, 0), 100);
	assert_int_equal(shunt_followed_read(followed, 1, 100, 7, 2300, &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(book->entries, 0); /* when it was placed may still be told, */
	ring[1].posted = 1500;
	ring[1].placed = 9000; /* and be later than it was seen */
	shunt_followed_settle(followed, 0);
	assert_int_equal(book->entries, 1);
	assert_int_equal(trace->called, 1000);
	assert_int_equal(trace->posted, 1500);
	assert_int_equal(trace->placed, 2200);
	assert_int_equal(trace->seen, 2200);
	assert_int_equal(trace->read, 2300);
	assert_int_equal(trace->peer, 42);
	assert_int_equal(trace->fd, 7);
}

/* A completion that waited for the sender's poll says nothing; one that did not, says at least that much. */
static void a_late_completion_says_nothing(void **state)
{
	uint64_t id;

	(void)state;
	for (uint64_t n = 1; n <= 2; n++) {
		write_record(n, n * 100, 1000);
		look(2000);
		shunt_followed_see(followed, 1, n * 100, 2000, 0);
		ring[n].placed = (n == 1 ? 2000 : 1500) | SHUNT_TRACE_LATEST;
		shunt_followed_read(followed, 1, n * 100, 7, 2300, &id);
	}
	assert_int_equal(book->entries, 2);
	assert_int_equal(book->of[0].placed, 0);
	assert_int_equal(book->of[1].placed, 1500);
}

/* A send that ends nowhere is not looked for at each arrival for ever. */
static void a_last_byte_that_never_comes(void **state)
{
	(void)state;
	write_record(1, 100, 1000);
	look(2000);
	assert_int_equal(shunt_followed_see(followed, 1, 99, 60 * SECOND, 0), 0);
	assert_int_equal(__builtin_popcountll(followed->told), 1);
	assert_int_equal(shunt_followed_see(followed, 2, 99, 61 * SECOND, 0), 0);
	assert_int_equal(followed->told, 0);
	assert_int_equal(atomic_load(&book->counts[SHUNT_TRACE_UNREAD]), 1);
}

static void another_clock_is_translated(void **state)
{
	uint64_t id;

	(void)state;
	followed->zone = (struct shunt_trace_zone) { .offset = -500, .error = 50, .at = 1000 };
	write_record(1, 100, 2000); /* ours: 1500, 1501 */
	look(1460); /* earlier than that, by less than the error */
	assert_int_equal(shunt_followed_see(followed, 1, 100, 1460, 0), 100);
	shunt_followed_read(followed, 1, 100, 7, 1460, &id);
	shunt_followed_settle(followed, UINT64_MAX);
	assert_int_equal(book->entries, 1);
	assert_int_equal(book->of[0].posted, 1460);
	assert_int_equal(book->of[0].error, 50);
	assert_int_equal(book->of[0].placed, 0);
	write_record(2, 200, 2100);
	look(1500); /* by more: refused */
	assert_int_equal(shunt_followed_see(followed, 1, 200, 1500, 0), 0);
	assert_int_equal(atomic_load(&book->counts[SHUNT_TRACE_REFUSED]), 1);
}

static void a_link_that_held_it_back_had_it(void **state)
{
	uint64_t id;

	(void)state;
	write_record(1, 100, 1000);
	look(7000);
	ring[1].placed = 1002;
	shunt_followed_see(followed, 1, 100, 7000, 6000);
	shunt_followed_read(followed, 1, 100, 7, 7000, &id);
	assert_int_equal(book->of[0].placed, 6000);
}

/* Records of any content: never more entries than records, and none out of order. */
static void anything_may_be_written(void **state)
{
	uint64_t id, tail = 0, now = 1 << 20;

	(void)state;
	sim_random_state = 11;
	for (int n = 0; n < 200000; n++) {
		uint64_t *words = (uint64_t *)&ring[sim_below(SHUNT_TRACE_SLOTS)];

		now += (uint64_t)sim_below(100);
		switch (sim_below(6)) {
		case 0:
			words[sim_below(8)] = sim_random() >> sim_below(64);
			break;
		case 1:
			words[0] = followed->next + (uint64_t)sim_below(3);
			break;
		case 2:
			write_record(followed->next, tail + (uint64_t)sim_below(50),
				     now - (uint64_t)sim_below(50));
			break;
		case 3:
			tail += (uint64_t)sim_below(50);
			look(now);
			shunt_followed_see(followed, 1, tail, now, now - (uint64_t)sim_below(5));
			break;
		case 4:
			shunt_followed_read(followed, 1, tail, 7, now, &id);
			break;
		default:
			shunt_followed_settle(followed, now - 1000);
			if (sim_one_in(100))
				shunt_followed_forget(followed, 1);
		}
	}
	assert_true(book->entries > 1000);
	for (int i = 0; i < SHUNT_TRACE_KEPT; i++) {
		const struct shunt_trace *trace = &book->of[i];

		assert_true(trace->called <= trace->posted && trace->posted <= trace->seen &&
			    trace->seen <= trace->read);
		assert_true(!trace->placed ||
			    (trace->posted <= trace->placed && trace->placed <= trace->seen));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_error_is_as_it_is_said),
		cmocka_unit_test(the_shortest_way_counts),
		cmocka_unit_test(times_that_cannot_be_are_refused),
		cmocka_unit_test(sends_come_out_by_their_ends),
		cmocka_unit_test(a_send_in_vain_is_withdrawn),
		cmocka_unit_test_setup_teardown(stages_are_in_order, make, unmake),
		cmocka_unit_test_setup_teardown(a_late_completion_says_nothing, make, unmake),
		cmocka_unit_test_setup_teardown(a_last_byte_that_never_comes, make, unmake),
		cmocka_unit_test_setup_teardown(another_clock_is_translated, make, unmake),
		cmocka_unit_test_setup_teardown(a_link_that_held_it_back_had_it, make, unmake),
		cmocka_unit_test_setup_teardown(anything_may_be_written, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
