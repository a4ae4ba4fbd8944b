/* SPDX-License-Identifier: MIT */
/*
 * A device that carries little inline and reads the rest from registered memory. That is the
 * staging buffer (preMR, RB-09), or the program's own (dynMR, RB-10).
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/send_queue.h"
#include "core/peer/link_end.h"
#include "core/service.h"
#include "core/stream/pinned.h"
#include "core/stream/retire.h"

#define INLINE 256

static struct shunt_config fetching(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.inline_bytes = INLINE;
	config.mr_threshold = 8192;
	config.ring_min = 256 << 10;
	return config;
}

/* --- staged --- */

void inline_or_fetched(void **state)
{
	struct shunt_config config = fetching();

	(void)state;
	make_bed(&config, 1);
	put(0, 0, INLINE, 0);
	assert_int_equal(COUNTED(direct), 1);
	assert_int_equal(COUNTED(gathered), 0);
	put(0, 0, INLINE + 1, 0);
	assert_int_equal(COUNTED(merged), 1);
	assert_int_equal(COUNTED(gathered), 1);
	put(0, 0, 5000, 0);
	assert_int_equal(WRS(), 3);
	assert_int_equal(COUNTED(gathered), 2);
	assert_int_equal(COUNTED(signaled), 2);	/* what is fetched is known to be, for its room is needed again */
	end_bed();
}

/* The device will still read the bytes of WRs that it has not carried out, so no byte of them may change. */
void staged_bytes_stay_until_fetched(void **state)
{
	struct shunt_config config = fetching();
	size_t taken, all = 0;

	(void)state;
	make_bed(&config, 1);
	for (int turns = 0; turns < 50; turns++) {
		stall(true);
		for (int i = 0; (taken = put(0, 0, 300 + 997 * (turns + i) % 9000, 0)) > 0; i++)
			all += taken;
		assert_int_equal(put(0, 0, INLINE + 1, 0), 0);
		stall(false);
		all_arrived();
	}
	assert_true(all > 50 * SHUNT_SEND_QUEUE_BYTES / 2);
	assert_true(COUNTED(gathered) >= 50);
	end_bed();
}

/* Not either when more has gone past it since something was fetched from it than it is large. */
void stage_holds_no_more_than_it_can(void **state)
{
	struct shunt_config config = fetching();

	(void)state;
	make_bed(&config, 1);
	put(0, 0, 300, 0);
	put(0, 0, 300, 0);
	for (int i = 0; i < 300; i++)
		put(0, 0, INLINE, 0);
	busy();
	assert_true(put(0, 0, 60000, 0) + put(0, 0, 60000, 0) <= SHUNT_SEND_QUEUE_BYTES);
	free_again();
	end_bed();
}

/* A seat that both ends have left is free once nothing of it is on its way. */
void seat_stays_until_fetched(void **state)
{
	struct shunt_config config = fetching();

	(void)state;
	make_bed(&config, 1);
	stall(true);
	assert_int_equal(put(0, 0, 5000, 0), 5000);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 4; i++)
		turn();
	close_side(&bed.pair[0].side[0]);
	for (int i = 0; i < 4; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 1);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	for (int i = 0; i < 4; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 0);
	assert_int_equal(bed.lane[1]->link->seated, 0);
	assert_int_equal(atomic_load(&engines[0]->links.distrusted) +
				 atomic_load(&engines[1]->links.distrusted),
			 0);
}

/* --- from the program's own buffer --- */

static uint64_t pins(void)
{
	return atomic_load(&engines[0]->pins);
}

/* A blocking send of so many zeros; everything arrives. */
static void send_blocking(size_t bytes)
{
	static uint8_t zeros[65536], back[65536];
	size_t got = 0;

	assert_int_equal(send_some(&bed.pair[0].side[0], zeros, bytes, 0), bytes);
	memset(zeros, 0xee, bytes);	/* ours again */
	while (got < bytes) {
		ssize_t part = receive_some(&bed.pair[0].side[1], back + got, bytes - got, MSG_DONTWAIT);

		turn();
		assert_true(part > 0 || part == -EAGAIN);
		got += part > 0 ? part : 0;
	}
	memset(zeros, 0, bytes);
	assert_memory_equal(back, zeros, bytes);
}

void pinned_from_the_threshold_on(void **state)
{
	struct shunt_config config = fetching();

	(void)state;
	make_bed(&config, 1);
	send_blocking(8191);
	assert_int_equal(pins(), 0);
	assert_int_equal(COUNTED(staged_sends), 1);
	send_blocking(8192);
	assert_int_equal(pins(), 1);
	send_blocking(65536);
	assert_int_equal(pins(), 2);
	assert_int_equal(COUNTED(staged_sends), 1);
	assert_int_equal(COUNTED(direct), 2);	/* not a byte was copied on this side */
	assert_false(stream_is_pinned(stream_of(&bed.pair[0].side[0])));
	end_bed();
}

/* A header, a body and what lies around them: each large buffer from where it is, in the order of the call. */
void each_large_buffer_is_pinned(void **state)
{
	static uint8_t sent[100000], back[sizeof(sent)];
	const size_t sizes[] = { 100, 9000, 0, 50, 60, 8191, 8192, 70000, 7 };
	struct shunt_config config = fetching();
	struct iovec iov[9];
	size_t bytes = 0, got = 0;

	(void)state;
	make_bed(&config, 1);
	for (int i = 0; i < 9; i++) {
		iov[i] = (struct iovec) { sent + bytes, sizes[i] };
		memset(sent + bytes, 'a' + i, sizes[i]);
		bytes += sizes[i];
	}
	assert_int_equal(shunt_stream_send(engines[0], bed.pair[0].side[0].fd,
					   stream_of(&bed.pair[0].side[0]), iov, 9, 0),
			 bytes);
	assert_int_equal(pins(), 3);
	while (got < bytes) {
		ssize_t part = receive_some(&bed.pair[0].side[1], back + got, bytes - got,
					    MSG_DONTWAIT);

		turn();
		assert_true(part > 0 || part == -EAGAIN);
		got += part > 0 ? part : 0;
	}
	assert_memory_equal(back, sent, bytes);
	end_bed();
}

/* The region is the link's: that stays until it is deregistered, also when both ends have left the seat. */
void seat_stays_while_pinned(void **state)
{
	struct shunt_config config = fetching();
	struct shunt_stream *stream;
	struct shunt_pin pin;
	char buffer[100];
	struct iovec iov = { buffer, sizeof(buffer) };

	(void)state;
	for (int dead = 0; dead < 2; dead++) {
		make_bed(&config, 1);
		stream = stream_of(&bed.pair[0].side[0]);
		shunt_lock_take(stream_sender_lock(stream));
		assert_true(shunt_pinned_take(stream, &pin, &iov));
		shunt_lock_leave(stream_sender_lock(stream));
		close_side(&bed.pair[0].side[1]);
		close_side(&bed.pair[0].side[0]);
		for (int i = 0; i < 4; i++)
			turn();
		if (dead)
			role_kill_link(bed.lane[0]->link, "the test");
		for (int i = 0; i < 4; i++)
			turn();
		assert_int_equal(bed.lane[0]->link->seated, 1);
		shunt_lock_take(stream_sender_lock(stream));
		shunt_pinned_drop(stream);
		shunt_lock_leave(stream_sender_lock(stream));
		assert_false(stream_is_pinned(stream));
		for (int i = 0; i < 4; i++)
			turn();
		assert_null(stream_link(stream));
	}
}

void nothing_but_large_blocking_sends_is_pinned(void **state)
{
	struct shunt_config config = fetching();

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 20000, 0), 20000);	/* MSG_DONTWAIT */
	drain();
	assert_int_equal(pins(), 0);
	config.mr_threshold = 0;	/* never */
	make_bed(&config, 1);
	send_blocking(65536);
	assert_int_equal(pins(), 0);
	config.inline_bytes = 1 << 20;	/* nothing has to be fetched */
	config.mr_threshold = 8192;
	make_bed(&config, 1);
	send_blocking(65536);
	assert_int_equal(pins(), 0);
	assert_int_equal(COUNTED(gathered), 0);
	end_bed();
}

static uint8_t pinned[40000];

static void *send_pinned(void *side)
{
	assert_int_equal(send_some(side, pinned, sizeof(pinned), 0), sizeof(pinned));
	memset(pinned, 0xee, sizeof(pinned));	/* ours again */
	return NULL;
}

/* Its queue pair dies before the device has carried out what was posted from it: that is sent again, from it. */
void a_pinned_buffer_is_kept_for_the_peer(void **state)
{
	struct shunt_config config = fetching();
	static uint8_t expected[sizeof(pinned)], got[sizeof(pinned)];
	struct shunt_stream *stream;
	pthread_t sender;

	(void)state;
	config.retain = 1;
	make_bed(&config, 1);
	stream = stream_of(&bed.pair[0].side[0]);
	for (size_t i = 0; i < sizeof(pinned); i++)
		pinned[i] = expected[i] = i * 7 + (i >> 8);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	assert_int_equal(pthread_create(&sender, NULL, send_pinned, &bed.pair[0].side[0]), 0);
	while (!shunt_send_queue_pinned_wr(stream->seat))
		sched_yield();
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_KILL);
	for (int i = 0; i < 10; i++) {	/* this end knows, and the peer has not said what it has */
		shunt_service_step(engines[0], 0);
		shunt_group_poll_fully(&engines[0]->group);
	}
	assert_int_equal(counted(0, "failovers"), 1);
	assert_true(shunt_send_queue_pinned_wr(stream->seat));
	for (size_t have = 0; have < sizeof(got);) {
		ssize_t part = receive_some(&bed.pair[0].side[1], got + have, sizeof(got) - have, MSG_DONTWAIT);

		turn();
		assert_true(part > 0 || part == -EAGAIN || (part < 0 && errno == EAGAIN));
		have += part > 0 ? part : 0;
	}
	assert_int_equal(pthread_join(sender, NULL), 0);
	assert_memory_equal(got, expected, sizeof(got));
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	turn();
	turn();
}

/* Bytes of a pinned send are in the peer's ring alone. The stage has older bytes at their place. */
void what_was_pinned_is_not_in_the_stage(void **state)
{
	struct shunt_config config = fetching();
	static uint8_t got[8192];

	(void)state;
	config.retain = 1;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 3000, 0), 3000);
	all_arrived();
	for (size_t i = 0; i < sizeof(got); i++)
		pinned[i] = i * 7 + (i >> 8);
	assert_int_equal(send_some(&bed.pair[0].side[0], pinned, sizeof(got), 0), sizeof(got));
	assert_int_equal(pins(), 1);
	shunt_retire_begin(engines[1], stream_of(&bed.pair[0].side[1]), SHUNT_CAUSE_SPLICE);
	for (size_t have = 0; have < sizeof(got);) {
		ssize_t part = receive_some(&bed.pair[0].side[1], got + have, sizeof(got) - have, MSG_DONTWAIT);

		turn();
		assert_true(part > 0 || part == -EAGAIN);
		have += part > 0 ? part : 0;
	}
	assert_memory_equal(got, pinned, sizeof(got));
	assert_int_equal(stream_asked(stream_of(&bed.pair[0].side[0])), SHUNT_GIVEN);
	end_bed();
}

/* No room for a staging buffer: the stream goes on over TCP. */
void without_memory_tcp_carries_on(void **state)
{
	struct shunt_config config = fetching();
	const struct ibv_mr *mr;
	size_t sent = 0;

	(void)state;
	make_bed(&config, 1);
	while (shunt_arena_take(&bed.lane[0]->link->arena, SHUNT_SEND_QUEUE_BYTES, &mr) != UINT64_MAX)
		;
	for (int i = 0; i < 100 && sent < 20000; i++) {
		sent += put(0, 0, 20000 - sent, 0);
		drain();
	}
	assert_int_equal(sent, 20000);
	assert_false(stream_sends_on_link(stream_of(&bed.pair[0].side[0])));
	end_bed();
}

/* --- a READ without an answer --- */

/*
 * The peer wants back what lies in its ring, and the stalled device does not answer the READ for that. The engine gives
 * the queue pair up. The peer has not heard of it, and sends on its other stream.
 */
static void read_in_vain(bool peer_retains)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_link *link;

	config.retain = 1;
	config.dead_ms = 10;
	make_bed(&config, 2);
	link = bed.lane[0]->link;
	bed.lane[1]->retains = link->peer_retains = peer_retains;
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	turn();
	stream_fill_stage(stream_of(&bed.pair[0].side[0]));
	stall(true);
	shunt_retire_begin(engines[1], stream_of(&bed.pair[0].side[1]), SHUNT_CAUSE_SPLICE);
	while (atomic_load(&link->state) == SHUNT_LINK_UP)
		shunt_service_step(engines[0], 0);
	assert_int_equal(counted(0, "failovers"), 1);
	assert_true(stream_sends_on_link(stream_of(&bed.pair[1].side[1])));
	assert_int_equal(put(1, 1, 100, 0), 100);
	for (int i = 0; i < 10; i++)
		turn();
}

/* The link is over, and a peer that retains what it has sent loses nothing. */
void an_unanswered_read_ends_the_queue_pair(void **state)
{
	(void)state;
	read_in_vain(true);
	all_arrived();
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	leave_bed();
}

/* A peer that does not has lost what it posted last: both ends of that stream are reset, and no other. */
void an_unanswered_read_loses_what_is_not_retained(void **state)
{
	char byte;

	(void)state;
	read_in_vain(false);
	for (int side = 0; side < 2; side++)
		assert_int_equal(receive_some(&bed.pair[1].side[side], &byte, 1, MSG_DONTWAIT),
				 -ECONNRESET);
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	bed.pairs = 1;
	all_arrived();
	leave_bed();
}
