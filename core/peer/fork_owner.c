/* SPDX-License-Identifier: MIT */
#include "core/peer/fork_owner.h"
#include "core/fork/fork_slots.h"
#include "core/peer/deaf.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/retire.h"

#define AGAIN 10000000ull	/* ns until the peer is asked again whether a relative has a stream */
#define KNOCKS 16		/* that are looked at before others are heard */

/* Not while the peer's nonce is expected: neither owner may find that. */
static bool waits_for_proof(struct shunt_stream *stream)
{
	return shunt_stream_stays(stream) && atomic_load(&stream->state) == SHUNT_LINKED &&
	       !shunt_intake_final(&stream->seat->in.intake);
}

static void hand_over(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint8_t retiring;

	shunt_retire_begin(engine, stream, SHUNT_CAUSE_FORK);
	retiring = atomic_load(&stream->seat->leaving.retiring);
	if (retiring != SHUNT_RETIRING && retiring != SHUNT_TAKEN && !waits_for_proof(stream))
		shunt_retire_tell_relative(engine, stream);
}

void shunt_fork_owner_asked(struct shunt_engine *engine, struct shunt_stream *stream, int fd)
{
	atomic_store(&stream->handing.fd, fd);
	hand_over(engine, stream);
}

struct search {
	struct shunt_stream *found;
};

static int is_waiting(struct shunt_stream *stream, void *arg)
{
	struct search *search = arg;

	if (atomic_load(&stream->handing.fd) < 0 || !shunt_stream_stays(stream) ||
	    atomic_load(&stream->seat->in.proof.state) == SHUNT_EXPECTED)
		return 0;
	search->found = stream;
	stream->holds++;
	return 1;
}

/* Nonces have come that such children have waited for. */
static void hand_over_proven(struct shunt_engine *engine)
{
	struct search search;

	do {
		search.found = NULL;
		shunt_lock_take(&engine->streams_lock);
		shunt_streams_each(engine, is_waiting, &search);
		shunt_lock_leave(&engine->streams_lock);
		if (!search.found)
			return;
		hand_over(engine, search.found);
		shunt_streams_unhold(search.found);
	} while (true);
}

static bool is_lost(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	return atomic_load(&stream->seat->leaving.retiring) == SHUNT_TAKEN;
}

/* Streams that relatives have taken while this process was stopped: the program wants them, and the peer is to confirm. */
static void ask_for_lost(struct shunt_engine *engine, struct shunt_task *task)
{
	struct shunt_sweep sweep = { .wants = is_lost };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL) {
		shunt_retire_ask_again(stream);
		shunt_task_at(task, shunt_now(engine) + AGAIN);
	}
}

void shunt_fork_owner_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, loop.requests.fork_owner);

	shunt_proof_run(task);
	hand_over_proven(engine);
	ask_for_lost(engine, task);
}

static bool is_wanted(const struct shunt_stream *stream)
{
	return shunt_fork_slots_is_asked(&stream->sharing) ||
	       atomic_load(&((struct shunt_stream *)stream)->handing.wanted);
}

/*
 * One that somebody waits for whom nobody answers yet; those that are on no link are answered here.
 */
static int find_wanted(struct shunt_stream *stream, void *arg)
{
	struct search *search = arg;

	if (stream->fd < 0 || !is_wanted(stream))
		return 0;
	if (atomic_load(&stream->state) != SHUNT_LINKED) {
		shunt_fork_slots_tell(&shunt_stream_engine(stream)->forks, &stream->sharing, true);
		atomic_store(&stream->handing.wanted, false);
		return 0;
	}
	if (search->found || atomic_load(&stream->handing.fd) >= 0)
		return 0;
	search->found = stream;
	stream->holds++;
	return 0;
}

static void hear_knock(struct shunt_engine *engine, int fd)
{
	struct search search = { .found = NULL };

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, find_wanted, &search);
	shunt_lock_leave(&engine->streams_lock);
	if (search.found)
		shunt_fork_owner_asked(engine, search.found, fd);
	else
		shunt_porter_dismiss(&engine->porter, fd);
}

void shunt_fork_owner_serve(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service,
							 rights_source);
	struct shunt_engine *engine = service->engine;

	(void)events;
	if (shunt_deaf_shuts(service))
		return;
	for (int i = 0; i < KNOCKS && !shunt_porter_is_full(&engine->porter); i++) {
		int fd = shunt_deaf_accept(engine, service->rights_fd, SOCK_NONBLOCK);

		if (fd < 0)
			return;
		hear_knock(engine, fd);
	}
}
