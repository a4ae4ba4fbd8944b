/* SPDX-License-Identifier: MIT */
/* The order in which a lane posts its work requests, by the soft device's trace (SD-13). */
#include <arpa/inet.h>
#include <string.h>
#include "core/device/soft/soft.h"
#include "tests/engine/bed.h"

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
