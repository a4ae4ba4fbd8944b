/* SPDX-License-Identifier: MIT */
#include "tests/engine/bed.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/admin/stats.h"
#include "core/device/soft/soft.h"
#include "core/service.h"

struct bed bed;

/* LeakSanitizer shall find what is still alive. */
static struct shunt_engine *former[512][2];
static int formers;

static uint8_t byte_at(uint64_t offset, int salt)
{
	return offset * 131 + (offset >> 8) + (offset >> 16) * 7 + salt;	/* of no power of two's period */
}

size_t put(int i, int side, size_t bytes, int flags)
{
	uint8_t buffer[BUFFER];
	uint64_t *sent = &bed.sent[i][side];
	ssize_t taken;

	assert_true(bytes <= sizeof(buffer));
	for (size_t k = 0; k < bytes; k++)
		buffer[k] = byte_at(*sent + k, 2 * i + side);
	taken = send_some(&bed.pair[i].side[side], buffer, bytes, flags | MSG_DONTWAIT);
	if (taken == -EAGAIN || (taken < 0 && errno == EAGAIN))
		taken = 0;
	assert_true(taken >= 0);
	*sent += taken;
	return taken;
}

size_t get(int i, int side, size_t most)
{
	static uint8_t buffer[BUFFER];
	uint64_t *received = &bed.received[i][side];
	ssize_t got = receive_some(&bed.pair[i].side[!side], buffer, most < BUFFER ? most : BUFFER, MSG_DONTWAIT);

	if (got == -EAGAIN || (got < 0 && errno == EAGAIN))
		return 0;
	assert_true(got >= 0);
	for (ssize_t k = 0; k < got; k++)
		assert_int_equal(buffer[k], byte_at(*received + k, 2 * i + side));
	*received += got;
	return got;
}

void turn(void)
{
	for (int i = 0; i < 2; i++) {
		if (engines[i]->service)
			shunt_service_step(engines[i], 0);
		shunt_group_poll_fully(&engines[i]->group);
	}
}

void drain(void)
{
	size_t moved;

	do {
		moved = 0;
		turn();
		for (int i = 0; i < bed.pairs; i++)
			for (int side = 0; side < 2; side++)
				moved += get(i, side, BUFFER);
	} while (moved);
}

bool all_is_out(void)
{
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			if (bed.received[i][side] != bed.sent[i][side])
				return false;
	return true;
}

void all_arrived(void)
{
	drain();
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			assert_int_equal(bed.received[i][side], bed.sent[i][side]);
	assert_int_equal(atomic_load(&engines[0]->links.distrusted) +
				 atomic_load(&engines[1]->links.distrusted),
			 0);
}

struct shunt_config small_config(enum batch batch)
{
	struct shunt_config config;

	shunt_config_defaults(&config);
	config.log_level = 0;
	config.spin_us = 0;
	config.arena_bytes = 64 << 20;
	config.batch = batch;
	config.born = SHUNT_BORN_OFF; /* else what both ends have closed would stay */
	return config;
}

bool on_link(struct side *side)
{
	return stream_is_on_link(stream_of(side));
}

void warm(int i)
{
	for (int n = 0; !on_link(&bed.pair[i].side[0]) || !on_link(&bed.pair[i].side[1]); n++) {
		assert_true(n < 10000);
		for (int side = 0; side < 2; side++) {
			put(i, side, 1, 0);
			turn();
			get(i, side, BUFFER);
		}
	}
}

bool carries(const struct ibv_send_wr *wr, enum shunt_imm type)
{
	for (; wr; wr = wr->next)
		if (ntohl(wr->imm_data) >> SHUNT_IMM_SHIFT == type)
			return true;
	return false;
}

void add_pair(void)
{
	connect_pair(&bed.pair[bed.pairs]);
	warm(bed.pairs++);
}

static void note_lanes(void)
{
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_lane(stream_of(&bed.pair[0].side[side]));
}

void first_pair(void)
{
	bed.pairs = 0;
	memset(bed.sent, 0, sizeof(bed.sent));
	memset(bed.received, 0, sizeof(bed.received));
	add_pair();
	note_lanes();
}

static void count_from_here(void)
{
	bed.before = bed.lane[0]->counters;
	bed.wrs_before = bed.lane[0]->sent;
	bed.bytes_before = bed.lane[0]->window.posted;
}

void make_bed(const struct shunt_config *config, int pairs)
{
	if (engines[0]) {
		former[formers][0] = engines[0];
		former[formers++][1] = engines[1];
	}
	memset(&bed, 0, sizeof(bed));
	make_engines(config, true);
	listen_here();
	while (bed.pairs < pairs)
		add_pair();
	if (!pairs)
		return;
	note_lanes();
	all_arrived();
	count_from_here();
}

void end_bed(void)
{
	all_arrived();
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	turn();
	turn();
	for (int side = 0; side < 2; side++) {
		assert_int_equal(bed.lane[side]->link->seated, 0);
		assert_int_equal(shunt_window_inflight(&bed.lane[side]->window) > bed.lane[side]->window.posted, 0);
	}
}

void leave_closed_bed(void)
{
	for (int i = 0; i < 10; i++)	/* both engines hear of it, and let their streams go */
		turn();
	bed.pairs = 0;
}

void leave_bed(void)
{
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
}

void busy(void)
{
	role_take_as_another(&bed.lane[0]->lock);
}

void free_again(void)
{
	role_leave_as_another(&bed.lane[0]->lock);
	shunt_lane_kick(bed.lane[0]);
}

void stall(bool on)
{
	soft_qp_fault(bed.lane[0]->qp, on ? SOFT_FAULT_STALL : SOFT_FAULT_NONE);
	if (!on)
		drain();
}

struct tally tally_so_far(void)
{
	return (struct tally) { WRS(), COUNTED(doorbells), BYTES() };
}

uint64_t counted(int i, const char *name)
{
	char wanted[32], *json, *found;
	uint64_t number;
	size_t bytes;

	snprintf(wanted, sizeof(wanted), "\"%s\":", name);
	json = shunt_stats_json(engines[i], &bytes);
	assert_non_null(json);
	found = strstr(json, wanted);
	assert_non_null(found);
	number = strtoull(found + strlen(wanted), NULL, 10);
	free(json);
	return number;
}

uint32_t reported(int set)
{
	const struct timespec now = { 0, 0 };
	struct epoll_event event;

	return shunt_epset_wait(engines[0], set, &event, 1, &now, NULL) == 1 ? event.events : 0;
}
