/* SPDX-License-Identifier: MIT */
/*
 * The engine: everything Shunt knows in one process (the simulator owns several). Core has no
 * globals; everything hangs off this object.
 */
#ifndef SHUNT_CORE_ENGINE_H
#define SHUNT_CORE_ENGINE_H

#include "core/api.h"
#include "core/stream/short_lived.h"
#include "core/stream/spare.h"
#include "core/base/config.h"
#include "core/device/fault.h"
#include "core/fd/young.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_slots.h"
#include "core/poll/group.h"
#include "core/lane/lane.h"
#include "core/lane/lane_serve.h"
#include "core/lane/lanes.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/left.h"
#include "core/stream/plain.h"
#include "core/link/common.h"
#include "core/link/link.h"
#include "core/peer/limits.h"
#include "core/loop/loop.h"
#include "core/base/log.h"
#include "core/base/narrow.h"
#include "core/loop/porter.h"
#include "core/stream/stream.h"
#include "core/stream/stream_end.h"
#include "core/stream/stream_error.h"
#include "core/stream/streams.h"
#include "core/stream/work.h"
#include "core/trace/slow_step.h"
#include "core/trace/tap.h"

struct shunt_service;
struct shunt_rendezvous;
struct shunt_verdict;

struct shunt_totals {	/* of streams that are gone; streams_lock */
	uint64_t streams, linked;
	uint64_t uncounted;	/* ended as plain ones: what the kernel carried of them is not known */
	struct shunt_bytes tx, rx;
	uint64_t sizes[SHUNT_SIZE_BUCKETS];	/* of their sends */
};

struct shunt_engine {
	struct shunt_config config;
	enum shunt_device_choice device_choice;	/* of the configuration */
	const uint8_t *key;	/* of SHUNT_KEY (keyfile.h); NULL: links between hosts have none, or lacks_key */
	bool lacks_key;		/* a key is wanted and missing: no links between hosts */
	const struct shunt_sys *sys;
	_Alignas(32) struct shunt_tapping tapping; /* on the line of fds.files, which each call reads */
	struct shunt_fds fds;
	struct shunt_group group;
	struct shunt_links links;
	struct shunt_lanes lanes;
	struct shunt_forks forks;
	const struct shunt_end_hooks *end_hooks;	/* of all streams */
	const struct shunt_link_hooks *link_hooks;	/* of all links */
	struct shunt_loop loop;		/* of the service thread */
	/* Starts the service thread, unless it runs: shunt_service_start(). False: it could not be started. */
	bool (*serve)(struct shunt_engine *engine);
	struct shunt_service *_Atomic service; /* NULL until a connection could use it */
	enum shunt_cause no_service;	/* why there was none when it was wanted last; service_lock */
	struct shunt_seat_pool seats;
	struct shunt_lock service_lock;
	struct shunt_lock leave_lock;	/* of the thread that ends the service thread (leave.c) */
	_Atomic uint32_t leaving;	/* calls under way for which the service thread has ended */
	_Atomic int stays;		/* enum shunt_cause: why no connection leaves TCP from now on; NONE: they do */
	uint32_t times_left;		/* how often the service thread has ended; leave_lock */
	struct shunt_strangers strangers;
	_Atomic uint64_t evicted; /* links that ended because nothing used them */
	_Atomic uint64_t impatient;	/* ns; until then no call waits for EXPECT (tx.c) */
	_Atomic int breaking;		/* links whose streams are going over to TCP */
	bool ruled;		/* the configuration's rules have been read; service thread, as is the next */
	struct shunt_verdict *verdict;	/* the rules in force (core/peer/verdict.h); NULL: none */
	struct shunt_identity identity;	/* names our doors; since there is a service thread */
	uint64_t born;
	uint64_t trim_every;	/* ns, see reclaim.c; tests shorten them */
	_Atomic uint64_t random;

	struct shunt_lock streams_lock;
	struct shunt_stream *free_streams;
	struct shunt_epset *free_sets;
	_Atomic(struct shunt_stream *) reap;	/* released by both ends */
	struct shunt_stream **slabs;	/* of SHUNT_SLAB_STREAMS each */
	uint32_t slab_count;
	struct shunt_totals totals;
	uint64_t causes[SHUNT_CAUSES];	/* how many connections stayed on TCP because of each */

	struct shunt_lock rendezvous_lock;
	struct shunt_rendezvous *rendezvous;	/* one for each address that we listen at */
	struct shunt_porter porter;
	struct shunt_stream_work work;

	struct shunt_spares spares;
	_Atomic uint32_t brief[SHUNT_LISTENER][SHUNT_SHORT_LIVED_PLACES];	/* by role; see short_lived.h */
	_Atomic bool brief_ones;	/* brief connections have been expected somewhere: some may be young */
	_Atomic bool doubted_ones;	/* streams have been in doubt (core/stream/doubt.h) */
	_Atomic(struct shunt_young *) young[SHUNT_YOUNG_BLOCKS];	/* blocks of records by number; NULL: not needed yet */
	void (*grow_young)(struct shunt_engine *engine, bool counted);	/* shunt_young_grow_all() */
	_Atomic bool paces;	/* a limit is in force, our own or one that a link was told: see core/qos/pacing.h */
	_Atomic unsigned int uring;	/* enum shunt_uring; it only rises */
	_Atomic uint64_t readers_until;	/* when peers' readers have had their moment (retire.c); 0: nobody has asked */

	_Atomic uint64_t upgrades, handbacks, claims, accepted_claims, refused_claims, redirects, haves;
	_Atomic uint64_t strayed_claims;	/* of them, those from another host for addresses that are not the channel's */
	_Atomic uint64_t other_keys;	/* questions of hosts that have another key than ours, or one of the two has none */
	_Atomic uint64_t turned_away;	/* processes that came to a gate without a ticket, or from this host */
	_Atomic uint64_t proven, disproven;	/* connections that a peer has shown it holds, and that it could not */
	_Atomic uint64_t grows, shrinks, pins, failovers, probes, nops;
	_Atomic uint64_t reconnects, returns;	/* links made anew after a failover, streams that are on them again */
	_Atomic uint64_t bypassed, bypassing;	/* streams reset for bytes that went past a link (core/stream/bypass.h): a peer's, and our program's */
	_Atomic uint64_t mocked;	/* an operator's words that have changed a stream's track */
	_Atomic uint64_t slow_looks, slow_lanes;	/* of the rule: see mock.h */
	_Atomic uint64_t left[SHUNT_LEFTS];	/* how often sending directions left the link, by cause */
	uint64_t send_buffer;	/* bytes that the kernel's may grow to here (overflow.h) */
	_Atomic uint8_t traces;	/* SHUNT_TRACES_… (core/stream/traced.h): a send looks whether it is to be followed */
	struct shunt_fault fault;	/* large, and cold while there is no rule */
	struct shunt_steps steps;	/* that took long */
};

/* The engine whose context or task this is. */
#define shunt_engine_of(part, member) shunt_loop_owner(part, struct shunt_engine, member)

static inline struct shunt_engine *shunt_stream_engine(const struct shunt_stream *stream)
{
	return shunt_engine_of(stream->group, group);
}

/* The hooks that its polls call. */
extern const struct shunt_hooks shunt_engine_hooks;

/* The contexts of the rooms have these surroundings, and the settings of the engine. */
void shunt_engine_surround(struct shunt_engine *engine, const struct shunt_sys *sys);

/* The program's file of that number. */
static inline struct shunt_file *shunt_file(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_files_get(engine->fds.files, fd);

	return file && file->kind < SHUNT_FILE_CLOSED ? file : NULL;
}

/* The lock of a stream has been taken: does `fd` still mean it? */
static inline bool shunt_stream_is(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	return shunt_files_get(engine->fds.files, fd) == &stream->file;
}

/* A stream may be on the other track: if a limit is in force, the socket is told. Any lock may be held. */
static inline void shunt_engine_paces(struct shunt_engine *engine)
{
	if (atomic_load_explicit(&engine->paces, memory_order_relaxed) && engine->service)
		shunt_loop_post(&engine->loop, &engine->work.tasks.pacing);
}

/* --- reclaim.c: memory that is not needed goes back --- */

#define SHUNT_RECLAIM_EVERY 1000000000ull
#define SHUNT_RING_QUIET 5000000000ull

static inline uint64_t shunt_now(struct shunt_engine *engine)
{
	return engine->sys->now();
}

#endif
