#include "core/chain.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "core/engine.h"
#include "core/overflow.h"
#include "core/pin.h"
#include "core/stage.h"
#include "core/watch.h"

#define CHAIN_MAX 64	/* of SHUNT_CHAIN */
#define DIRECT_SGES 16	/* at most lane.max_sges are used */
#define ROUND_MAX 4096	/* bytes that are seen at once though they lie around the ring's end; the smallest ring */

/* Of bytes around the ring's end the first part is written without a word; what is behind it tells of both. */
enum part { WHOLE, AHEAD, BEHIND };

struct shunt_chain {
	struct shunt_lane *lane;
	uint32_t count, limit;
	uint64_t bytes;				/* of data in it */
	uint32_t kept;				/* WRs whose bytes a stage keeps until they are complete */
	uint64_t number;			/* of chains so far */
	struct shunt_stream *owner[CHAIN_MAX];	/* NULL: the lane itself */
	uint32_t work[CHAIN_MAX];		/* what the WR serves */
	uint64_t value[CHAIN_MAX];		/* a control word, or the stream offset behind the data */
	struct ibv_send_wr wr[CHAIN_MAX];
	struct ibv_sge sge[CHAIN_MAX];
};

int shunt_chain_init(struct shunt_lane *lane)
{
	const struct shunt_config *config = &lane->link->engine->config;
	struct shunt_chain *chain = malloc(sizeof(*chain));

	if (!chain)
		return -ENOMEM;
	shunt_chain_begin(chain);
	chain->number = 1;
	chain->lane = lane;
	chain->limit = lane->chains ? shunt_narrow_u32(config->chain_max) : 1;
	lane->chain = chain;
	return 0;
}

void shunt_chain_fini(struct shunt_lane *lane)
{
	free(lane->chain);
	lane->chain = NULL;
}

void shunt_chain_begin(struct shunt_chain *chain)
{
	chain->count = 0;
	chain->bytes = 0;
	chain->kept = 0;
}

bool shunt_chain_has(const struct shunt_chain *chain, const struct shunt_stream *stream)
{
	return stream->in_chain == chain->number;
}

/* --- may it be posted? --- */

/* One more message behind `ahead`, `reserve` receives kept back. */
static inline enum shunt_limit slots(struct shunt_lane *lane, uint32_t ahead, uint32_t reserve)
{
	uint64_t next = lane->sent + ahead;

	if (__builtin_expect(atomic_load_explicit(&lane->allowed, memory_order_acquire) <= next - lane->reads + reserve, 0))
		return SHUNT_LIMIT_RECEIVES;
	if (__builtin_expect(next - atomic_load_explicit(&lane->retired, memory_order_acquire) >=
			     lane->sq_depth, 0))
		return SHUNT_LIMIT_SQ;
	return SHUNT_LIMIT_NONE;
}

/* Data of `bytes`; 0: a control message, for which there is no window. */
static inline enum shunt_limit admit(struct shunt_chain *chain, uint32_t bytes, uint32_t reserve)
{
	struct shunt_lane *lane = chain->lane;
	enum shunt_limit limit = slots(lane, chain->count, reserve);

	if (limit || !bytes)
		return limit;
	return shunt_window_admit(&lane->window, lane->sent + chain->count -
				  atomic_load_explicit(&lane->retired, memory_order_relaxed), chain->bytes, bytes);
}

/* What was collected is posted first if that is what takes it; a sender that never waits gets its completions here. */
static __attribute__((noinline)) bool make_room(struct shunt_chain *chain, uint32_t bytes, uint32_t reserve)
{
	struct shunt_lane *lane = chain->lane;
	enum shunt_limit limit;

	if (chain->count == chain->limit && !shunt_chain_flush(chain))
		return false;
	limit = admit(chain, bytes, reserve);
	if (!limit)
		return true;
	if (!shunt_chain_flush(chain))
		return false;
	shunt_group_poll(lane->link->engine);
	limit = admit(chain, bytes, reserve);
	if (!limit)
		return true;
	lane->counters.stalls[limit]++;
	return false;
}

/* Room for one more WR. */
static inline bool room(struct shunt_chain *chain, uint32_t bytes, uint32_t reserve)
{
	if (__builtin_expect(chain->count < chain->limit && admit(chain, bytes, reserve) == SHUNT_LIMIT_NONE, 1))
		return true;
	return make_room(chain, bytes, reserve);
}

/* Data in two WRs, both or none of them. */
static bool admit_two(struct shunt_chain *chain, uint32_t first, uint32_t second)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t count = chain->count + 1;

	if (slots(lane, count, lane->reserve) || admit(chain, first, lane->reserve))
		return false;
	if (!shunt_window_admit(&lane->window, lane->sent + count - atomic_load_explicit(&lane->retired, memory_order_relaxed),
				chain->bytes + first, second))
		return true;
	shunt_window_return(&lane->window, first);
	return false;
}

/* --- work requests --- */

/* WR `number` says when it is complete; `posted`: all data up to and with it. */
static inline void signal_wr(struct shunt_lane *lane, uint64_t number, uint64_t posted)
{
	struct shunt_window *window = &lane->window;

	lane->unsignaled = 0;
	lane->last_signaled = number;
	lane->counters.signaled++;
	if (number - lane->retired > window->most_wrs)
		window->most_wrs = number - lane->retired;
	shunt_window_mark(window, number, posted, window->policy->completed ? shunt_now(lane->link->engine) : 0);
}

/* `must`: somebody waits for it to be done. */
static inline int flags_for(struct shunt_lane *lane, uint64_t number, uint64_t ahead, uint32_t bytes, bool data, bool must)
{
	struct shunt_window *window = &lane->window;
	int flags = 0;

	if (__builtin_expect(bytes <= lane->max_inline, 1))
		flags = IBV_SEND_INLINE;
	else
		lane->counters.gathered++;
	if (!data)
		bytes = 0;
	if (++lane->unsignaled < lane->signal_every && !lane->late && !must &&
	    !shunt_window_signals(window, ahead, bytes))
		return flags;
	signal_wr(lane, number, window->posted + ahead + bytes);
	return flags | IBV_SEND_SIGNALED;
}

static inline void fill(struct ibv_send_wr *wr, struct ibv_sge *sge, int sges, int flags,
		 uint64_t number, uint32_t imm, uint64_t address, uint32_t rkey)
{
	wr->wr_id = number;
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = sges;
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->send_flags = flags;
	wr->imm_data = htonl(imm);
	wr->wr.rdma.remote_addr = address;
	wr->wr.rdma.rkey = rkey;
}

/* Said before they are posted: they may be complete before the QP returns. */
static inline void expect(struct shunt_lane *lane, uint64_t bytes)
{
	struct shunt_window *window = &lane->window;

	atomic_store_explicit(&window->posted, window->posted + bytes, memory_order_relaxed);
}

static void not_posted(struct shunt_lane *lane, uint64_t bytes)
{
	struct shunt_window *window = &lane->window;

	atomic_store_explicit(&window->posted, window->posted - bytes, memory_order_relaxed);
	shunt_window_return(window, bytes);
}

/* Posts linked WRs, `count` of them. Returns how many the QP took. */
static inline uint32_t post(struct shunt_lane *lane, struct ibv_send_wr *wr, uint32_t count)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t taken = count;

	lane->counters.doorbells++;
	if (__builtin_expect(ibv_post_send(lane->qp, wr, &bad), 0)) {
		taken = 0;
		for (; wr && wr != bad; wr = wr->next)
			taken++;
		lane->counters.post_failures++;
		/* The WR that was to be signaled may be among those refused: the next is, and nobody waits before. */
		lane->unsignaled = lane->signal_every;
		lane->last_signaled = 0;
		atomic_store(&lane->refused, true);
		shunt_watch_retry(lane->link->engine);
	}
	lane->sent += taken;
	return taken;
}

/* `piece` of these bytes ends with the ring, and the rest is one WR, too. */
static inline bool goes_round(const struct shunt_lane *lane, const struct shunt_tx *tx, uint64_t offset, uint32_t piece,
			      uint64_t bytes)
{
	return __builtin_expect(piece < bytes && bytes <= ROUND_MAX, 0) && !((offset + piece) & (tx->ring_bytes - 1)) &&
	       bytes - piece <= lane->frag_bytes;
}

static inline void write_silently(struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->send_flags &= ~IBV_SEND_SOLICITED;
}

/* How many of `bytes` at `offset` go to one place: up to the ring's wrap and the fragment. */
static inline uint32_t ring_piece(const struct shunt_lane *lane, const struct shunt_tx *tx, uint64_t offset, uint64_t bytes)
{
	uint32_t size = tx->ring_bytes, piece = size - (uint32_t)(offset & (size - 1));

	if (piece > lane->frag_bytes)
		piece = lane->frag_bytes;
	return bytes < piece ? (uint32_t)bytes : piece;
}

static inline uint64_t ring_place(const struct shunt_tx *tx, uint64_t offset)
{
	return tx->ring_address + (offset & (tx->ring_bytes - 1));
}

/* --- the short way: straight from the program's buffer --- */

/* One WR of at most `bytes` from iov at `skip`, for stream offset `offset`. Returns its length; 0: the QP refused it. */
static inline uint32_t post_piece(struct shunt_lane *lane, struct shunt_stream *stream,
				  const struct iovec *iov, int iovcnt, size_t skip, uint32_t bytes,
				  uint64_t offset, enum part part_of)
{
	struct shunt_tx *tx = &stream->tx;
	struct ibv_sge sge[DIRECT_SGES];
	uint32_t lkey = tx->pin ? tx->pin->mr->lkey : 0;
	struct ibv_send_wr wr;
	uint32_t length = 0;
	int sges = 0, flags;

	for (; iovcnt && length < bytes && sges < (int)lane->max_sges; iov++, iovcnt--) {
		uint32_t part = bytes - length;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		if (part > iov->iov_len - skip)
			part = (uint32_t)(iov->iov_len - skip);
		sge[sges++] = (struct ibv_sge) { .addr = (uintptr_t)iov->iov_base + skip, .length = part, .lkey = lkey };
		length += part;
		skip = 0;
	}
	/* Who has pinned its buffer waits for this WR (pin.c). */
	flags = flags_for(lane, lane->sent + 1, 0, length, true, length > lane->max_inline || (tx->pin && lane->retains));
	fill(&wr, sge, sges, flags | IBV_SEND_SOLICITED, lane->sent + 1,
	     shunt_imm_make(part_of == BEHIND ? SHUNT_IMM_ROUND : SHUNT_IMM_DATA, stream->peer_id), ring_place(tx, offset),
	     tx->ring_rkey);
	if (part_of == AHEAD)
		write_silently(&wr);
	atomic_store_explicit(&tx->exposed, offset + length, memory_order_release);
	if (__builtin_expect(length < bytes, 0))
		shunt_window_return(&lane->window, bytes - length);
	expect(lane, length);
	if (!post(lane, &wr, 1)) {
		not_posted(lane, length);
		return 0;
	}
	lane->counters.direct++;
	if (part_of == AHEAD) {
		lane->reads++;
		return length;
	}
	tx->last_wr = lane->sent;
	if (__builtin_expect(tx->pin != NULL, 0))
		shunt_pin_posted(stream, lane->sent, offset, wr.sg_list, flags & IBV_SEND_INLINE);
	atomic_store_explicit(&tx->posted, offset + length, memory_order_release);
	return length;
}

/* All `bytes`, of which `first` are before the ring's end, or none. */
static __attribute__((noinline)) uint32_t post_round(struct shunt_lane *lane,
						     struct shunt_stream *stream,
						     const struct iovec *iov, int iovcnt,
						     size_t skip, uint32_t first, uint32_t bytes)
{
	uint64_t offset = atomic_load_explicit(&stream->tx.posted, memory_order_relaxed);

	if (!post_piece(lane, stream, iov, iovcnt, skip, first, offset, AHEAD)) {
		shunt_window_return(&lane->window, bytes - first);
		return 0;
	}
	return post_piece(lane, stream, iov, iovcnt, skip + first, bytes - first, offset + first, BEHIND) ? bytes : 0;
}

size_t shunt_chain_direct(struct shunt_lane *lane, struct shunt_stream *stream, const struct iovec *iov,
			  int iovcnt, size_t skip, size_t bytes)
{
	struct shunt_tx *tx = &stream->tx;
	size_t taken = 0;

	while (taken < bytes) {
		uint64_t offset = atomic_load_explicit(&tx->posted, memory_order_relaxed);
		size_t left = bytes - taken;
		uint32_t length = ring_piece(lane, tx, offset, left), both = shunt_narrow_u32(left);

		if (goes_round(lane, tx, offset, length, left) && iovcnt <= (int)lane->max_sges && iovcnt <= DIRECT_SGES &&
		    !tx->pin && admit_two(lane->chain, length, both - length)) {
			length = post_round(lane, stream, iov, iovcnt, skip + taken, length, both);
		} else {
			if (!room(lane->chain, length, lane->reserve))
				break;
			length = post_piece(lane, stream, iov, iovcnt, skip + taken, length, offset, WHOLE);
		}
		if (!length)
			break;
		taken += length;
		/* A large send lets the others in between its fragments (XR-22). */
		if (__builtin_expect(taken < bytes && atomic_load_explicit(&lane->waiting, memory_order_relaxed), 0))
			shunt_lane_serve(lane);
	}
	return taken;
}

/* --- the chain --- */

/* What the chain's WRs number `from` and on stood for was not posted: it is work again (PF-10). */
static void undo(struct shunt_chain *chain, uint32_t from, uint32_t count)
{
	struct shunt_lane *lane = chain->lane;

	for (uint32_t i = from; i < count; i++) {
		if (chain->work[i] == SHUNT_WORK_DATA)
			not_posted(lane, chain->sge[i].length);
		if (chain->owner[i])
			shunt_lane_enqueue(lane, chain->owner[i], chain->work[i]);
		else
			atomic_store(&lane->lane_due, true);
	}
}

/* A sender that was told to wait finds room again. */
static void tell_roomy(struct shunt_lane *lane, struct shunt_stream *stream)
{
	if ((shunt_stage_roomy(stream) || shunt_overflow_has_room(stream)) &&
	    shunt_tx_unstarve(&stream->tx))
		shunt_group_tell(lane->link->engine, stream, EPOLLOUT);
}

/* Bytes up to `end` have been posted, with WR `number`. */
static void posted_data(struct shunt_lane *lane, struct shunt_stream *stream, uint64_t number, uint64_t end, bool kept)
{
	struct shunt_tx *tx = &stream->tx;

	lane->counters.merged++;
	tx->last_wr = number;
	shunt_stage_posted(&tx->stage, end);
	if (__builtin_expect(kept, 0))
		atomic_store(&tx->stage.kept_wr, number);
	atomic_store_explicit(&tx->posted, end, memory_order_release);
	if (__builtin_expect(kept, 0) && !shunt_stage_roomy(stream))
		shunt_lane_hold(lane, stream, SHUNT_WORK_DONE);
	else if (__builtin_expect(atomic_load_explicit(&tx->starved, memory_order_relaxed), 0))
		tell_roomy(lane, stream);
}

/* The seat may go, once nothing that was posted for it is fetched any more. */
static void posted_release(struct shunt_lane *lane, struct shunt_stream *stream, uint64_t number)
{
	stream->let_go = true;
	stream->tx.last_wr = number;
	if (shunt_lane_keeps(lane))
		shunt_lane_hold(lane, stream, SHUNT_WORK_DONE);
	else
		shunt_streams_released(stream, SHUNT_RELEASED_BY_US);
}

/* TCP may go on as soon as it has arrived. */
static void posted_handback(struct shunt_lane *lane, struct shunt_stream *stream)
{
	atomic_store(&stream->tx.handed, true);
	if (!atomic_exchange(&stream->tx.wants_handed, false))
		return;
	atomic_store(&lane->unsettled, true);
	shunt_watch_begin(lane->link->engine);
}

/* The device is yet to fetch the WR's bytes, or those of the part ahead of it, or to need them again. */
static bool is_kept(const struct shunt_chain *chain, uint32_t i)
{
	const struct ibv_send_wr *wr = &chain->wr[i];

	return chain->lane->retains || !(wr->send_flags & IBV_SEND_INLINE) ||
	       (i && wr[-1].opcode == IBV_WR_RDMA_WRITE && !(wr[-1].send_flags & IBV_SEND_INLINE));
}

/* WR number i has been posted. */
static void posted(struct shunt_chain *chain, uint32_t i, uint64_t number)
{
	struct shunt_stream *stream = chain->owner[i];
	struct shunt_lane *lane = chain->lane;

	switch (chain->work[i]) {
	case SHUNT_WORK_DATA:
		if (chain->wr[i].opcode == IBV_WR_RDMA_WRITE) {	/* what is behind it tells of it */
			lane->reads++;
			lane->counters.merged++;
			return;
		}
		posted_data(lane, stream, number, chain->value[i], is_kept(chain, i));
		return;
	case SHUNT_WORK_FIN:
		stream->tx.fin_wr = number;
		if (stream->tx.lingers)
			shunt_lane_hold(lane, stream, SHUNT_WORK_DONE);
		break;
	case SHUNT_WORK_HANDBACK:
		posted_handback(lane, stream);
		break;
	case SHUNT_WORK_RELEASE:
		posted_release(lane, stream, number);
		break;
	}
	lane->counters.control++;
}

bool shunt_chain_flush(struct shunt_chain *chain)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t count = chain->count;
	uint64_t before = lane->sent;
	uint32_t taken;

	if (!count)
		return true;
	expect(lane, chain->bytes);
	if (__builtin_expect(chain->kept || lane->retains, 0) && !(chain->wr[count - 1].send_flags & IBV_SEND_SIGNALED)) {
		signal_wr(lane, before + count, lane->window.posted);	/* somebody may wait for their room */
		chain->wr[count - 1].send_flags |= IBV_SEND_SIGNALED;
	}
	shunt_chain_begin(chain);
	chain->number++;
	for (uint32_t i = 0; i < count; i++) {
		if (i + 1 < count)
			chain->wr[i].next = &chain->wr[i + 1];
		if (chain->work[i] == SHUNT_WORK_DATA)
			atomic_store(&chain->owner[i]->tx.exposed, chain->value[i]);
	}
	chain->wr[count - 1].send_flags |= IBV_SEND_SOLICITED;	/* one event for all of them (CP-05) */
	taken = post(lane, &chain->wr[0], count);
	if (taken > lane->counters.chain_max)
		lane->counters.chain_max = taken;
	for (uint32_t i = 0; i < taken; i++)
		posted(chain, i, before + i + 1);
	undo(chain, taken, count);
	return taken == count;
}

static uint32_t next(struct shunt_chain *chain, struct shunt_stream *stream, uint32_t work, uint64_t value)
{
	uint32_t i = chain->count++;

	chain->owner[i] = stream;
	chain->work[i] = work;
	chain->value[i] = value;
	if (stream)
		stream->in_chain = chain->number;
	return i;
}

bool shunt_chain_control(struct shunt_chain *chain, struct shunt_stream *stream, enum shunt_imm type,
			 uint32_t work, uint64_t value)
{
	struct shunt_lane *lane = chain->lane;
	uint32_t id = stream ? stream->peer_id : 0;
	uint32_t word = stream ? type : lane->number;
	uint64_t number;
	uint32_t i;

	if (!room(chain, 0, stream ? lane->reserve : 0))
		return false;
	i = next(chain, stream, work, value);
	number = lane->sent + i + 1;
	chain->sge[i] = (struct ibv_sge) { .addr = (uintptr_t)&chain->value[i], .length = 8 };
	fill(&chain->wr[i], &chain->sge[i], 1,
	     flags_for(lane, number, chain->bytes, 8, false, work == SHUNT_WORK_HANDBACK ||
		       (work == SHUNT_WORK_RELEASE && shunt_lane_keeps(lane))) | IBV_SEND_SOLICITED,
	     number, shunt_imm_make(type, id),
	     lane->peer_controls + id * sizeof(struct shunt_control) + word * 8, lane->rkey);
	return true;
}

enum shunt_chain_took shunt_chain_data(struct shunt_chain *chain, struct shunt_stream *stream)
{
	struct shunt_lane *lane = chain->lane;
	struct shunt_tx *tx = &stream->tx;
	struct shunt_stage *stage = &tx->stage;
	uint64_t staged = atomic_load_explicit(&tx->staged, memory_order_acquire);
	uint64_t limit = shunt_tx_limit(tx), end = staged < limit ? staged : limit;
	uint64_t offset = atomic_load_explicit(&tx->posted, memory_order_relaxed);
	enum part part_of = WHOLE;

	while (offset < end) {
		uint32_t whole = shunt_stage_piece(stage, offset, end), piece = ring_piece(lane, tx, offset, whole);
		bool behind = part_of == AHEAD;
		uint64_t number;
		uint32_t i;

		part_of = behind ? BEHIND : WHOLE;
		if (!behind && goes_round(lane, tx, offset, piece, whole) && chain->count + 2 <= chain->limit &&
		    admit_two(chain, piece, whole - piece))
			part_of = AHEAD;
		if (part_of == WHOLE && !room(chain, piece, lane->reserve))
			return SHUNT_CHAIN_STALLED;
		i = next(chain, stream, SHUNT_WORK_DATA, offset + piece);
		number = lane->sent + i + 1;
		chain->sge[i] = (struct ibv_sge) { .addr = (uintptr_t)shunt_stage_at(stage, offset), .length = piece,
						   .lkey = stage->lkey };
		chain->kept += piece > lane->max_inline;
		fill(&chain->wr[i], &chain->sge[i], 1,
		     flags_for(lane, number, chain->bytes, piece, true, false), number,
		     shunt_imm_make(part_of == BEHIND ? SHUNT_IMM_ROUND : SHUNT_IMM_DATA, stream->peer_id),
		     ring_place(tx, offset), tx->ring_rkey);
		if (part_of == AHEAD)
			write_silently(&chain->wr[i]);
		chain->bytes += piece;
		offset += piece;
	}
	return offset < staged ? SHUNT_CHAIN_RING_FULL : SHUNT_CHAIN_ALL;
}

/* One that takes no receive of the peer's, and says when it is complete. */
static bool post_apart(struct shunt_lane *lane, struct ibv_send_wr *wr, uint64_t *number)
{
	if (slots(lane, 0, 0) == SHUNT_LIMIT_SQ)
		return false;
	wr->wr_id = lane->sent + 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	signal_wr(lane, lane->sent + 1, lane->window.posted);
	if (!post(lane, wr, 1))
		return false;
	lane->reads++;
	*number = lane->sent;
	return true;
}

bool shunt_chain_read(struct shunt_lane *lane, struct ibv_sge *to, uint64_t addr, uint32_t rkey, uint64_t *number)
{
	struct ibv_send_wr wr = { .sg_list = to, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } };

	return post_apart(lane, &wr, number);
}

bool shunt_chain_probe(struct shunt_lane *lane, uint64_t *number)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };	/* without bytes the key is not looked at */

	return post_apart(lane, &wr, number);
}
