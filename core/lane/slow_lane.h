/* SPDX-License-Identifier: MIT */
/*
 * The rule about slow completions (core/peer/mock.c). A lane that waits for a completion and has had none
 * slow_ms later is slow. If that is so at slow_times looks in a row, the lane's streams send over TCP, for return_ms at first. The first WR under
 * way counts, not the last: a full window on a busy wire takes long, and is carried all the time. The service thread
 * looks only while the device has WRs that it has not carried out: elsewhere nothing is timed, and nothing woken.
 *
 * Three looks of 100 ms in a row come before a queue pair that does not answer at all is given up. A peer that stops
 * reading does not delay completions: the device generates them, not the program.
 */
#ifndef SHUNT_CORE_LANE_SLOW_LANE_H
#define SHUNT_CORE_LANE_SLOW_LANE_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_slow {	/* of a lane; service thread */
	bool waits;		/* at the last look a WR was under way that asks for a completion */
	uint64_t retired;	/* lane.retired then */
	uint32_t times;		/* looks in a row at which nothing had been completed */
	bool held;		/* the streams are, */
	uint64_t until;		/* until then */
	uint64_t hold;		/* which were so many ns */
};

#endif
