#include "core/pin.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "core/cancel.h"
#include "core/engine.h"
#include "core/roster.h"
#include "core/thread.h"

#define SMALLEST (64 << 10)	/* of the sizes that are measured */
#define LARGEST (4 << 20)
#define ROUNDS 3

bool shunt_pin_pays(const struct shunt_stream *stream, int iovcnt, int flags)
{
	const struct shunt_tx *tx = &stream->tx;

	return iovcnt == 1 && tx->track == SHUNT_LINK && atomic_load(&stream->state) == SHUNT_LINKED &&
	       stream->lane->fetches && !tx->pin &&
	       !(flags & (MSG_DONTWAIT | MSG_MORE)) && !atomic_load(&stream->nonblocking) &&
	       !atomic_load(&tx->corked);
}

bool shunt_pin_take(struct shunt_stream *stream, struct shunt_pin *pin, const struct iovec *iov)
{
	struct shunt_engine *engine = stream->engine;

	/* No access flag: the device only reads it. Where that fails, the program is told by the copy's EFAULT. */
	pin->mr = shunt_fault_denies(SHUNT_DENY_MR) ? NULL :
		  stream->link->device->verbs->register_mr(stream->link->pd, iov->iov_base, iov->iov_len, 0);
	if (!pin->mr)
		return false;
	*pin = (struct shunt_pin) { .mr = pin->mr, .at = iov->iov_base, .bytes = iov->iov_len };
	shunt_streams_hold(stream);	/* also over a cancellation and a close */
	atomic_store(&stream->tx.pin, pin);
	atomic_fetch_add(&engine->pins, 1);
	return true;
}

/* The seat, and with it the link and its domain, has waited for this (lane.c: awaits_done). */
static void let_seat_go(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_group *group = &engine->group;
	bool dead = false;

	shunt_lock_take(&group->lock);
	if (stream->link && atomic_load(&stream->state) != SHUNT_LINKED) {
		dead = atomic_load(&stream->lane->failed);
		shunt_lane_enqueue(stream->lane, stream, SHUNT_WORK_DONE);
		shunt_roster_kick(engine, stream->lane);
	}
	if (dead) {	/* nobody is there to release it */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
		shunt_streams_released(stream, SHUNT_RELEASED_BY_PEER);
	}
	shunt_lock_leave(&group->lock);
	shunt_group_after(engine, group);
	if (dead)
		shunt_service_wake(engine);
}

/* tx.lock held. */
static void let_go(struct shunt_stream *stream)
{
	struct shunt_pin *pin = stream->tx.pin;

	stream->lane->link->device->verbs->deregister_mr(pin->mr);
	atomic_store(&stream->tx.pin, NULL);
	let_seat_go(stream);
}

/* tx.lock held; given up meanwhile. */
static void await_fetched(struct shunt_stream *stream)
{
	int state = shunt_cancel_off();

	while (!shunt_pin_fetched(stream)) {
		shunt_lane_request(stream->lane, stream, SHUNT_WORK_DONE);
		shunt_thread_begin();	/* a signal does not end this: what is on its way cannot be called back */
		shunt_wait_call(stream->engine, stream, &stream->tx.lock, SHUNT_READY_FETCHED, SHUNT_NEVER, false);
	}
	shunt_cancel_restore(state);
}

void shunt_pin_drop(struct shunt_stream *stream)
{
	await_fetched(stream);
	let_go(stream);
	shunt_streams_unhold(stream);
}

void shunt_pin_cancelled(void *arg)
{
	struct shunt_stream *stream = arg;

	shunt_lock_take(&stream->tx.lock);
	await_fetched(stream);
	let_go(stream);
	shunt_lock_leave(&stream->tx.lock);
	shunt_streams_end_orphan(stream->engine, stream);
	shunt_streams_unhold(stream);
}

void shunt_pin_posted(struct shunt_stream *stream, uint64_t number, uint64_t offset, const struct ibv_sge *sge, bool is_inline)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_pin *pin = tx->pin;

	if (pin->from == pin->to) {
		pin->from = offset;
		pin->first = (const char *)(uintptr_t)sge->addr;
	}
	pin->to = offset + sge->length;
	if (!is_inline || stream->lane->retains)
		atomic_store(&tx->pinned_wr, number);
}

size_t shunt_pin_copy(const struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_pin *pin = stream->tx.pin;

	if (!pin || from < pin->from || from >= pin->to)
		return 0;
	if (to > pin->to)
		to = pin->to;
	memcpy(out, pin->first + (from - pin->from), to - from);
	return to - from;
}

/* --- from which size on --- */

/* The shortest of a few times; `to` NULL: of registering [from, +bytes). */
static uint64_t cost(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void), void *to,
		     void *from, size_t bytes)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = now(), took;
		struct ibv_mr *mr;

		if (to) {
			memcpy(to, from, bytes);
		} else {
			mr = verbs->register_mr(pd, from, bytes, 0);
			if (!mr)
				return UINT64_MAX;
			verbs->deregister_mr(mr);
		}
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

uint64_t shunt_pin_measure(const struct shunt_verbs *verbs, struct ibv_pd *pd, uint64_t (*now)(void))
{
	char *memory = mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t from = UINT64_MAX;

	if (memory == MAP_FAILED)
		return UINT64_MAX;
	for (size_t bytes = SMALLEST; bytes <= LARGEST && from == UINT64_MAX; bytes *= 2) {
		memset(memory, 1, bytes);
		if (cost(verbs, pd, now, NULL, memory, bytes) < cost(verbs, pd, now, memory + LARGEST, memory, bytes))
			from = bytes;
	}
	munmap(memory, 2 * LARGEST);
	return from;
}
