/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/admin/stats.h"
#include "core/await.h"
#include "core/base/lsan.h"
#include "core/stream/destroyed.h"
#include "core/stream/spare.h"
#include "core/stream/kept.h"
#include "core/engine.h"
#include "core/accept.h"
#include "core/fd/own_fds.h"
#include "core/fd/thread.h"
#include "core/lane/copying.h"
#include "core/lane/fault_device.h"
#include "core/lane/roster.h"
#include "core/peer/claim_state.h"
#include "core/peer/hear.h"
#include "core/peer/listen.h"
#include "core/peer/meeting.h"
#include "core/poll/cancel.h"
#include "core/poll/devices.h"
#include "core/qos/pacing.h"
#include "core/qos/throttle.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/delivered.h"
#include "core/stream/doubt.h"
#include "core/stream/inbound.h"
#include "core/stream/kernel_tcp.h"
#include "core/stream/marks.h"
#include "core/stream/hand_back.h"
#include "core/stream/rest.h"
#include "core/stream/settle.h"
#include "core/stream/shutdown.h"
#include "core/stream/traced.h"
#include "core/wait/companion.h"
#include "core/wait/epset.h"
#include "core/wait/watch.h"
#include "core/trace/book.h"
#include "core/wait/epsets.h"
#include "core/young.h"
#include "core/born.h"
#include "core/peer/links.h"

#define LINGER 5000000000ull	/* ns that exit() waits for a peer to make room for staged bytes */

static void device_lost(struct shunt_device *device)
{
	struct shunt_engine *engine = shunt_engine_of(device->group, group);

	shunt_lock_take(&device->group->lock);
	/* Before the channel's number becomes another file's. The bell of several devices goes on ringing. */
	if (engine->group.channel_set && engine->group.channel_fd == device->channel->fd)
		shunt_companion_silence(engine);
	shunt_lock_leave(&device->group->lock);
	shunt_links_device_lost(device);
}

const struct shunt_hooks shunt_engine_hooks = {
	.device = { .opened = shunt_fault_device_attach, .failed = shunt_links_qp_failed, .overflowed = shunt_links_cq_failed, .lost = device_lost, .joined = shunt_links_qp_joined },
	.apply = shunt_inbound_apply,
	.notify = shunt_epset_notify,
	.ring_in = shunt_companion_ring_in,
	.shared = shunt_watch_shared,
	.repost = shunt_roster_post,
	.stalls = shunt_roster_stalls,
	.late = shunt_inbound_late,
	.settle = shunt_settle_all,
	.condemned = shunt_lanes_condemn,
};

static const struct shunt_end_hooks end_hooks = {
	.unwatch = shunt_epset_drop_stream,
	.withdraw = shunt_listen_withdraw,
	.births = shunt_born_births,
	.births_end = shunt_born_end,
	.births_bar = shunt_born_bar,
	.births_look = shunt_born_look,
	.bypassed = shunt_destroyed_bypassed,
};

static struct shunt_files *make_table(void)
{
	struct rlimit limit = { 1024, 1024 };
	struct shunt_files *files;
	size_t slots;

	getrlimit(RLIMIT_NOFILE, &limit);
	slots = limit.rlim_max > SHUNT_FILES_MAX ? SHUNT_FILES_MAX : limit.rlim_max;
	files = shunt_lsan_map(sizeof(*files) + slots * sizeof(files->slot[0]));
	if (!files)
		return NULL;
	files->limit = slots;
	files->closed.kind = SHUNT_FILE_CLOSED;
	return files;
}

static void rank_locks(struct shunt_engine *engine)
{
	shunt_lock_rank(&engine->leave_lock, SHUNT_RANK_LEAVE);
	shunt_lock_rank(&engine->group.seats_lock, SHUNT_RANK_SEATS);
	shunt_lock_rank(&engine->service_lock, SHUNT_RANK_SERVICE);
	shunt_lock_rank(&engine->streams_lock, SHUNT_RANK_STREAMS);
	shunt_lock_rank(&engine->group.lock, SHUNT_RANK_GROUP);
	shunt_lock_rank(&engine->rendezvous_lock, SHUNT_RANK_RENDEZVOUS);
	shunt_lock_rank(&engine->fds.wakers.lock, SHUNT_RANK_WAKERS);
	shunt_lock_rank(&engine->porter.lock, SHUNT_RANK_PORTER);
}

void shunt_engine_surround(struct shunt_engine *engine, const struct shunt_sys *sys)
{
	engine->sys = engine->steps.sys = engine->fds.sys = engine->group.sys = sys;
	engine->steps.config = engine->group.config = &engine->config;
	engine->loop.porter = &engine->porter;
	engine->group.fault = &engine->fault;
	engine->fault.group = &engine->group;
	engine->group.common = &engine->lanes;
	engine->group.tapping = &engine->tapping;
	engine->loop.fds = &engine->fds;
	engine->loop.steps = &engine->steps;
	engine->porter.loop = engine->group.loop = engine->links.loop = &engine->loop;
}

struct shunt_engine *shunt_engine_create(const struct shunt_config *config, const struct shunt_sys *sys)
{
	struct shunt_engine *engine;
	const char *name;
	cpu_set_t cpus;

	if (posix_memalign((void **)&engine, 64, sizeof(*engine)))
		return NULL;
	memset(engine, 0, sizeof(*engine));
	engine->fds.files = make_table();
	if (!engine->fds.files) {
		free(engine);
		return NULL;
	}
	rank_locks(engine);
	engine->group.hooks = &shunt_engine_hooks;
	engine->config = *config;
	engine->device_choice = shunt_config_device(engine->config.device, &name);
	shunt_engine_surround(engine, sys);
	engine->lanes.hooks = &shunt_delivered_hooks;
	engine->end_hooks = &end_hooks;
	engine->link_hooks = &shunt_hear_hooks;
	engine->links.sent_nothing = shunt_witness_sent_nothing;
	engine->serve = shunt_service_start;
	engine->grow_young = shunt_young_grow_all;
	engine->forks.pid = getpid();
	engine->born = sys->now();
	engine->lanes.pin_from = UINT64_MAX;
	engine->trim_every = SHUNT_RECLAIM_EVERY;
	engine->lanes.ring_quiet = SHUNT_RING_QUIET;
	engine->random = config->seed;
	if (!config->seed && getrandom(&engine->random, sizeof(engine->random), GRND_NONBLOCK) < 0)
		engine->random = engine->born;
	shunt_traced_config(engine);
	shunt_short_lived_config(engine);
	shunt_fault_begin(&engine->fault, engine->config.fault);
	engine->group.single_core = get_nprocs() < 2;
	/* Its peer may be on the same core, and have what it writes in the same caches. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) > 1)
		engine->lanes.copy_near = shunt_copying_near();
	return engine;
}

void shunt_engine_key(struct shunt_engine *engine, const uint8_t *key, bool lacks)
{
	engine->key = key;
	engine->lacks_key = lacks;
}

struct shunt_fds *shunt_engine_fds(struct shunt_engine *engine)
{
	return &engine->fds;
}

struct shunt_group *shunt_engine_group(struct shunt_engine *engine)
{
	return &engine->group;
}

struct shunt_files *shunt_engine_files(struct shunt_engine *engine)
{
	return engine->fds.files;
}

/* exit() closes every connection, as the kernel would. */
static bool is_ours(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       !shunt_fork_slots_held(&stream->sharing);
}

static void say_end(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	if (atomic_load(&stream->state) != SHUNT_LINKED)
		return;
	if (shunt_kept_rests(stream)) {
		shunt_spare_give_up(stream);
		return;
	}
	shunt_spare_unshut(stream);
	if (shunt_streams_resets(stream, stream->fd))
		shunt_streams_reset(engine, stream, stream->fd);
	else
		shunt_tx_finish(stream);
	shunt_lane_request(stream->seat->lane, stream->seat, SHUNT_WORK_RELEASE);
}

static void say_ends(struct shunt_engine *engine, uint64_t until)
{
	struct shunt_sweep sweep = { .wants = is_ours };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		if (shunt_streams_take_last(stream, until)) {
			say_end(engine, stream);
			shunt_lock_leave(&stream->tx.lock);
		}
}

/* A child of ours may hold it too: it goes back to the kernel, which knows who is the last. */
static void retire_shared(struct shunt_engine *engine)
{
	shunt_files_each(engine->fds.files, fd) {
		struct shunt_file *file = shunt_file(engine, fd);
		struct shunt_stream *stream = (struct shunt_stream *)file;

		if (file && file->kind == SHUNT_FILE_STREAM &&
		    shunt_fork_slots_held(&stream->sharing) &&
		    atomic_load(&stream->state) == SHUNT_LINKED)
			shunt_stream_retire(engine, fd, stream, SHUNT_CAUSE_FORK);
	}
}

/* Streams on links have been handed back before. */
static int leave(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	if (stream->fd >= 0 && atomic_load(&stream->state) != SHUNT_LINKED)
		shunt_fork_slots_leave(&shunt_stream_engine(stream)->forks, &stream->sharing);
	return 0;
}

/* The modelled device ends with the process, and with it what it has not yet carried out. */
static void await_device(struct shunt_engine *engine, uint64_t until)
{
	while (engine->config.soft_model[0] && !shunt_roster_settled(&engine->group) &&
	       shunt_now(engine) < until)
		sched_yield();
}

/* A link may have something of ours, or one whose queue pair has died: what it lacks is still to be sent over TCP. */
static bool has_links(struct shunt_engine *engine)
{
	return atomic_load(&engine->lanes.links_up) || atomic_load(&engine->breaking) ||
	       (engine->service && atomic_load(&engine->work.resends));
}

/*
 * Other threads may still be running and using their streams. Nothing is torn down: the process
 * is about to end, and its peers learn the rest from the kernel.
 */
void shunt_engine_finish(struct shunt_engine *engine)
{
	int state;

	if (engine->group.finished || engine->forks.pid != getpid())
		return;
	engine->group.finished = true;
	state = shunt_cancel_off();
	shunt_meeting_finish(engine);
	shunt_listen_finish(engine);
	if (has_links(engine)) {
		uint64_t until;

		retire_shared(engine);
		until = shunt_now(engine) + LINGER;
		shunt_spares_leave(engine, until);
		shunt_hand_back_all(engine, until);
		shunt_throttle_open_all(engine);
		shunt_await_drained(engine, until);
		say_ends(engine, until);
		shunt_await_drained(engine, until);
		await_device(engine, until);
	}
	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, leave, NULL);
	shunt_lock_leave(&engine->streams_lock);
	if (engine->config.stats_path[0])	/* with what has just been posted */
		shunt_stats_write(engine);
	shunt_cancel_restore(state);
}

/* --- fork --- */

/*
 * From now on another process may hold the same sockets. A stream without a slot stays a candidate while its claim is
 * under way: the claim will fail. Until then the stream's flags and options are asked of the kernel at each call.
 */
static int share(struct shunt_stream *stream, void *arg)
{
	(void)arg;
	if (shunt_kept_rests(stream))
		return 0;	/* the child has no copy of its socket */
	if (atomic_load(&stream->state) == SHUNT_FRESH)
		stream->sharing.forked |= SHUNT_FORK_COPIED;
	if (atomic_load(&stream->state) == SHUNT_FRESH || shunt_fork_slots_counts(&stream->sharing))
		return 0;
	stream->sharing.forked |= SHUNT_FORK_LOST;
	atomic_fetch_or(&stream->mode, SHUNT_MODE_SHARED | SHUNT_MODE_UNCOUNTED);
	if (!shunt_stream_is_seated(stream) && atomic_load(&stream->state) == SHUNT_CANDIDATE) {
		shunt_doubt_share(stream);
		if (shunt_streams_note(shunt_stream_engine(stream), stream, SHUNT_CAUSE_FORK))
			shunt_decision_plain(stream, SHUNT_CAUSE_FORK);
	}
	return 0;
}

void shunt_engine_clone_prepare(struct shunt_engine *engine)
{
	shunt_signal_defer_enter();
	shunt_loading_wait(&engine->fds);
	shunt_numbers_enter(&engine->fds);	/* no handler runs before that is left */
	shunt_signal_defer_leave();
}

void shunt_engine_clone_parent(struct shunt_engine *engine)
{
	shunt_signal_defer_enter();
	shunt_numbers_leave(&engine->fds);
	shunt_loading_parted(&engine->fds);
	shunt_signal_defer_leave();
}

/*
 * Takes the locks, so that no thread that the child lacks holds one. No descriptor is in the making
 * that the child would keep without knowing it, as a peer's memory from its HELLO.
 */
/* Not analysed: the locks are held over the fork. */
SHUNT_NO_LOCK_ANALYSIS void shunt_engine_fork_prepare(struct shunt_engine *engine)
{
	struct shunt_sharing sharing = { .forks = &engine->forks };

	shunt_young_grow_all(engine, false);
	shunt_accept_share(engine);
	shunt_spares_share(engine);
	shunt_engine_clone_prepare(engine);
	shunt_lock_take(&engine->service_lock);
	shunt_lock_take(&engine->streams_lock);
	shunt_lock_take(&engine->group.lock);
	shunt_listen_share(engine);
	shunt_streams_each(engine, shunt_rest_share, &sharing);
	shunt_lock_take(&engine->fds.wakers.lock);
}

/* Not analysed: as above. */
SHUNT_NO_LOCK_ANALYSIS static void unlock_all(struct shunt_engine *engine)
{
	shunt_lock_leave(&engine->fds.wakers.lock);
	shunt_lock_leave(&engine->group.lock);
	shunt_lock_leave(&engine->streams_lock);
	shunt_lock_leave(&engine->service_lock);
}

void shunt_engine_fork_parent(struct shunt_engine *engine)
{
	shunt_streams_each(engine, share, NULL);
	unlock_all(engine);
	shunt_young_parted(engine);
	shunt_engine_clone_parent(engine);
}

static void inherit_seat(struct shunt_engine *engine, struct shunt_seat *seat)
{
	shunt_own_fds_close(&engine->fds, seat->out.fin_later.fd);
	seat->out.fin_later.fd = SHUNT_FIN_NOT_DUE;
	atomic_store(&seat->leaving.retiring, SHUNT_STAYING);	/* what rests is the parent's */
}

/*
 * The links are the parent's, and so is what lies in their rings. A connection on a link is asked for when the child
 * first touches it. An unused one belongs to the process that uses it first. Any other is the kernel's for both.
 */
static int inherit(struct shunt_stream *stream, void *arg)
{
	struct shunt_engine *engine = arg;
	uint8_t state;

	shunt_lock_free(&stream->rx.lock);
	shunt_lock_free(&stream->tx.lock);
	atomic_store(&stream->next_reap, NULL);	/* the list is the parent's */
	shunt_spare_inherit(engine, stream);
	stream->births = NULL;
	state = atomic_load(&stream->state);
	stream->sleepers = NULL;
	shunt_own_fds_close(&engine->fds, stream->tx.backlog.fd);
	stream->tx.backlog.fd = -1;
	stream->tx.backlog.linger.l_onoff = SHUNT_LINGERS_ITSELF;
	shunt_own_fds_close(&engine->fds, stream->rx.nonce.fd);
	atomic_store(&stream->rx.nonce.fd, -1);
	stream->refusing = false;
	shunt_traced_inherit(stream);
	shunt_marks_forget(stream);
	shunt_pacing_inherit(stream);
	stream->doubt.queued = false;	/* the list is the parent's */
	stream->possession = NULL;
	stream->proven_on = 0;
	atomic_store(&stream->handing.fd, -1);	/* it was asked of the parent */
	atomic_store(&stream->handing.wanted, false);
	if (shunt_stream_is_seated(stream))
		inherit_seat(engine, stream->seat);
	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	if (state == SHUNT_CANDIDATE && !shunt_fork_slots_counts(&stream->sharing)) {
		if (shunt_stream_is_seated(stream)) /* the seat is the parent's */
			atomic_store(&stream->state, SHUNT_PLAIN);
		else
			shunt_doubt_share(stream);
	} else if (state == SHUNT_LINKED)
		atomic_store(&stream->state, SHUNT_FOREIGN);
	stream->holds = 0;
	stream->sharing.forked |= SHUNT_FORK_INHERITED;
	return 0;
}

void shunt_engine_fork_child(struct shunt_engine *engine)
{
	unlock_all(engine);
	shunt_loading_forget(&engine->fds);
	shunt_lock_free(&engine->rendezvous_lock);
	shunt_lock_free(&engine->group.seats_lock);
	engine->porter = (struct shunt_porter) { .loop = &engine->loop, .lock = SHUNT_LOCK(PORTER), .waiting = engine->porter.waiting,
						 .room = engine->porter.room };
	shunt_lock_free(&engine->leave_lock);
	atomic_store(&engine->tapping.tap, NULL); /* the listener is the parent's, as are threads that were at work */
	atomic_store(&engine->tapping.users, 0);
	atomic_store(&engine->leaving, 0);	/* the thread that makes the call is the parent's */
	atomic_store(&engine->loop.no_new_privs, false);	/* the child has it from its parent, or not at all */
	engine->forks.doors = 0;
	atomic_store(&engine->fds.files->making, shunt_thread.making ? 1 : 0);	/* the other threads are gone */
	atomic_store(&engine->fds.files->closing, --shunt_thread.closing);
	engine->forks.pid = getpid();
	shunt_service_abandon(engine);
	shunt_devices_abandon(&engine->group);
	shunt_fault_device_empty(&engine->fault);
	atomic_store(&engine->lanes.links_up, 0);
	atomic_store(&engine->breaking, 0);
	atomic_store(&engine->paces, false);
	atomic_fetch_and(&engine->traces, SHUNT_TRACES_OURS);
	if (engine->lanes.book)
		shunt_trace_book_inherit(engine->lanes.book);
	engine->fds.wakers.count = 0;
	engine->links.space_thread = engine->links.space_links = 0;	/* the parent's: links are not mapped here */
	shunt_spares_abandon(engine);
	atomic_store(&engine->reap, NULL);	/* their seats and rings are the parent's */
	engine->totals = (struct shunt_totals) { 0 };
	shunt_streams_each(engine, inherit, engine);
	shunt_young_forked(engine);
	shunt_epset_inherit(engine);
	shunt_own_fds_abandon(&engine->fds);
	shunt_signal_defer_leave();	/* as shunt_numbers_leave() in the parent */
}
