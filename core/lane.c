#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "core/engine.h"
#include "core/lane.h"
#include "core/link.h"
#include "core/soft/soft.h"

#define CHAIN_MAX 64	/* of SHUNT_CHAIN */
#define DIRECT_SGES 16

/* Work requests under construction; posted with one doorbell. */
struct shunt_chain {
	struct shunt_lane *lane;
	uint32_t count, limit;
	uint64_t number;			/* of chains so far */
	struct shunt_stream *owner[CHAIN_MAX];	/* NULL: the lane itself */
	uint32_t work[CHAIN_MAX];		/* what the WR serves */
	uint64_t value[CHAIN_MAX];		/* a control word, or the stream offset behind the data */
	struct ibv_send_wr wr[CHAIN_MAX];
	struct ibv_sge sge[CHAIN_MAX];
};

int shunt_lane_init(struct shunt_lane *lane, struct shunt_link *link)
{
	lane->chain = malloc(sizeof(*lane->chain));
	if (!lane->chain)
		return -ENOMEM;
	lane->chain->count = 0;
	lane->chain->number = 1;
	lane->chain->lane = lane;
	lane->chain->limit = link->engine->config.chain_max;
	lane->link = link;
	return 0;
}

void shunt_lane_fini(struct shunt_lane *lane)
{
	free(lane->chain);
	lane->chain = NULL;
}

static void leave(struct shunt_lane *lane)
{
	shunt_lock_leave(&lane->lock);
	if (__builtin_expect(atomic_load(&lane->dirty), 0))
		shunt_lane_kick(lane);
}

/* Messages that may still be sent, `reserve` of them kept back; limited by the SQ as well. */
static uint32_t credit(struct shunt_lane *lane, uint32_t reserve)
{
	const struct shunt_config *config = &lane->link->engine->config;
	uint64_t allowed = atomic_load_explicit(&lane->allowed, memory_order_acquire);
	uint64_t retired = atomic_load_explicit(&lane->retired, memory_order_acquire);
	uint64_t receives = allowed > lane->sent + reserve ? allowed - lane->sent - reserve : 0;
	uint64_t slots = config->sq_depth - (lane->sent - retired);

	return receives < slots ? receives : slots;
}

/*
 * SQ slots come back only when completions are polled. A sender that never waits polls here, early
 * enough that a chain always fits.
 */
static uint32_t credit_or_poll(struct shunt_lane *lane, uint32_t wanted)
{
	uint32_t have = credit(lane, SHUNT_CONTROL_RESERVE);

	if (__builtin_expect(have < wanted, 0)) {
		shunt_group_poll(lane->link->engine);
		have = credit(lane, SHUNT_CONTROL_RESERVE);
	}
	return have;
}

static int flags_for(struct shunt_lane *lane, uint32_t bytes)
{
	const struct shunt_config *config = &lane->link->engine->config;
	int flags = 0;

	if (bytes <= lane->max_inline) {
		flags |= IBV_SEND_INLINE;
		lane->counters.inline_wr++;
	}
	if (++lane->unsignaled >= config->signal_every || lane->unsignaled >= config->sq_depth / 2) {
		lane->unsignaled = 0;
		lane->counters.signaled++;
		flags |= IBV_SEND_SIGNALED;
	}
	return flags;
}

static void fill(struct shunt_lane *lane, struct ibv_send_wr *wr, struct ibv_sge *sge, int sges,
		 uint32_t bytes, uint64_t number, uint32_t imm, uint64_t address)
{
	wr->wr_id = number;
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = sges;
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->send_flags = flags_for(lane, bytes);
	wr->imm_data = htonl(imm);
	wr->wr.rdma.remote_addr = address;
	wr->wr.rdma.rkey = lane->rkey;
}

/* Posts `count` linked WRs. Returns how many the QP took. */
static uint32_t post(struct shunt_lane *lane, struct ibv_send_wr *wr, uint32_t count)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t taken = count;

	lane->counters.doorbells++;
	if (__builtin_expect(ibv_post_send(lane->qp, wr, &bad), 0)) {
		taken = 0;
		for (; wr && wr != bad; wr = wr->next)
			taken++;
		lane->counters.post_failures++;
		lane->unsignaled = lane->link->engine->config.signal_every;
	}
	lane->sent += taken;
	lane->counters.wr += taken;
	if (taken > lane->counters.chain_max)
		lane->counters.chain_max = taken;
	return taken;
}

static uint32_t ring_piece(const struct shunt_tx *tx, uint64_t offset)
{
	return tx->ring_bytes - (offset & (tx->ring_bytes - 1));
}

static uint64_t ring_place(const struct shunt_tx *tx, uint64_t offset)
{
	return tx->ring_address + (offset & (tx->ring_bytes - 1));
}

/* --- the short way: straight from the program's buffer --- */

/* One WR of at most `bytes` from iov at `skip`. Returns its length; 0: the QP refused it. */
static size_t post_piece(struct shunt_lane *lane, struct shunt_stream *stream,
			 const struct iovec *iov, int iovcnt, size_t skip, size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t offset = atomic_load_explicit(&tx->posted, memory_order_relaxed);
	uint32_t piece = ring_piece(tx, offset);
	struct ibv_sge sge[DIRECT_SGES];
	struct ibv_send_wr wr;
	size_t length = 0;
	int sges = 0;

	if (piece > bytes)
		piece = bytes;
	for (; iovcnt && length < piece && sges < DIRECT_SGES; iov++, iovcnt--) {
		size_t part = iov->iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (part > piece - length)
			part = piece - length;
		sge[sges++] = (struct ibv_sge) { .addr = (uintptr_t)iov->iov_base + skip,
						 .length = part };
		length += part;
		skip = 0;
	}
	fill(lane, &wr, sge, sges, length, lane->sent + 1,
	     shunt_imm_make(SHUNT_IMM_DATA, stream->peer_id), ring_place(tx, offset));
	atomic_store_explicit(&tx->exposed, offset + length, memory_order_release);
	if (!post(lane, &wr, 1))
		return 0;
	lane->counters.direct++;
	lane->counters.wr_bytes += length;
	atomic_store_explicit(&tx->posted, offset + length, memory_order_release);
	return length;
}

static size_t send_direct(struct shunt_lane *lane, struct shunt_stream *stream,
			  const struct iovec *iov, int iovcnt, size_t skip, size_t bytes)
{
	size_t frag = lane->link->engine->config.frag_bytes;
	size_t taken = 0;

	if (frag > lane->max_inline)
		frag = lane->max_inline;
	while (taken < bytes) {
		size_t length = bytes - taken < frag ? bytes - taken : frag;

		if (!credit_or_poll(lane, 1)) {
			lane->counters.credit_stalls++;
			break;
		}
		length = post_piece(lane, stream, iov, iovcnt, skip + taken, length);
		if (!length)
			break;
		taken += length;
	}
	return taken;
}

/* The peer offered a larger ring: from here on its bytes go there. lane.lock and tx.lock held,
 * nothing staged. */
static void take_offer(struct shunt_lane *lane, struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t offer = atomic_load_explicit(&tx->offer, memory_order_acquire);
	struct ibv_send_wr wr;
	struct ibv_sge sge = { .addr = (uintptr_t)&tx->offset, .length = 8 };

	if (!credit_or_poll(lane, 1))
		return;
	fill(lane, &wr, &sge, 1, 8, lane->sent + 1,
	     shunt_imm_make(SHUNT_IMM_RING_FROM, stream->peer_id),
	     lane->peer_controls + stream->peer_id * sizeof(struct shunt_control) +
	     SHUNT_IMM_RING_FROM * 8);
	if (!post(lane, &wr, 1))
		return;
	lane->counters.control++;
	tx->old_address = tx->ring_address;
	tx->old_bytes = tx->ring_bytes;
	tx->ring_address = lane->link->peer_arena + (offer & ~63ull);
	tx->ring_bytes = 1u << (offer & 63);
	tx->ring_from = tx->offset;
	tx->grow_asked = false;
	atomic_store(&tx->offer, 0);
}

/* --- the staged way --- */

static bool stage_ready(struct shunt_tx *tx)
{
	if (tx->stage)
		return true;
	tx->stage = malloc(SHUNT_STAGE_BYTES);
	if (tx->stage)
		tx->stage_bytes = SHUNT_STAGE_BYTES;
	return tx->stage != NULL;
}

/* Copies from iov at `skip` into the staging buffer, wrapping. */
static void stage_copy(struct shunt_tx *tx, uint64_t offset, const struct iovec *iov, size_t skip,
		       size_t bytes)
{
	while (bytes) {
		size_t at = offset & (tx->stage_bytes - 1);
		size_t part;

		while (skip >= iov->iov_len)
			skip -= (iov++)->iov_len;
		part = iov->iov_len - skip;
		if (part > bytes)
			part = bytes;
		if (part > tx->stage_bytes - at)
			part = tx->stage_bytes - at;
		memcpy(tx->stage + at, (const char *)iov->iov_base + skip, part);
		offset += part;
		skip += part;
		bytes -= part;
	}
}

static size_t send_staged(struct shunt_lane *lane, struct shunt_stream *stream,
			  const struct iovec *iov, size_t skip, size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	uint64_t used = tx->offset - atomic_load_explicit(&tx->posted, memory_order_acquire);

	if (!stage_ready(tx))
		return 0;
	if (bytes > tx->stage_bytes - used)
		bytes = tx->stage_bytes - used;
	if (!bytes)
		return 0;
	stage_copy(tx, tx->offset, iov, skip, bytes);
	tx->offset += bytes;
	atomic_store_explicit(&tx->staged, tx->offset, memory_order_release);
	__atomic_fetch_add(&lane->counters.staged_sends, 1, __ATOMIC_RELAXED);
	shunt_lane_request(lane, stream, SHUNT_WORK_DATA);
	return bytes;
}

size_t shunt_lane_send(struct shunt_lane *lane, struct shunt_stream *stream,
		       const struct iovec *iov, int iovcnt, size_t skip, size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	size_t taken = 0, room;
	bool idle = false;

	if (shunt_lock_try(&lane->lock)) {
		if (__builtin_expect(atomic_load_explicit(&lane->waiting, memory_order_relaxed) ||
				     atomic_load_explicit(&lane->lane_due, memory_order_relaxed), 0))
			shunt_lane_serve(lane);
		idle = atomic_load_explicit(&tx->posted, memory_order_relaxed) == tx->offset &&
		       !atomic_load_explicit(&stream->lane_work, memory_order_relaxed);
		if (idle) {
			if (__builtin_expect(atomic_load_explicit(&tx->offer, memory_order_relaxed) != 0, 0))
				take_offer(lane, stream);
			room = shunt_tx_limit(tx) - tx->offset;
			if (bytes > room)
				bytes = room;
			taken = send_direct(lane, stream, iov, iovcnt, skip, bytes);
			tx->offset += taken;
			atomic_store_explicit(&tx->staged, tx->offset, memory_order_relaxed);
		}
		leave(lane);
	}
	room = shunt_tx_limit(tx) - tx->offset;
	if (bytes - taken > room)
		bytes = taken + room;
	if (__builtin_expect(taken < bytes && !atomic_load(&lane->failed), 0))
		taken += send_staged(lane, stream, iov, skip + taken, bytes - taken);
	return taken;
}

/* --- serving the merge queue; lane.lock held --- */

/* What the chain's WRs number `from` and on stood for was not posted: it is work again. */
static void chain_undo(struct shunt_chain *chain, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < count; i++) {
		if (chain->owner[i])
			shunt_lane_enqueue(chain->lane, chain->owner[i], chain->work[i]);
		else
			atomic_store(&chain->lane->lane_due, true);
	}
}

/* One doorbell for all that was collected. False: the QP did not take it all. */
static bool flush(struct shunt_chain *chain)
{
	uint32_t count = chain->count;
	uint32_t taken;

	if (!count)
		return true;
	chain->count = 0;
	chain->number++;
	for (uint32_t i = 0; i < count; i++) {
		if (i + 1 < count)
			chain->wr[i].next = &chain->wr[i + 1];
		if (chain->work[i] == SHUNT_WORK_DATA)
			atomic_store(&chain->owner[i]->tx.exposed, chain->value[i]);
	}
	taken = post(chain->lane, &chain->wr[0], count);
	for (uint32_t i = 0; i < taken; i++) {
		struct shunt_stream *stream = chain->owner[i];

		if (chain->work[i] == SHUNT_WORK_DATA)
			atomic_store_explicit(&stream->tx.posted, chain->value[i], memory_order_release);
		if (chain->work[i] == SHUNT_WORK_HANDBACK)
			atomic_store(&stream->tx.handed, true);
		if (chain->work[i] == SHUNT_WORK_RELEASE)
			shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
	}
	chain_undo(chain, taken, count);
	return taken == count;
}

/* Makes room for one more WR in the chain, within the credit left. */
static bool chain_room(struct shunt_chain *chain, uint32_t reserve)
{
	if (chain->count == chain->limit && !flush(chain))
		return false;
	if (credit(chain->lane, reserve) > chain->count)
		return true;
	if (!flush(chain))
		return false;
	shunt_group_poll(chain->lane->link->engine);
	return credit(chain->lane, reserve) > 0;
}

static uint32_t chain_next(struct shunt_chain *chain, struct shunt_stream *stream, uint32_t work,
			   uint64_t value)
{
	uint32_t i = chain->count++;

	chain->owner[i] = stream;
	chain->work[i] = work;
	chain->value[i] = value;
	return i;
}

static void chain_control(struct shunt_chain *chain, struct shunt_stream *stream, enum shunt_imm type,
			  uint32_t work, uint64_t value)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t id = stream ? stream->peer_id : 0;
	uint32_t i = chain_next(chain, stream, work, value);

	chain->sge[i] = (struct ibv_sge) { .addr = (uintptr_t)&chain->value[i], .length = 8 };
	fill(lane, &chain->wr[i], &chain->sge[i], 1, 8, lane->sent + i + 1, shunt_imm_make(type, id),
	     lane->peer_controls + id * sizeof(struct shunt_control) + type * 8);
	chain->wr[i].send_flags |= IBV_SEND_SOLICITED;
	if (work == SHUNT_WORK_HANDBACK)	/* somebody waits for it to be done */
		chain->wr[i].send_flags |= IBV_SEND_SIGNALED;
	lane->counters.control++;
}

/* Adds WRs for what the stream has staged: contiguous bytes, cut at the fragment and the wraps. */
static bool chain_data(struct shunt_chain *chain, struct shunt_stream *stream)
{
	struct shunt_lane *lane = chain->lane;
	struct shunt_tx *tx = &stream->tx;
	uint64_t end = atomic_load_explicit(&tx->staged, memory_order_acquire);
	uint64_t offset = atomic_load_explicit(&tx->posted, memory_order_relaxed);
	uint64_t frag = lane->link->engine->config.frag_bytes;

	while (offset < end) {
		uint64_t piece = end - offset;
		uint64_t at = offset & (tx->stage_bytes - 1);
		uint32_t i;

		if (!chain_room(chain, SHUNT_CONTROL_RESERVE))
			return false;
		if (piece > frag)
			piece = frag;
		if (piece > ring_piece(tx, offset))
			piece = ring_piece(tx, offset);
		if (piece > tx->stage_bytes - at)
			piece = tx->stage_bytes - at;
		i = chain_next(chain, stream, SHUNT_WORK_DATA, offset + piece);
		chain->sge[i] = (struct ibv_sge) { .addr = (uintptr_t)tx->stage + at, .length = piece };
		fill(lane, &chain->wr[i], &chain->sge[i], 1, piece, lane->sent + i + 1,
		     shunt_imm_make(SHUNT_IMM_DATA, stream->peer_id), ring_place(tx, offset));
		offset += piece;
		lane->counters.merged++;
		lane->counters.wr_bytes += piece;
	}
	return true;
}

static const struct {
	uint32_t work;
	enum shunt_imm type;
} controls[] = {	/* in the order in which a stream's work is served; DATA comes after the first */
	{ SHUNT_WORK_UPGRADE, SHUNT_IMM_UPGRADE },
	{ SHUNT_WORK_HANDBACK, SHUNT_IMM_HANDBACK },
	{ SHUNT_WORK_FIN, SHUNT_IMM_FIN },
	{ SHUNT_WORK_RESET, SHUNT_IMM_RESET },
	{ SHUNT_WORK_CREDIT, SHUNT_IMM_CREDIT },
	{ SHUNT_WORK_SWITCHED, SHUNT_IMM_SWITCHED },
	{ SHUNT_WORK_RING, SHUNT_IMM_RING },
	{ SHUNT_WORK_RELEASE, SHUNT_IMM_RELEASE },
};

static uint64_t control_value(struct shunt_stream *stream, enum shunt_imm type)
{
	switch (type) {
	case SHUNT_IMM_UPGRADE:
		return atomic_load(&stream->tx.upgrade_at);
	case SHUNT_IMM_HANDBACK:
		return atomic_load(&stream->tx.handback_at);
	case SHUNT_IMM_FIN:
		return atomic_load(&stream->tx.fin);
	case SHUNT_IMM_CREDIT:
		return atomic_load_explicit(&stream->rx.head, memory_order_acquire);
	case SHUNT_IMM_SWITCHED:
		return atomic_load(&stream->rx.switched);
	case SHUNT_IMM_RING:
		return atomic_load(&stream->rx.offered);
	default:
		return 0;
	}
}

/* Serves one stream's work. False: credit ran out; what is left is queued again. */
static bool serve_stream(struct shunt_chain *chain, struct shunt_stream *stream, uint32_t work)
{
	/* Queued again since it was served: what `posted` and `releases` say is true only after the doorbell. */
	if (stream->in_chain == chain->number && !flush(chain))
		goto stalled;
	if (atomic_load(&stream->releases) & SHUNT_RELEASED_BY_US)
		return true;	/* nothing may follow RELEASE */
	stream->in_chain = chain->number;
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		if (work & controls[i].work) {
			if (!chain_room(chain, SHUNT_CONTROL_RESERVE))
				goto stalled;
			chain_control(chain, stream, controls[i].type, controls[i].work,
				      control_value(stream, controls[i].type));
			work &= ~controls[i].work;
		}
		if (i == 0 && work & SHUNT_WORK_DATA) {
			if (!chain_data(chain, stream))
				goto stalled;
			work &= ~SHUNT_WORK_DATA;
		}
	}
	return true;
stalled:
	shunt_lane_enqueue(chain->lane, stream, work);
	return false;
}

static struct shunt_stream *dequeue(struct shunt_lane *lane, uint32_t *work)
{
	struct shunt_stream *stream;

	shunt_lock_take(&lane->queue_lock);
	stream = lane->first;
	if (stream) {
		lane->first = stream->next_in_lane;
		if (!lane->first)
			lane->last = NULL;
		stream->queued = false;
		atomic_fetch_sub(&lane->waiting, 1);
		*work = atomic_exchange(&stream->lane_work, 0);
	}
	shunt_lock_leave(&lane->queue_lock);
	return stream;
}

void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lock_take(&lane->queue_lock);
	atomic_fetch_or(&stream->lane_work, work);
	if (!stream->queued && !atomic_load(&lane->failed)) {
		stream->queued = true;
		stream->next_in_lane = NULL;
		if (lane->last)
			lane->last->next_in_lane = stream;
		else
			lane->first = stream;
		lane->last = stream;
		atomic_fetch_add(&lane->waiting, 1);
	}
	shunt_lock_leave(&lane->queue_lock);
}

void shunt_lane_forget(struct shunt_lane *lane, struct shunt_stream *stream)
{
	shunt_lock_take(&lane->lock);
	atomic_store(&stream->lane_work, 0);
	shunt_lock_leave(&lane->lock);
	shunt_lane_kick(lane);
}

void shunt_lane_serve(struct shunt_lane *lane)
{
	struct shunt_chain *chain = lane->chain;
	struct shunt_stream *stream;
	uint32_t work = 0;

	if (atomic_load(&lane->failed))
		return;
	chain->count = 0;
	if (atomic_exchange(&lane->lane_due, false)) {
		if (chain_room(chain, 0))
			chain_control(chain, NULL, SHUNT_IMM_LANE, 0, atomic_load(&lane->lane_value));
		else
			atomic_store(&lane->lane_due, true);
	}
	while ((stream = dequeue(lane, &work)) != NULL) {
		if (!serve_stream(chain, stream, work)) {
			lane->counters.queue_stalls++;
			break;
		}
	}
	flush(chain);
}

void shunt_lane_kick(struct shunt_lane *lane)
{
	do {
		atomic_store(&lane->dirty, true);
		if (!shunt_lock_try(&lane->lock))
			return;	/* its holder looks at `dirty` after leaving */
		atomic_store(&lane->dirty, false);
		shunt_lane_serve(lane);
		shunt_lock_leave(&lane->lock);
	} while (atomic_load(&lane->dirty));
	if (shunt_lane_stalled(lane))
		shunt_service_watch(lane->link->engine);
}

void shunt_lane_request(struct shunt_lane *lane, struct shunt_stream *stream, uint32_t work)
{
	shunt_lane_enqueue(lane, stream, work);
	shunt_lane_kick(lane);
}

bool shunt_lane_stalled(struct shunt_lane *lane)
{
	return (atomic_load(&lane->waiting) || atomic_load(&lane->unsettled)) && !atomic_load(&lane->failed);
}

bool shunt_lane_settled(struct shunt_lane *lane)
{
	if (soft_qp_settled(lane->qp))
		return true;
	atomic_store(&lane->unsettled, true);
	/* A device with a thread may have told the service thread before it could see the mark. */
	if (soft_qp_settled(lane->qp))
		shunt_service_wake(lane->link->engine);
	else
		shunt_service_watch(lane->link->engine);
	return false;
}

bool shunt_lane_handed_over(struct shunt_lane *lane, struct shunt_stream *stream)
{
	if (atomic_load(&stream->released))
		return true;
	shunt_lane_kick(lane);
	shunt_group_poll_fully(lane->link->engine);
	return shunt_lane_settled(lane) && atomic_load(&stream->tx.handed) && !atomic_load(&lane->failed);
}

/* --- receives --- */

int shunt_lane_post_receives(struct shunt_lane *lane, uint32_t count)
{
	struct ibv_recv_wr wr[64], *bad;

	while (count) {
		uint32_t n = count < 64 ? count : 64;

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr) { .next = i + 1 < n ? &wr[i + 1] : NULL,
						       .wr_id = (uintptr_t)lane };
		if (ibv_post_recv(lane->qp, wr, &bad))
			return -EIO;
		count -= n;
		lane->reposted += n;
	}
	return 0;
}

void shunt_lane_repost(struct shunt_lane *lane)
{
	uint32_t depth = lane->link->engine->config.rq_depth;
	uint64_t used = lane->received + depth - lane->reposted;

	if (used < depth / 8)
		return;
	if (shunt_lane_post_receives(lane, used))
		atomic_store(&lane->failed, true);
	if (lane->reposted - lane->granted < depth / 2)
		return;
	lane->granted = lane->reposted;
	atomic_store(&lane->lane_value, lane->reposted);
	atomic_store(&lane->lane_due, true);
	shunt_group_kick_lane(lane->link->engine, lane);
}
