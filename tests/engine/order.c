/* SPDX-License-Identifier: MIT */
/* The order in which a lane posts its work requests, by the soft device's trace (SD-13). */
#include <arpa/inet.h>
#include <string.h>
#include "core/device/soft/soft.h"
#include "tests/engine/bed.h"

#define LARGE 3		/* streams that send much, pairs 0 to 2 */
#define SMALL 100	/* bytes of pair 3's message */
#define FRAGMENT 4096

static struct soft_trace trace[256];

static void begin_trace(void)
{
	memset(trace, 0, sizeof(trace));
	soft_qp_trace(bed.lane[0]->qp, trace, sizeof(trace) / sizeof(trace[0]));
}

static void end_trace(void)
{
	soft_qp_trace(bed.lane[0]->qp, NULL, 0);
}

static enum shunt_imm type_of(const struct soft_trace *wr)
{
	return ntohl(wr->imm_data) >> SHUNT_IMM_SHIFT;
}

/* --- others get in between the fragments of much (XR-22, PF-14) --- */

static void send_small(void)
{
	assert_int_equal(put(LARGE, 0, SMALL, 0), SMALL);
}

/* Bytes that were posted before the small message. */
static uint64_t bytes_ahead(void)
{
	uint64_t bytes = 0;

	for (const struct soft_trace *wr = trace; wr->bytes != SMALL; wr++) {
		assert_true(wr->wr_id && wr < &trace[sizeof(trace) / sizeof(trace[0]) - 1]);
		bytes += wr->bytes;
	}
	return bytes;
}

static void make_senders(uint64_t frag)
{
	struct shunt_config config = small_config(HYBRID);

	config.ring_min = 256 << 10;
	config.frag_bytes = frag;
	make_bed(&config, LARGE + 1);
	begin_trace();
}

/* The message comes while one large send is being posted. */
static uint64_t ahead_of_another_thread(uint64_t frag)
{
	uint64_t bytes;

	make_senders(frag);
	hook(send_small);
	assert_int_equal(put(0, 0, BUFFER, 0), BUFFER);
	unhook();
	bytes = bytes_ahead();
	end_trace();
	end_bed();
	return bytes;
}

/* It is the last in the queue, behind streams with full stages. */
static uint64_t ahead_in_the_queue(uint64_t frag)
{
	uint64_t bytes;

	make_senders(frag);
	busy();
	for (int i = 0; i < LARGE; i++)
		assert_int_equal(put(i, 0, BUFFER, 0), BUFFER);
	send_small();
	free_again();
	bytes = bytes_ahead();
	end_trace();
	end_bed();
	return bytes;
}

void much_lets_others_in(void **state)
{
	(void)state;
	assert_int_equal(ahead_of_another_thread(FRAGMENT), FRAGMENT);
	/* The first WR of a turn may end with the ring or the stage, so it may be short. */
	assert_in_range(ahead_in_the_queue(FRAGMENT), LARGE * FRAGMENT, LARGE * (2 * FRAGMENT - 1));
}

/* The control experiment: what is no fragment lets nobody in. */
void without_fragments_others_wait(void **state)
{
	(void)state;
	assert_int_equal(ahead_of_another_thread(1 << 20), BUFFER);
	assert_int_equal(ahead_in_the_queue(1 << 20), LARGE * BUFFER);
}

/* --- a switch (PF-02) --- */

/* The bytes, then the word that they were the link's last, with one doorbell; the word says when it has arrived. */
void a_handback_is_behind_its_bytes(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.frag_bytes = FRAGMENT;
	make_bed(&config, 1);
	begin_trace();
	busy();
	assert_int_equal(put(0, 0, FRAGMENT + 1000, 0), FRAGMENT + 1000);
	stream_turn(stream_of(&bed.pair[0].side[0]), false);
	free_again();
	end_trace();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(type_of(&trace[i]), SHUNT_IMM_DATA);
		assert_int_equal(trace[i].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	}
	assert_int_equal(trace[0].bytes + trace[1].bytes, FRAGMENT + 1000);
	assert_int_equal(type_of(&trace[2]), SHUNT_IMM_HANDBACK);
	assert_true(trace[2].flags & IBV_SEND_SIGNALED);
	assert_int_equal(trace[2].doorbell, trace[0].doorbell);
	assert_int_equal(trace[2].wr_id, trace[0].wr_id + 2);
	assert_int_equal(trace[3].wr_id, 0);
	end_bed();
}
