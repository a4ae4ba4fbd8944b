/* SPDX-License-Identifier: MIT */
/*
 * Sends that are followed: is an injected delay in the stage where it was injected, to the nanosecond, and in no other?
 * The clock of both engines stands still but for what a test adds. Then what a peer may write that cannot be right.
 */
#include "tests/engine/bed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/admin/command.h"
#include "core/admin/trace_show.h"
#include "core/base/answer.h"
#include "core/device/fault.h"
#include "core/device/soft/soft.h"
#include "core/lane/fault_device.h"
#include "core/peer/hear.h"
#include "core/peer/mock.h"
#include "core/peer/tracing.h"
#include "core/service.h"
#include "core/trace/followed.h"
#include "core/trace/pending.h"

#define MS 1000000ull
#define DELAY (5 * MS)

/* Stages of an entry, in ns. */
struct stages {
	uint64_t credit, link, poll, program;
};

static void set_trace(int i, const char *value)
{
	struct shunt_answer answer;
	char line[64];
	int length = snprintf(line, sizeof(line), "set SHUNT_TRACE %s", value);

	shunt_answer_begin(&answer);
	assert_int_equal(shunt_command_run(engines[i], line, (size_t)length, &answer), 0);
	shunt_answer_end(&answer);
}

/* The services alone: no program polls. */
static void serve(void)
{
	for (int n = 0; n < 4; n++)
		for (int i = 0; i < 2; i++)
			shunt_service_step(engines[i], 0);
}

/* The connecting engine follows one send in 2^k. */
static void make_followed(const struct shunt_config *base, int pairs, const char *k)
{
	make_bed(base, pairs);
	freeze_clock(true);
	set_trace(0, "0");
	serve();
	set_trace(0, k);
	assert_non_null(bed.lane[0]->trace);
	assert_non_null(atomic_load(&bed.lane[1]->followed));
}

static void end_followed(void)
{
	end_bed();
	freeze_clock(false);
}

static uint64_t count(int i, enum shunt_trace_count what)
{
	struct shunt_trace_book *book = atomic_load(&engines[i]->lanes.book);

	shunt_trace_settle(engines[i]);
	return book ? atomic_load(&book->counts[what]) : 0;
}

/* The last entry of an engine. */
static struct shunt_trace last(int i)
{
	struct shunt_trace_book *book = atomic_load(&engines[i]->lanes.book);

	shunt_tracing_settle(engines[i]);
	assert_true(book->entries > 0);
	return book->of[(book->entries - 1) % SHUNT_TRACE_KEPT];
}

static struct stages stages_of(struct shunt_trace trace)
{
	uint64_t placed = trace.placed ? trace.placed : trace.seen;

	assert_true(trace.called <= trace.posted && trace.posted <= placed &&
		    placed <= trace.seen && trace.seen <= trace.read);
	return (struct stages) { trace.posted - trace.called, placed - trace.posted,
				 trace.seen - placed, trace.read - trace.seen };
}

static void assert_stages(struct shunt_trace trace, uint64_t credit, uint64_t link, uint64_t poll,
			  uint64_t program)
{
	struct stages stages = stages_of(trace);

	assert_int_equal(stages.credit, credit);
	assert_int_equal(stages.link, link);
	assert_int_equal(stages.poll, poll);
	assert_int_equal(stages.program, program);
	assert_int_equal(trace.error, 0);
}

/* --- each stage --- */

static void no_delay_is_none(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	assert_int_equal(put(0, 0, 100, 0), 100);
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), 0, 0, 0, 0);
	assert_int_equal(last(1).bytes, 100);
	assert_int_equal(last(1).accepted, 0);
	end_followed();
}

/* The lane is somebody else's for a while: the bytes are staged. */
static void credit_is_waited_for(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	busy();
	assert_int_equal(put(0, 0, 100, 0), 100);
	pair_skew += DELAY;
	free_again();
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), DELAY, 0, 0, 0);
	assert_int_equal(last(1).accepted, last(1).called);
	end_followed();
}

/* The device carries nothing out. */
static void the_link_is_waited_for(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	assert_int_equal(put(0, 0, 100, 0), 100);
	assert_int_equal(get(0, 0, 100), 0);
	pair_skew += DELAY;
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	shunt_group_poll_fully(&engines[0]->group);
	serve();
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), 0, DELAY, 0, 0);
	end_followed();
}

/* Completions are held back in front of the reader: what docs/dev/FAULTS.md calls a delay stands for a slow link. */
static void an_injected_delay_is_the_links(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	char why[256];

	(void)state;
	make_followed(&config, 1, "0");
	assert_int_equal(shunt_fault_device_set(&engines[1]->group, "delay:ms=5", why, sizeof(why)), 0);
	assert_int_equal(put(0, 0, 100, 0), 100);
	assert_int_equal(get(0, 0, 100), 0);
	pair_skew += DELAY;
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), 0, DELAY, 0, 0);
	assert_int_equal(shunt_fault_device_set(&engines[1]->group, "", why, sizeof(why)), 0);
	end_followed();
}

static void the_readers_poll_is_waited_for(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	assert_int_equal(put(0, 0, 100, 0), 100);
	serve();
	pair_skew += DELAY;
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), 0, 0, DELAY, 0);
	end_followed();
}

static void the_program_is_waited_for(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	assert_int_equal(put(0, 0, 100, 0), 100);
	shunt_group_poll_fully(&engines[1]->group);
	pair_skew += DELAY;
	assert_int_equal(get(0, 0, 99), 99); /* not the last byte */
	pair_skew += DELAY;
	assert_int_equal(get(0, 0, 99), 1);
	assert_stages(last(1), 0, 0, 0, 2 * DELAY);
	end_followed();
}

/* All four in one send, each of another length. */
static void all_stages_at_once(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	busy();
	assert_int_equal(put(0, 0, 100, 0), 100);
	pair_skew += 1 * MS;
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	free_again();
	pair_skew += 2 * MS;
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	serve();
	pair_skew += 4 * MS;
	shunt_group_poll_fully(&engines[1]->group);
	pair_skew += 8 * MS;
	assert_int_equal(get(0, 0, 100), 100);
	assert_stages(last(1), 1 * MS, 2 * MS, 4 * MS, 8 * MS);
	end_followed();
}

/* --- which sends --- */

static void the_count_is_exact(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t sends[3] = { 100, 64, 63 };

	(void)state;
	make_followed(&config, 3, "6");
	for (int i = 0; i < 3; i++)
		for (uint64_t n = 0; n < sends[i]; n++) {
			assert_int_equal(put(i, 0, 10, 0), 10);
			assert_int_equal(get(i, 0, 10), 10);
		}
	assert_int_equal(count(0, SHUNT_TRACE_SENDS), 100 + 64 + 63);
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 1 + 1 + 0);
	set_trace(0, "2");
	for (int n = 0; n < 100; n++) {
		assert_int_equal(put(0, 0, 10, 0), 10);
		assert_int_equal(get(0, 0, 10), 10);
	}
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 2 + 25);
	assert_int_equal(count(0, SHUNT_TRACE_WRITTEN), 27);
	assert_int_equal(count(1, SHUNT_TRACE_READ), 27);
	set_trace(0, "off");
	assert_int_equal(put(0, 0, 10, 0), 10);
	assert_int_equal(get(0, 0, 10), 10);
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 27);
	end_followed();
}

/* A send that takes nothing is none, and one that takes a part ends where it said. */
static void a_short_send_ends_where_it_said(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = config.ring_max = 4096;
	config.mr_bytes = 64 << 10;
	make_followed(&config, 1, "off");
	while (put(0, 0, 1000, 0) > 0)
		;
	set_trace(0, "0");
	assert_int_equal(put(0, 0, 1000, 0), 0);
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 0);
	pair_skew += DELAY;
	drain();
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	assert_int_equal(get(0, 0, 1000), 1000);
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 1);
	assert_stages(last(1), 0, 0, 0, 0);
	end_followed();
}

static void merged_sends_keep_their_ends(void **state)
{
	(void)state;
	for (int batch = SINGLE; batch <= HYBRID; batch++) {
		struct shunt_config config = small_config(batch);

		config.ring_min = 64 << 10;
		make_followed(&config, 2, "0");
		busy();
		for (int n = 0; n < 10; n++) {
			assert_int_equal(put(0, 0, 100, 0), 100);
			assert_int_equal(put(1, 0, 10, 0), 10);
			pair_skew += MS;
		}
		free_again();
		assert_int_equal(count(0, SHUNT_TRACE_WRITTEN), 20);
		assert_int_equal(get(0, 0, 950), 950);
		assert_int_equal(count(1, SHUNT_TRACE_READ), 9);
		assert_stages(last(1), 2 * MS, 0, 0, 0);
		drain();
		assert_int_equal(count(1, SHUNT_TRACE_READ), 20);
		end_followed();
	}
}

/* Many sends around the ring's end, of all sizes. */
static void nothing_is_lost_around_the_ring(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	for (size_t n = 1; n < 3000; n++) {
		assert_int_equal(put(0, 0, n * 7 % 4000 + 1, 0), n * 7 % 4000 + 1);
		assert_int_equal(get(0, 0, 4000), n * 7 % 4000 + 1);
	}
	shunt_tracing_settle(engines[1]);
	assert_int_equal(count(0, SHUNT_TRACE_WRITTEN), 2999);
	assert_int_equal(count(1, SHUNT_TRACE_READ), 2999);
	assert_int_equal(count(1, SHUNT_TRACE_REFUSED) + count(1, SHUNT_TRACE_MISSED) +
				 count(1, SHUNT_TRACE_UNREAD),
			 0);
	end_followed();
}

/* --- the answer --- */

static void an_answer_has_the_id(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t id;

	(void)state;
	make_followed(&config, 1, "0");
	assert_int_equal(put(0, 0, 100, 0), 100);
	pair_skew += 1 * MS;
	assert_int_equal(get(0, 0, 100), 100);
	id = last(1).id;
	pair_skew += 2 * MS;
	assert_int_equal(put(0, 1, 200, 0), 200);
	pair_skew += 3 * MS;
	assert_int_equal(get(0, 1, 200), 200);
	assert_int_equal(last(0).id, id);
	assert_true(last(0).answer);
	assert_int_equal(last(0).called, last(1).read + 2 * MS);
	assert_stages(last(0), 0, 0, 3 * MS, 0);
	assert_int_equal(put(0, 1, 200, 0), 200); /* no answer any more */
	assert_int_equal(get(0, 1, 200), 200);
	assert_int_equal(count(1, SHUNT_TRACE_ANSWERS), 1);
	set_trace(0, "off");
	assert_int_equal(put(0, 0, 100, 0),
			 100); /* an answer to the answer is followed by nobody */
	assert_int_equal(count(0, SHUNT_TRACE_ANSWERS), 0);
	drain();
	end_followed();
}

/* --- no room, no link --- */

static void a_full_ring_loses_records(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	for (int n = 0; n < 200; n++)
		assert_int_equal(put(0, 0, 10, 0), 10);
	drain();
	assert_int_equal(count(0, SHUNT_TRACE_WRITTEN), 200);
	assert_int_equal(count(1, SHUNT_TRACE_MISSED), 200 - SHUNT_TRACE_SLOTS);
	assert_int_equal(count(1, SHUNT_TRACE_READ), SHUNT_TRACE_SLOTS);
	end_followed();
}

static void more_than_are_kept_are_lost(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	busy();
	for (int n = 0; n < 20; n++)
		assert_int_equal(put(0, 0, 10, 0), 10);
	free_again();
	drain();
	assert_int_equal(count(0, SHUNT_TRACE_CHOSEN), 20);
	assert_int_equal(count(0, SHUNT_TRACE_LOST), 20 - SHUNT_TRACE_PENDING);
	assert_int_equal(count(1, SHUNT_TRACE_READ), SHUNT_TRACE_PENDING);
	end_followed();
}

static void on_tcp_they_are_abandoned(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_followed(&config, 1, "0");
	shunt_mock_set(stream_of(&bed.pair[0].side[0]), SHUNT_MOCK_TCP);
	for (int n = 0; n < 4; n++) {
		put(0, 0, 10, 0);
		drain();
	}
	assert_int_equal(count(0, SHUNT_TRACE_ABANDONED),
			 count(0, SHUNT_TRACE_CHOSEN) - count(0, SHUNT_TRACE_WRITTEN));
	assert_true(count(0, SHUNT_TRACE_ABANDONED) >= 3);
	shunt_mock_set(stream_of(&bed.pair[0].side[0]), SHUNT_MOCK_RDMA);
	for (int n = 0; n < 4; n++) {
		put(0, 0, 10, 0);
		drain();
	}
	assert_true(count(1, SHUNT_TRACE_READ) >= 3);
	assert_int_equal(count(0, SHUNT_TRACE_WRITTEN), count(1, SHUNT_TRACE_READ));
	end_followed();
}

/* --- what cannot be right --- */

static struct shunt_trace_record *slot(uint64_t number)
{
	return (struct shunt_trace_record *)&atomic_load(&bed.lane[1]->followed)
		->ring[number % SHUNT_TRACE_SLOTS];
}

/* The peer has written this, and then sends. */
static void forge(uint64_t number, struct shunt_trace_record record)
{
	record.number = number;
	*slot(number) = record;
	assert_int_equal(put(0, 0, 10, 0), 10);
	assert_int_equal(get(0, 0, 10), 10);
}

static void false_records_are_dropped(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	struct shunt_trace_record good;
	uint64_t refused = 0, n = 0;

	(void)state;
	make_followed(&config, 1, "off");
	stream = stream_of(&bed.pair[0].side[1]);
#define GOOD                                                                                       \
	(struct shunt_trace_record) { .id = 1,                                                     \
				      .end = stream_offset(stream, STREAM_ARRIVED) + 10,           \
				      .stream = stream->seat->id,                                  \
				      .bytes = 10,                                                 \
				      .called = engines[1]->sys->now(),                            \
				      .posted = engines[1]->sys->now() }
#define WRONG(field, value)                                                                        \
	do {                                                                                       \
		good = GOOD;                                                                       \
		good.field = value;                                                                \
		forge(++n, good);                                                                  \
		assert_int_equal(count(1, SHUNT_TRACE_REFUSED) + count(1, SHUNT_TRACE_UNREAD),     \
				 ++refused);                                                       \
	} while (0)
	WRONG(end, UINT64_MAX);
	WRONG(end, 0);
	WRONG(end, stream_offset(stream, STREAM_ARRIVED));
	WRONG(stream, 0);
	WRONG(stream, UINT32_MAX);
	WRONG(stream, stream->seat->id + 1);
	WRONG(called, good.posted + 1);
	WRONG(called, 0);
	WRONG(posted, engines[1]->sys->now() + 1);
	WRONG(posted, UINT64_MAX);
	WRONG(accepted, good.posted + 1);
	WRONG(accepted, 1);
	WRONG(id, 0);
	good = GOOD;
	good.placed = UINT64_MAX; /* nobody believes that, and the rest is good */
	forge(++n, good);
	good = GOOD;
	good.placed = 1;
	forge(++n, good);
	pair_skew += 2000 * MS;
	shunt_tracing_settle(engines[1]);
	assert_int_equal(count(1, SHUNT_TRACE_READ), 2);
	assert_int_equal(last(1).placed, last(1).posted);
	/* Numbers out of turn. */
	good = GOOD;
	forge(1ull << 63, good);
	forge(1ull << 61, good);
	forge(3, good);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
	assert_true(on_link(&bed.pair[0].side[1]));
	end_followed();
}

static void say(const struct shunt_message *message)
{
	role_hear(bed.lane[1]->link, message, NULL, 0);
}

/* A peer that says this is not believed any more. */
static void assert_distrusted(const struct shunt_message *message)
{
	struct shunt_config config = small_config(HYBRID);

	make_followed(&config, 1, "0");
	say(message);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 1);
	leave_bed();
	freeze_clock(false);
}

static void words_out_of_turn_end_the_link(void **state)
{
	(void)state;
	assert_distrusted(&(struct shunt_message) { .type = SHUNT_MSG_TRACE });
	assert_distrusted(&(struct shunt_message) { .type = SHUNT_MSG_TRACE, .stream = 1 });
	assert_distrusted(&(struct shunt_message) { .type = SHUNT_MSG_TRACE, .rings.rkey = 1 });
	assert_distrusted(&(struct shunt_message) { .type = SHUNT_MSG_TRACE, .rings.lanes = 1 });
	assert_distrusted(
		&(struct shunt_message) { .type = SHUNT_MSG_TRACE, .rings.lanes = UINT32_MAX });
	assert_distrusted(&(struct shunt_message) { .type = SHUNT_MSG_CLOCK, .clock.asked = 1 });
}

static void rings_out_of_reach_end_the_link(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_message message = { .type = SHUNT_MSG_TRACE,
					 .rings = { .offset = UINT64_MAX - 4095, .lanes = 1 } };

	(void)state;
	make_bed(&config, 1);
	freeze_clock(true);
	bed.lane[1]->link->tracing.asked = true;
	say(&message);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 1);
	assert_null(bed.lane[1]->trace);
	leave_bed();
	freeze_clock(false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_delay_is_none),
		cmocka_unit_test(credit_is_waited_for),
		cmocka_unit_test(the_link_is_waited_for),
		cmocka_unit_test(an_injected_delay_is_the_links),
		cmocka_unit_test(the_readers_poll_is_waited_for),
		cmocka_unit_test(the_program_is_waited_for),
		cmocka_unit_test(all_stages_at_once),
		cmocka_unit_test(the_count_is_exact),
		cmocka_unit_test(a_short_send_ends_where_it_said),
		cmocka_unit_test(merged_sends_keep_their_ends),
		cmocka_unit_test(nothing_is_lost_around_the_ring),
		cmocka_unit_test(an_answer_has_the_id),
		cmocka_unit_test(a_full_ring_loses_records),
		cmocka_unit_test(more_than_are_kept_are_lost),
		cmocka_unit_test(on_tcp_they_are_abandoned),
		cmocka_unit_test(false_records_are_dropped),
		cmocka_unit_test(words_out_of_turn_end_the_link),
		cmocka_unit_test(rings_out_of_reach_end_the_link),
	};

	shunt_log_set_level(SHUNT_LOG_NONE); /* links end here as they are to */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
