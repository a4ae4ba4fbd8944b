/* What a lane does when its QP refuses and when its link ends, and what stays of it in the statistics. */
#include "tests/sim/bed.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/soft/soft.h"

/* --- the end of a link --- */

/* What a read says once the reader's link has died; `accepted`: the sender had bytes that it could not post. */
static ssize_t read_after_death(bool accepted)
{
	struct shunt_config config = small_config(HYBRID);
	uint8_t byte[200];
	ssize_t got;

	make_bed(&config, 1);
	put(0, 0, 100, 0);
	if (accepted) {
		busy();
		put(0, 0, 50, 0);
		shunt_lock_leave(&bed.lane[0]->lock);
	}
	shunt_link_kill(bed.lane[1]->link, "the test");
	assert_int_equal(receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT), 100);
	got = receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT);
	close_side(&bed.pair[0].side[1]);
	close_side(&bed.pair[0].side[0]);
	for (int i = 0; i < 10; i++)	/* the other engine hears of it, and lets its stream go */
		turn();
	return got;
}

/* Bytes that were accepted are lost with the link, and the kernel does not know of them. */
void accepted_bytes_are_missed(void **state)
{
	(void)state;
	assert_int_equal(read_after_death(false), -EAGAIN);
	assert_int_equal(read_after_death(true), -ECONNRESET);
}

/* The memory of a stream that was held when its link ended is used again: it must not be taken for queued. */
void held_streams_are_let_go(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	for (int i = 0; i < 3; i++)
		put(0, 0, 100, 0);
	assert_int_equal(atomic_load(&bed.lane[0]->holding), 1);
	shunt_link_kill(bed.lane[0]->link, "the test");
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 10; i++)
		turn();
	bed.pairs = 0;
	memset(bed.sent, 0, sizeof(bed.sent));
	memset(bed.received, 0, sizeof(bed.received));
	add_pair();
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_of(&bed.pair[0].side[side])->lane;
	busy();
	put(0, 0, 100, 0);
	free_again();
	end_bed();
}

/* --- what the QP refuses (PF-10, PF-11) --- */

void bad_wr_at_every_position(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 12; nth++) {
		struct shunt_config config = small_config(HYBRID);

		make_bed(&config, 10);
		busy();
		for (int i = 0; i < 10; i++)
			put(i, 0, 100 + i, 0);
		soft_qp_fail_post(bed.lane[0]->qp, nth);
		free_again();
		assert_int_equal(COUNTED(post_failures), nth <= 10);
		assert_int_equal(WRS(), nth <= 10 ? nth - 1 : 10);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 10);
		assert_int_equal(BYTES(), 1045);
		soft_qp_fail_post(bed.lane[0]->qp, 0);
		soft_qp_fail_post(bed.lane[0]->qp, 1);	/* and on the short way */
		put(0, 0, 64, 0);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 11);
		end_bed();
	}
}

void unsignaled_chains_do_not_fill_the_queue(void **state)
{
	static const int every[] = { 1, 2, 31, 32, 63, 64, 1024 };

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct shunt_config config = small_config(SINGLE);

		config.sq_depth = 64;
		config.signal_every = every[i];
		config.window_wrs = config.window_bytes = 0;
		make_bed(&config, 2);
		for (int n = 0; n < 1000; n++) {
			assert_int_equal(put(n & 1, 0, 16, 0), 16);
			get(n & 1, 0, 16);
		}
		assert_int_equal(DATA_WRS(), 1000);
		assert_true(COUNTED(signaled) >= WRS() / (every[i] < 32 ? every[i] : 32) - 1);
		end_bed();
	}
}

/* --- statistics --- */

/* What a link's lane has counted stays in the statistics when the link is gone. */
void ended_lanes_are_counted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t wrs, doorbells;

	(void)state;
	make_bed(&config, 2);
	for (int i = 0; i < 100; i++)
		put(i & 1, 0, 64, 0);
	end_bed();
	wrs = counted(0, "wr");
	doorbells = counted(0, "doorbells");
	assert_in_range(wrs, 100, 10000);
	shunt_group_remove_lane(engines[0], bed.lane[0]);
	assert_int_equal(counted(0, "wr"), wrs);
	assert_int_equal(counted(0, "doorbells"), doorbells);
	shunt_group_remove_lane(engines[0], bed.lane[0]);	/* it is not there any more */
	assert_int_equal(counted(0, "wr"), wrs);
}
