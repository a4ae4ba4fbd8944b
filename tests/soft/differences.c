/* SPDX-License-Identifier: MIT */
/*
 * Tests that a real device is not asked, and why. docs/dev/DEVICES.md has the rest of the differences.
 */
#include "tests/soft/rig.h"

static const struct {
	const char *test, *why;
} left_out[] = {
	{ "SD_04_counters_are_exact", "counters are the soft device's" },
	{ "SD_13_the_trace_holds_the_last_wrs_in_order", "so is the trace" },
	{ "SD_05_slots_are_freed_by_polling_a_signaled_wr", "rxe frees a slot when its WR is done" },
	{ "SD_11_limits_are_told_and_kept", "limits of our choice are the soft device's" },
	{ "SD_09_reset_starts_anew", "a real QP knows its peer's former life by PSNs only" },
	{ "SD_10_a_look_is_bounded_like_a_read", "soft_qp_peek is the soft device's" },
	{ "SD_10_only_the_arena_is_reachable", "any registered memory is" },
	{ "SD_07_arming_and_posting_at_once", "an event may come after post_send has returned" },
	{ "SD_14_the_engine_executes_in_order", "the thread is the soft device's" },
	{ "SD_14_the_engine_retries_by_itself", "so it is" },
	{ "SD_14_many_threads_with_the_engine", "so it is" },
};

const char *rig_left_out(const char *test)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (!strcmp(left_out[i].test, test))
			return left_out[i].why;
	return NULL;
}
