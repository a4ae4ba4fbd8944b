/*
 * Two engines in one thread and pairs of streams between them, so that what a lane posts can be counted exactly and
 * nothing depends on time: what memory.c and the program around batch.c stand on.
 */
#ifndef SIM_BED_H
#define SIM_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/sim/pair.h"

#define PAIRS 100
#define BUFFER 65536	/* most bytes of one put() or get() */

enum batch { SINGLE, MERGE, CHAIN, HYBRID };

struct bed {
	struct pair pair[PAIRS];
	int pairs;
	uint64_t sent[PAIRS][2], received[PAIRS][2];	/* by sending side */
	struct shunt_lane *lane[2];	/* of the connecting engine, and of the other */
	struct shunt_lane_counters before;
	uint64_t wrs_before, bytes_before;
};

extern struct bed bed;

struct shunt_config small_config(enum batch batch);
/* Two new engines and so many pairs on one link, which may be none yet; counts from here. The former engines are left as they are. */
void make_bed(const struct shunt_config *config, int pairs);
/* One more, on the link. */
void add_pair(void);
/* Both directions are. */
bool on_link(struct side *side);
/* Everything is closed, and nobody was told anything wrong. */
void end_bed(void);

/* --- moving bytes; the pattern is checked --- */

/* One send. Returns how much was taken. */
size_t put(int i, int side, size_t bytes, int flags);
/* Reads at most `most` of what `side` has sent. */
size_t get(int i, int side, size_t most);
/* Both engines do what their threads would. */
void turn(void);
/* Until nothing comes any more. */
void drain(void);
void all_arrived(void);

/* --- what keeps the connecting engine's lane from posting --- */

/* Somebody else is using it. */
void busy(void);
void free_again(void);
/* Its device carries nothing out. */
void stall(bool on);

/* --- what that lane has posted since the bed was made --- */

#define COUNTED(field) (bed.lane[0]->counters.field - bed.before.field)
#define WRS() (bed.lane[0]->sent - bed.wrs_before)
#define BYTES() (bed.lane[0]->window.posted - bed.bytes_before)
#define DATA_WRS() (COUNTED(direct) + COUNTED(merged))

struct tally {
	uint64_t wr, doorbells, bytes;
};

struct tally tally_so_far(void);
/* What the statistics of engine i say. */
uint64_t counted(int i, const char *name);

/* --- the tests that batch.c runs from other files --- */

/* credit.c */
void window_shrinks_wrs_grow(void **state);
void window_is_kept(void **state);
void incast_without_rnr(void **state);
void without_credit_there_is_rnr(void **state);
void mutual_starvation_ends(void **state);
void a_send_waits_once(void **state);

/* events.c */
void sends_wake_nobody(void **state);
void sends_wake_who_waits_for_them(void **state);

/* fetch.c */
void inline_or_fetched(void **state);
void staged_bytes_stay_until_fetched(void **state);
void stage_holds_no_more_than_it_can(void **state);
void seat_stays_until_fetched(void **state);
void pinned_from_the_threshold_on(void **state);
void seat_stays_while_pinned(void **state);
void nothing_but_large_blocking_sends_is_pinned(void **state);
void without_memory_tcp_carries_on(void **state);

/* faults.c */
void accepted_bytes_are_missed(void **state);
void held_streams_are_let_go(void **state);
void bad_wr_at_every_position(void **state);
void unsignaled_chains_do_not_fill_the_queue(void **state);
void ended_lanes_are_counted(void **state);

#endif
