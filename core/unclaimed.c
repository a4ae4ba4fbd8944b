#include "core/unclaimed.h"
#include "core/claim.h"

#define BATCH 64	/* streams that are given to the kernel in one go */
#define MS 1000000ull

static uint64_t patience(const struct shunt_engine *engine)
{
	return engine->config.claim_ms * MS;
}

/* Candidates that could be claimed, and have carried a byte. */
static bool waits(struct shunt_stream *stream)
{
	return stream->role == SHUNT_ACCEPTOR && atomic_load(&stream->carried_since) && !stream->link && !stream->line &&
	       atomic_load(&stream->state) == SHUNT_CANDIDATE;
}

bool shunt_unclaimed_is_over(struct shunt_stream *stream)
{
	return waits(stream) && shunt_now(stream->engine) - atomic_load(&stream->carried_since) >= patience(stream->engine);
}

void shunt_unclaimed_begin(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	uint64_t never = 0;

	if (stream->role != SHUNT_ACCEPTOR || atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return;
	if (!atomic_compare_exchange_strong(&stream->carried_since, &never, shunt_now(engine)))
		return;	/* the other direction was first */
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->service->tasks.unclaimed, 0);
}

struct found {
	struct shunt_stream *streams[BATCH];
	int count;
	uint64_t now, next;	/* next: when the first of the others is due */
};

static int find(struct shunt_stream *stream, void *arg)
{
	struct found *found = arg;
	uint64_t due;

	if (stream->fd < 0 || !waits(stream))
		return 0;
	/* The owner of its address has been told, and whoever claims it there is sent here. */
	due = atomic_load(&stream->carried_since) + patience(stream->engine) * (stream->told ? 2 : 1);
	if (due > found->now) {
		found->next = due < found->next ? due : found->next;
		return 0;
	}
	stream->holds++;
	found->streams[found->count++] = stream;
	return found->count == BATCH;
}

/* Claims come to the owner of the address, who does not hear of what we have. */
static enum shunt_reason why(const struct shunt_stream *stream)
{
	const struct shunt_rendezvous *r = stream->rendezvous;

	return r && r->fd < 0 && r->turned_away ? SHUNT_REASON_ALONE : SHUNT_REASON_NO_SHUNT;
}

/* When the next is due; now, if there may be more. */
static uint64_t look(struct shunt_engine *engine, uint64_t now)
{
	struct found found = { .now = now, .next = SHUNT_NEVER };

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, find, &found);
	shunt_lock_leave(&engine->streams_lock);
	for (int i = 0; i < found.count; i++) {
		shunt_claim_stays(engine, found.streams[i], why(found.streams[i]));
		shunt_streams_unhold(found.streams[i]);
	}
	return found.count == BATCH ? now : found.next;
}

void shunt_unclaimed_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_service_of(task, unclaimed)->engine;
	uint64_t now = shunt_now(engine), soon = now + patience(engine) / 8, next = look(engine, now);

	/* Where connections come all the time, one look is for many of them. */
	shunt_task_at(task, next > now && next < soon ? soon : next);
}
