/*
 * The engine: everything Shunt knows in one process (the simulator owns several). Core has no
 * globals; everything hangs off this object.
 */
#ifndef SHUNT_CORE_ENGINE_H
#define SHUNT_CORE_ENGINE_H

#include <sys/resource.h>
#include "core/api.h"
#include "core/stream/short_lived.h"
#include "core/base/config.h"
#include "core/device/fault.h"
#include "core/poll/group.h"
#include "core/lane/lane.h"
#include "core/lane/lane_serve.h"
#include "core/stream/left.h"
#include "core/link/link.h"
#include "core/loop/loop.h"
#include "core/base/log.h"
#include "core/base/narrow.h"
#include "core/loop/porter.h"
#include "core/stream/stream.h"
#include "core/stream/stream_end.h"
#include "core/stream/stream_error.h"
#include "core/stream/streams.h"

struct shunt_service;
struct shunt_rendezvous;
struct shunt_fork_slots;

struct shunt_totals {	/* of streams that are gone; streams_lock */
	uint64_t streams, linked;
	uint64_t uncounted;	/* ended as plain ones: what the kernel carried of them is not known */
	struct shunt_bytes tx, rx;
};

struct shunt_engine {
	struct shunt_config config;
	enum shunt_device_choice device_choice;	/* of the configuration, as is the next */
	const char *device_name;
	char device_error[200];	/* why there is none, "" if there is; group.lock */
	const struct shunt_sys *sys;
	struct shunt_files *files;
	struct shunt_group group;
	const struct shunt_lane_hooks *lane_hooks;	/* of all lanes */
	struct shunt_loop loop;		/* of the service thread */
	/* Starts the service thread if there is none: shunt_service_start(). False: it could not be started. */
	bool (*serve)(struct shunt_engine *engine);
	struct shunt_service *service;	/* NULL until a connection could use it */
	enum shunt_reason no_service;	/* why there was none when it was wanted last; service_lock */
	struct shunt_lock seats_lock;	/* who may take seats away: see lock.h */
	struct shunt_lock service_lock;
	struct shunt_lock leave_lock;	/* of the thread that ends the service thread (leave.c) */
	_Atomic uint32_t leaving;	/* calls under way for which the service thread has ended */
	_Atomic int stays;		/* enum shunt_reason: why no connection leaves TCP from now on; NONE: they do */
	uint32_t times_left;		/* how often the service thread has ended; leave_lock */
	_Atomic int links_up;		/* links that carry or may carry streams */
	_Atomic int breaking;		/* links whose streams are going over to TCP */
	bool finished;
	bool single_core;		/* polling could only keep the peer from running */
	bool manual;			/* the simulator steps the service itself */
	pid_t pid;
	pid_t parent;			/* of the process we were forked from, if any */
	uint32_t forks;			/* how many lie between the first process and us */
	uint64_t born;
	uint64_t trim_every, ring_quiet;	/* ns, see reclaim.c; tests shorten them */
	_Atomic uint64_t random;

	struct shunt_lock streams_lock;
	struct shunt_stream *free_streams;
	struct shunt_epset *free_sets;
	_Atomic(struct shunt_stream *) reap;	/* released by both ends */
	struct shunt_stream **slabs;	/* of SHUNT_SLAB_STREAMS each */
	uint32_t slab_count;
	struct shunt_totals totals;
	uint64_t reasons[SHUNT_REASONS];	/* how many connections stayed on TCP because of each */

	struct shunt_fork_slots *shared;	/* what relatives see, too; NULL: not needed yet (fork_slots.c) */
	struct shunt_lock rendezvous_lock;
	struct shunt_rendezvous *rendezvous;	/* one for each address that we listen at */
	struct shunt_porter porter;

	struct shunt_lock wakers_lock;
	int wakers[64];
	int waker_count;

	_Atomic uint32_t brief[SHUNT_SHORT_LIVED_PLACES];	/* see short_lived.h */
	_Atomic unsigned int uring;	/* enum shunt_uring; it only rises */

	_Atomic uint64_t upgrades, handbacks, claims, accepted_claims, refused_claims, redirects, haves;
	_Atomic uint64_t distrusted, grows, shrinks, pins, failovers, probes;
	_Atomic uint64_t comebacks, returns;	/* links made anew after a failover, streams that are on them again */
	_Atomic uint64_t mocked;	/* an operator's words that have changed a stream's track */
	_Atomic uint64_t slow_looks, slow_lanes;	/* of the rule: see mock.h */
	_Atomic uint64_t left[SHUNT_LEFTS];	/* how often sending directions left the link, by cause */
	uint64_t send_buffer;	/* bytes that the kernel's may grow to here (overflow.h) */
	_Atomic uint64_t pin_from;	/* bytes; a blocking send from here on may be fetched (zero_copy.h) */
	bool pin_from_chosen;		/* service thread */
	struct shunt_fault fault;	/* last: large, and cold while there is no rule */
};

/* The program has limited its address space (RLIMIT_AS, setrlimit(2)): what a link maps would be missing for it. */
/* The hooks that its polls call. */
extern const struct shunt_hooks shunt_engine_hooks;

static inline bool shunt_engine_is_confined(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/* What the program has there. */
static inline struct shunt_file *shunt_file(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_files_get(engine->files, fd);

	return file && file->kind < SHUNT_FILE_CLOSED ? file : NULL;
}

/* The lock of a stream has been taken: does `fd` still mean it? */
static inline bool shunt_stream_is(struct shunt_engine *engine, int fd, struct shunt_stream *stream)
{
	return shunt_files_get(engine->files, fd) == &stream->file;
}

/* --- own_fds.c: descriptors of our own --- */

/*
 * Around the making of descriptors: for an instant they have low numbers, or high ones that are not marked
 * yet, and a program that closes everything would close them too. May be nested.
 */
void shunt_own_fds_begin(struct shunt_engine *engine);
void shunt_own_fds_end(struct shunt_engine *engine);
/* Moves fd high, marks it private and close-on-exec. The new number, or -errno (fd is closed). */
int shunt_own_fds_adopt(struct shunt_engine *engine, int fd);
/* Makes one with the call and adopts it. */
#define shunt_own_fds_make(engine, call)				\
	({								\
		int made_;						\
									\
		shunt_own_fds_begin(engine);				\
		made_ = shunt_own_fds_adopt(engine, call);		\
		shunt_own_fds_end(engine);				\
		made_;							\
	})
void shunt_own_fds_close(struct shunt_engine *engine, int fd);
/* The same where somebody else closes it. */
void shunt_own_fds_forget(struct shunt_engine *engine, int fd);

/* A private duplicate of any descriptor. */
int shunt_own_fds_copy(struct shunt_engine *engine, int fd);

/* --- service.c --- */

/* See engine.serve. */
bool shunt_service_start(struct shunt_engine *engine);
/* One round, waiting at most `timeout_ms`. */
void shunt_service_step(struct shunt_engine *engine, int timeout_ms);
void shunt_service_abandon(struct shunt_engine *engine);

/* --- listen.c --- */

/* Offers a rendezvous for the address that `fd` listens on, or joins who does; withdraws it. */
void shunt_listen_offer(struct shunt_engine *engine, int fd);
/* We accept there. */
void shunt_listen_accepts(struct shunt_engine *engine, struct shunt_rendezvous *rendezvous);
void shunt_listen_withdraw(struct shunt_engine *engine, struct shunt_stream *stream);
/* The service thread has ended and may begin anew: so it does, if the program listens. */
void shunt_listen_again(struct shunt_engine *engine);

/* --- tx.c, rx.c --- */

/* The kernel's connection is over, in order or by a reset. */
bool shunt_stream_tcp_closed(struct shunt_stream *stream);
/* A reset's error, 0 when it has been reported. */
int shunt_stream_pop_error(struct shunt_stream *stream);
/* The kernel says an error once, and has said it to us instead of the program. */
void shunt_stream_was_reset(struct shunt_stream *stream, int error);
/* TCP_CORK was set or cleared. */
void shunt_stream_corked(struct shunt_stream *stream, bool on);
/* What waits for more that was announced waits no longer. tx.lock held. */
void shunt_stream_push(struct shunt_stream *stream);
/* The peer has closed: the kernel takes what is sent, gets a reset for it, and says so to the next call. tx.lock held. */
void shunt_tx_leave_link(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* The end of the direction, behind everything sent. tx.lock held. */
void shunt_tx_finish(struct shunt_stream *stream);
/* The same, and the end of the kernel's socket `fd`, then or when it may be. */
void shunt_tx_end(struct shunt_stream *stream, int fd);
uint64_t shunt_stream_deadline(struct shunt_engine *engine, int fd, struct shunt_stream *stream,
			       bool receive);

/* --- track.c: moving a direction between the tracks --- */

/* tx.lock held: changes tracks if it is wanted and possible now. */
void shunt_track_choose(struct shunt_engine *engine, struct shunt_stream *stream);
/* The same where the program may be sending nothing, because tx.held has changed. tx.lock held. */
void shunt_track_reconsider(struct shunt_engine *engine, struct shunt_stream *stream);
/* rx.lock held: passes announced switches and ring changes that are due. */
void shunt_track_settle(struct shunt_engine *engine, struct shunt_stream *stream);
/* tx.lock held: says that the direction is on `track` from here on. */
void shunt_track_announce(struct shunt_engine *engine, struct shunt_stream *stream,
			  enum shunt_track track);

/* --- reclaim.c: memory that is not needed goes back --- */

#define SHUNT_RECLAIM_EVERY 1000000000ull
#define SHUNT_RING_QUIET 5000000000ull

/* --- retire.c: back to the kernel for good --- */

/* Begins it; the peer answers RETIRED. Any thread. */
void shunt_retire_begin(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason);
/* The peer has answered and has everything: the stream becomes the kernel's. True: it is, or the link is over. */
bool shunt_retire_complete(struct shunt_engine *engine, struct shunt_stream *stream);
/* Waits until bytes that were readable before can be read from the kernel, or do not come soon. No lock held. */
void shunt_retire_await_bytes(struct shunt_engine *engine, int fd, int wanted);
/* The peer wants our direction on TCP, from `offset` again. Service thread. */
void shunt_retire_asked(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t offset,
			uint64_t announced);
/* Answers what can be answered by now; is there more? Service thread. */
void shunt_retire_run(struct shunt_task *task);
bool shunt_retire_waits(struct shunt_service *service);
/* The peer has answered. Service thread. */
void shunt_retire_answered(struct shunt_engine *engine, struct shunt_stream *stream, bool done);
/* Who waits for SHUNT_READY_ANSWERED is to look. Any thread. */
bool shunt_retire_goes_on(struct shunt_stream *stream);
/* tx.lock held: writes what must go over TCP again. 0, or -errno while some is left. */
int shunt_retire_resend(struct shunt_engine *engine, int fd, struct shunt_stream *stream);

/* --- failover.c: a queue pair that has died --- */

/*
 * Ours has, or the peer's: all of the link's are stopped. False: what they brought last was out of turn, so the
 * link is to be killed. Else shunt_failover_tell() comes next. Service thread.
 */
bool shunt_failover_begin(struct shunt_link *link, const char *why);
/* Tells the peer of every stream how far the link had brought it. Service thread. */
void shunt_failover_tell(struct shunt_link *link);
/* The program has closed the stream: unless the peer may lack bytes, the broken link need not keep it. tx.lock held. */
void shunt_failover_let_go(struct shunt_stream *stream);
/* An operator's word: the queue pairs of all links on which nothing is lost with them. How many. Service thread. */
int shunt_failover_all(struct shunt_engine *engine);
/* RESUME or RESUMED has come. Service thread. */
void shunt_failover_message(struct shunt_link *link, const struct shunt_message *message);
/* Both ends have told all: the link may go. Service thread. */
bool shunt_failover_over(struct shunt_link *link);

/* --- fork_handover.c: streams that a fork has given two owners --- */

/* Whose link it is on hands the stream back to the kernel; waits. 0 or -errno; plain either way but with -ENOMEM,
 * which is for now: the program must not get at the socket. */
int shunt_fork_handover_ask(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/*
 * In a child of vfork(): the parent, whose stream it is, hands it back to the kernel. 0 or -errno.
 */
int shunt_fork_handover_ask_parent(struct shunt_engine *engine, struct shunt_stream *stream);
int shunt_fork_handover_listen(struct shunt_engine *engine);
/* A relative has come: see loop.h. */
void shunt_fork_handover_serve(struct shunt_source *source, uint32_t events);
/*
 * A relative wants this stream; `fd`: its knock, hung up on when it is answered. Takes the caller's
 * hold. Service thread.
 */
void shunt_fork_handover_asked(struct shunt_engine *engine, struct shunt_stream *stream, int fd);
/* Nonces have come that such children have waited for. Service thread. */
void shunt_fork_handover_proven(struct shunt_engine *engine);
/* The retirement a child asked for is over. */
void shunt_fork_handover_answer(struct shunt_engine *engine, struct shunt_stream *stream);

/* --- inbound.c --- */

/* Applies one completion. group.lock held. */
void shunt_inbound_apply(struct shunt_engine *engine, const struct ibv_cq *cq, const struct ibv_wc *wc);

/* The peer's end is gone. group.lock held. */
void shunt_inbound_reset(struct shunt_engine *engine, struct shunt_stream *stream);
/* The peer's reader has come so far. NULL, or what is wrong with that. group.lock held. */
const char *shunt_inbound_credit(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t upto);

/* --- stats.c --- */

char *shunt_stats_json(struct shunt_engine *engine, size_t *bytes);
void shunt_stats_write(struct shunt_engine *engine);
int shunt_stats_listen(struct shunt_engine *engine);
/* A reader has come: see loop.h. */
void shunt_stats_serve(struct shunt_source *source, uint32_t events);
void shunt_bytes_add(struct shunt_bytes *bytes, uint64_t offset, uint64_t count, bool link);

/* --- wait.c --- */

/*
 * Until the stream is ready for one of `events`, a signal, or the deadline (SHUNT_NEVER: none).
 * 0: look again; -EINTR; -EAGAIN: the deadline passed. No lock held.
 */
int shunt_wait_stream(struct shunt_engine *engine, struct shunt_stream *stream, uint32_t events,
		      uint64_t deadline);
/*
 * The same inside a blocking call, which a close of the descriptor does not end. `lock` is given up meanwhile.
 * `moved`: the call has moved bytes; a cancellation of the thread ends the wait with -EINTR, and not the thread.
 */
int shunt_wait_call(struct shunt_engine *engine, struct shunt_stream *stream, struct shunt_lock *lock,
		    uint32_t events, uint64_t deadline, bool moved);
/* Beside the poll bits and EPOLLET and its like, which have the highest: */
#define SHUNT_READY_TRACK (1u << 22)	/* the tracks or the state have changed: epoll registrations follow */
#define SHUNT_READY_RELEASED (1u << 23)	/* the same where the peer names the stream no more: by itself that is no edge */
#define SHUNT_READY_ANSWERED (1u << 24)	/* a retirement has been answered, and what the peer wants again is written */
#define SHUNT_READY_ARRIVED (1u << 25)	/* bytes or the end have come, perhaps behind unread ones on TCP */
#define SHUNT_READY_SETTLED (1u << 26)	/* a sender may go on over TCP, which the kernel thinks it could all the time */
#define SHUNT_READY_FETCHED (1u << 27)	/* the device has fetched what was posted from the program's buffer */
#define SHUNT_READY_OURS 0x0fc00000u	/* all of these */

/* Which of IN, OUT, RDHUP, HUP, ERR are true in user space. */
uint32_t shunt_ready_user(struct shunt_stream *stream);
/* What the kernel has reported, with what a reset makes true in tcp_poll() of a stream on a link. */
uint32_t shunt_ready_reset(struct shunt_stream *stream, uint32_t reported);
/* What the kernel must be asked for on behalf of who wants `wanted`; 0: nothing, not even errors. */
uint32_t shunt_ready_kernel(struct shunt_stream *stream, uint32_t wanted);

static inline uint64_t shunt_now(struct shunt_engine *engine)
{
	return engine->sys->now();
}

#endif
