/* SPDX-License-Identifier: MIT */
/*
 * A peer may ask for some things again; a hostile peer asks for more. The victim is the accepting
 * engine: its direction has been on the link for more than 4 GiB. The tests set the offsets as if
 * these bytes had gone by.
 */
#include "tests/engine/bed.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "core/lane/send_queue.h"
#include "core/peer/hear.h"
#include "core/stream/retire.h"
#include "tests/sim/start.h"

#define GIB4 (1ull << 32)
#define START (1ull << 33)	/* stream offset of the first byte */
#define RING 16384

static struct shunt_stream *victim;

/* A pair on the link, as if TCP had carried so much of both directions before. */
static void make_pair(const struct shunt_config *config, uint64_t start)
{
	int on = 1;

	make_bed(config, 0);
	connect_pair(&bed.pair[0]);
	for (int side = 0; side < 2; side++) {
		setsockopt(bed.pair[0].side[side].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		stream_start_at(stream_of(&bed.pair[0].side[side]), start, start);
	}
	warm(0);
	bed.pairs = 1;
	drain();
}

/* The victim has sent 1000 bytes, which are not read; 4 GiB and more before, on the link. */
static void make_old(bool retain)
{
	struct shunt_config config = small_config(HYBRID);

	config.retain = retain;
	config.ring_min = RING;
	make_pair(&config, START);
	put(0, 1, 1000, 0);
	victim = stream_of(&bed.pair[0].side[1]);
	assert_true(stream_offset(victim, STREAM_UPGRADED) >= START);
	assert_true(stream_age(victim, GIB4));
}

static uint64_t sent(void)
{
	return stream_offset(victim, STREAM_SENT);
}

static uint64_t distrusted(void)
{
	return atomic_load(&engines[1]->links.distrusted);
}

/* The peer's reader says that it stands at `offset`. */
static void ask_retire(uint64_t offset)
{
	struct shunt_leave leave = { .offset = offset, .announced = stream_switches_heard(victim) };

	shunt_retire_asked(engines[1], victim, &leave);
}

/* Its queue pair has died, and it has the bytes before `offset`. */
static void ask_resume(uint64_t offset)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEAVE, .stream = victim->seat->id };

	message.leave.offset = offset;
	message.leave.heard = stream_switches_announced(victim);
	message.leave.how = SHUNT_LEAVE_DEAD;
	role_hear(stream_link(victim), &message, NULL, 0);
}

/* Nothing is sent again, and the link ends. The offset counts from what was sent, or from 0. */
static void refused(void (*ask)(uint64_t offset), uint64_t offset, bool absolute)
{
	make_old(ask == ask_resume);
	ask(absolute ? offset : sent() + offset);
	assert_int_equal(distrusted(), 1);
	assert_false(stream_resends(victim));
	leave_bed();
}

static void hostile_offsets(void (*ask)(uint64_t offset))
{
	static const uint64_t behind[] = { -GIB4 - 64, -GIB4, -RING - 1, 1, SIM_OFFSETS };

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
		refused(ask, behind[i], false);
	refused(ask, SHUNT_NEVER, true);
}

void too_much_is_not_given_back(void **state)
{
	(void)state;
	hostile_offsets(ask_retire);
}

void too_much_is_not_resumed(void **state)
{
	(void)state;
	hostile_offsets(ask_resume);
}

/* Bytes that the peer's reader has given credit for have been read. */
void what_was_read_is_not_given_back(void **state)
{
	(void)state;
	for (int one = 0; one < 2; one++) {
		make_old(false);
		stream_peer_has_read(victim, sent() - 500);
		ask_retire(sent() - 500 - one);
		assert_int_equal(distrusted(), one);
		assert_int_equal(stream_asked(victim), one ? SHUNT_DECLINED : SHUNT_GIVEN);
		leave_bed();
	}
}

/* A pinned send keeps the program's own buffer, which may be larger than what a ring holds. */
void a_pin_is_no_excuse(void **state)
{
	struct shunt_pin pin = { 0 };
	uint8_t *pages;	/* zeros; none is ever written */

	(void)state;
	pages = mmap(NULL, GIB4 + RING, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	make_old(true);
	pin.first = (const char *)pages;
	pin.to = sent();
	pin.from = sent() - GIB4 - 64;
	stream_pin(victim, &pin);
	ask_resume(pin.from);
	assert_int_equal(distrusted(), 1);
	assert_false(stream_resends(victim));
	stream_pin(victim, NULL);
	leave_bed();
	munmap(pages, GIB4 + RING);
}

/* An honest peer gets what it lacks, near 2^32 and near 2^62 as elsewhere. */
void what_is_missing_comes_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct shunt_config config = small_config(HYBRID);

		config.retain = i & 1;
		make_pair(&config, sim_start(i / 2, i / 2 == 1 ? 1500 : 1 << 20));
		victim = stream_of(&bed.pair[0].side[1]);
		put(0, 1, 3000, 0);
		turn();
		get(0, 1, 1000);
		if (i & 1)
			shunt_link_fail(stream_link(stream_of(&bed.pair[0].side[0])), "the test");
		else
			shunt_retire_begin(engines[0], stream_of(&bed.pair[0].side[0]),
					   SHUNT_CAUSE_PASSED);
		put(0, 0, 100, 0);
		for (int n = 0; bed.received[0][1] < 3000 || stream_sends_on_link(victim); n++) {
			assert_true(n < 1000);
			turn();
			get(0, 1, BUFFER);
		}
		put(0, 1, 100, 0);
		all_arrived();
		leave_bed();
	}
}
