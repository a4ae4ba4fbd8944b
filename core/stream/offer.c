/* SPDX-License-Identifier: MIT */
#include "core/stream/offer.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "core/base/address.h"
#include "core/leave.h"
#include "core/peer/rendezvous.h"
#include "core/stream/doubt.h"
#include "core/stream/uring.h"

/* us that a connection that is to become a spare waits to be claimed; twice as long where that was too short */
#define SEED_WAIT_LEAST 1000u
#define SEED_WAIT_MOST 16000u

/*
 * It is more than a query and its answer, which are over before a claim has been answered, and need not ask for the
 * time. Of threads that use it at once one may go uncounted.
 */
static bool lasts(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t uses = atomic_load_explicit(&stream->uses, memory_order_relaxed);

	atomic_store_explicit(&stream->uses, uses + 1, memory_order_relaxed);
	return shunt_short_lived_lasts(
		engine, uses, atomic_load(&stream->rx.head) + stream->tx.offset, stream->born);
}

/*
 * No service thread is started for a connection to another host that has not lasted. Where there is one it is asked
 * instead, because it knows the links that are up, and peers in SHUNT_DIR. A connection to an address of this host comes
 * from that address, unless the program has bound it: then it has to last, too.
 */
static bool leads_away(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	int saved = errno, fd = atomic_load(&stream->fd);
	uint8_t local[16];
	uint16_t port;
	bool away;

	if (engine->service || engine->config.dir[0] || fd < 0 ||
	    shunt_address_is_loopback(stream->dialled))
		return false;
	away = !engine->sys->getsockname(fd, (struct sockaddr *)&address, &length) &&
	       !shunt_address_of(&address, local, &port) &&
	       memcmp(local, stream->dialled, sizeof(local));
	if (away)
		atomic_store(&stream->lasting, SHUNT_LASTING_WAITS);
	errno = saved;
	return away;
}

bool shunt_offer_is_early(struct shunt_stream *stream)
{
	return shunt_config_live(&stream->group->config->brief) &&
	       atomic_load(&stream->lasting) < SHUNT_LASTING_PROVEN;
}

/* A connector that is to last before it is claimed, and has not. */
static bool is_to_last(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (!shunt_offer_is_early(stream))
		return false;
	if (!shunt_short_lived_expected(engine, SHUNT_CONNECTOR, stream->place) &&
	    atomic_load(&stream->lasting) != SHUNT_LASTING_WAITS && !leads_away(engine, stream))
		return false;
	if (!lasts(engine, stream))
		return true;
	atomic_store(&stream->lasting, SHUNT_LASTING_PROVEN);
	return false;
}

void shunt_offer_later(struct shunt_stream *stream)
{
	atomic_store(&stream->lasting, SHUNT_LASTING_WAITS);
	atomic_store(&stream->usage, SHUNT_USE_BEGUN);
}

/* Its program would be through with it before the peer has answered. */
static void await_claim(struct shunt_engine *engine, struct shunt_stream *stream)
{
	_Atomic uint32_t *place = &engine->spares.places[stream->place].wait;
	uint32_t wait = atomic_load(place);
	uint64_t until;

	wait = wait < SEED_WAIT_LEAST ? SEED_WAIT_LEAST : wait;
	until = shunt_now(engine) + wait * 1000ull;
	while (atomic_load(&stream->state) == SHUNT_CANDIDATE && shunt_now(engine) < until)
		engine->sys->yield();
	if (atomic_load(&stream->state) == SHUNT_CANDIDATE && wait < SEED_WAIT_MOST)
		atomic_store(place, 2 * wait);
}

void shunt_offer_used(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_stream_work *work = &engine->work;
	uint8_t none = SHUNT_USE_NONE;
	/* Three processes speak before somebody else's claim reaches us, and perhaps a link is made for this alone. */
	bool doubted = shunt_stream_is_doubted(stream),
	     elsewhere = stream->role == SHUNT_ACCEPTOR && stream->rendezvous &&
			 stream->rendezvous->fd < 0;

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return;
	if (atomic_load(&stream->usage) == SHUNT_USE_NONE)
		atomic_compare_exchange_strong(&stream->usage, &none, SHUNT_USE_BEGUN);
	if (stream->sharing.slot && !shunt_streams_ours(engine, stream))
		return;
	if (shunt_doubt_waits(engine, stream))
		return;
	/* Not now: so it is looked at again when the program uses it the next time. */
	if (!doubted && elsewhere && (!atomic_load(atomic_load(&stream->rendezvous->wanted)) ||
			  atomic_load(&stream->rendezvous->alone) || !lasts(engine, stream)))
		return;
	if (!doubted && stream->role == SHUNT_CONNECTOR && is_to_last(engine, stream))
		return;
	if (atomic_exchange(&stream->usage, SHUNT_USE_TOLD) == SHUNT_USE_TOLD)
		return;
	if (atomic_load(&engine->uring) == SHUNT_URING_RULES) {
		shunt_streams_plain(engine, stream, SHUNT_CAUSE_URING);
		return;
	}
	if (!doubted && stream->role == SHUNT_ACCEPTOR && !elsewhere &&
	    (!engine->service || !shunt_offer_awaits(work, stream->caller)))
		return;
	if (!engine->serve(engine)) {
		shunt_streams_plain(engine, stream,
				    shunt_leave_is_due(engine) ? shunt_leave_reason(engine) :
				    engine->no_service	       ? engine->no_service :
								 SHUNT_CAUSE_NO_THREAD);
		return;
	}
	shunt_streams_hold(stream);
	shunt_lock_take(&work->inbox_lock);
	stream->claim.next_inbox = work->offers;
	work->offers = stream;
	shunt_lock_leave(&work->inbox_lock);
	shunt_loop_post(&engine->loop, &work->tasks.claim_task_offers);
	if (__builtin_expect(atomic_load(&stream->lasting) == SHUNT_LASTING_SEED, 0))
		await_claim(engine, stream);
}

void shunt_offer_seed(struct shunt_engine *engine, int fd)
{
	struct shunt_file *file = shunt_file(engine, fd);

	if (file && file->kind == SHUNT_FILE_STREAM)
		atomic_store(&((struct shunt_stream *)file)->lasting, SHUNT_LASTING_SEED);
}

void shunt_offer_goes_on(struct shunt_stream *stream)
{
	if (atomic_load_explicit(&stream->lasting, memory_order_relaxed) == SHUNT_LASTING_WAITS &&
	    stream->role == SHUNT_CONNECTOR &&
	    shunt_short_lived_lasts(shunt_stream_engine(stream), 0,
				    atomic_load(&stream->rx.head) + stream->tx.offset, 0))
		shunt_offer_used(shunt_stream_engine(stream), stream);
}

struct shunt_stream *shunt_offer_take(struct shunt_stream_work *work)
{
	struct shunt_stream *stream;

	shunt_lock_take(&work->inbox_lock);
	stream = work->offers;
	work->offers = NULL;
	shunt_lock_leave(&work->inbox_lock);
	return stream;
}

void shunt_offer_release(struct shunt_stream_work *work)
{
	struct shunt_stream *stream = shunt_offer_take(work), *next;

	for (; stream; stream = next) {
		next = stream->claim.next_inbox;
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);
		shunt_streams_unhold(stream);
	}
}
