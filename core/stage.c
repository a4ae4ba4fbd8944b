#include "core/stage.h"
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"

struct shunt_cuts {	/* where sends end that are not to be merged: offsets, oldest first */
	_Atomic uint32_t first, last;	/* lane.lock; tx.lock */
	_Atomic uint64_t at[SHUNT_STAGE_CUTS];
};

/* --- its memory --- */

static void make_buffer(struct shunt_stream *stream)
{
	struct shunt_stage *stage = &stream->tx.stage;
	struct shunt_link *link = stream->link;
	const struct ibv_mr *mr;

	if (!stream->lane->fetches) {
		stage->bytes = malloc(SHUNT_STAGE_BYTES);
		return;
	}
	stage->place = shunt_arena_take(&link->arena, SHUNT_STAGE_BYTES, &mr);
	if (stage->place == UINT64_MAX)
		return;
	stage->bytes = link->arena_base + stage->place;
	stage->lkey = mr->lkey;
}

bool shunt_stage_ready(struct shunt_stream *stream, bool apart)
{
	struct shunt_stage *stage = &stream->tx.stage;

	if (!stage->bytes)
		make_buffer(stream);
	if (apart && !stage->cuts)
		stage->cuts = calloc(1, sizeof(*stage->cuts));
	return stage->bytes && (!apart || stage->cuts);
}

void shunt_stage_leave(struct shunt_stream *stream)
{
	struct shunt_stage *stage = &stream->tx.stage;

	if (!stage->bytes || !stream->lane->fetches)
		return;
	if (shunt_arena_give(&stream->link->arena, stage->place, SHUNT_STAGE_BYTES))
		shunt_trim_due(stream->engine);
	stage->bytes = NULL;
}

void shunt_stage_free(struct shunt_stage *stage)
{
	free(stage->bytes);
	free(stage->cuts);
	stage->bytes = NULL;
	stage->cuts = NULL;
}

/* --- its room --- */

void shunt_stage_begin(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;

	atomic_store(&tx->staged, tx->offset);
	atomic_store(&tx->posted, tx->offset);
	atomic_store(&tx->exposed, tx->offset);
	atomic_store(&tx->stage.kept_wr, 0);
	atomic_store(&tx->stage.reusable, tx->offset);
	tx->stage.mark_wr = 0;
	tx->stage.mark_offset = tx->offset;
}

/*
 * Stream offset up to which bytes may be overwritten. What is posted is kept until the last of its WRs
 * is complete. While more are posted that is never so; then it is true of those that a mark was set behind.
 */
static uint64_t reusable(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_stage *stage = &tx->stage;
	uint64_t posted = atomic_load_explicit(&tx->posted, memory_order_acquire);
	uint64_t retired, offset;

	if (!shunt_lane_keeps(stream->lane))
		return posted;
	retired = atomic_load_explicit(&stream->lane->retired, memory_order_acquire);
	if (retired < stage->mark_wr)
		return atomic_load(&stage->reusable);
	offset = stage->mark_offset;
	stage->mark_wr = atomic_load(&stage->kept_wr);	/* set before `posted`: not of an earlier WR */
	stage->mark_offset = posted;
	if (retired >= stage->mark_wr)
		offset = posted;
	atomic_store(&stage->reusable, offset);
	return offset;
}

bool shunt_stage_roomy(const struct shunt_stream *stream)
{
	const struct shunt_tx *tx = &stream->tx;
	const struct shunt_stage *stage = &tx->stage;
	const struct shunt_cuts *cuts = stage->cuts;
	uint64_t from = atomic_load(&tx->posted), kept = atomic_load(&stage->kept_wr);
	int64_t used;

	if (__builtin_expect(kept != 0, 0) && atomic_load(&stream->lane->retired) < kept)
		from = atomic_load(&stage->reusable);
	/* While a send goes straight from the program's buffer, `posted` runs ahead. */
	used = atomic_load(&tx->staged) - from;
	return used <= SHUNT_STAGE_BYTES / 2 &&
	       (!cuts || atomic_load(&cuts->last) - atomic_load(&cuts->first) <= SHUNT_STAGE_CUTS / 2);
}

/* Copies from iov at `skip`, wrapping. */
static void copy(struct shunt_stage *stage, uint64_t offset, const struct iovec *iov, size_t skip, size_t bytes)
{
	while (bytes) {
		size_t at = offset & (SHUNT_STAGE_BYTES - 1);
		size_t part;

		while (skip >= iov->iov_len)
			skip -= (iov++)->iov_len;
		part = iov->iov_len - skip;
		if (part > bytes)
			part = bytes;
		if (part > SHUNT_STAGE_BYTES - at)
			part = SHUNT_STAGE_BYTES - at;
		memcpy(stage->bytes + at, (const char *)iov->iov_base + skip, part);
		offset += part;
		skip += part;
		bytes -= part;
	}
}

size_t shunt_stage_take(struct shunt_stream *stream, const struct iovec *iov, size_t skip, size_t bytes, bool apart)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_cuts *cuts;
	uint64_t used;

	if (!shunt_stage_ready(stream, apart))
		return 0;
	cuts = tx->stage.cuts;
	if (apart && cuts->last - atomic_load_explicit(&cuts->first, memory_order_acquire) == SHUNT_STAGE_CUTS)
		return 0;
	used = tx->offset - reusable(stream);	/* also what went past it, inline */
	if (used >= SHUNT_STAGE_BYTES || !bytes)
		return 0;
	if (bytes > SHUNT_STAGE_BYTES - used)
		bytes = SHUNT_STAGE_BYTES - used;
	copy(&tx->stage, tx->offset, iov, skip, bytes);
	tx->offset += bytes;
	if (apart) {
		atomic_store_explicit(&cuts->at[cuts->last & (SHUNT_STAGE_CUTS - 1)], tx->offset,
				      memory_order_relaxed);
		atomic_store_explicit(&cuts->last, cuts->last + 1, memory_order_release);
	}
	atomic_store_explicit(&tx->staged, tx->offset, memory_order_release);
	return bytes;
}

bool shunt_stage_copy(struct shunt_stream *stream, uint8_t *out, uint64_t from, uint64_t to)
{
	const struct shunt_tx *tx = &stream->tx;

	if (from >= to)
		return true;
	if (!tx->stage.bytes || to - from > SHUNT_STAGE_BYTES || from < atomic_load(&tx->stage.reusable))
		return false;
	while (from < to) {
		uint64_t part = SHUNT_STAGE_BYTES - (from & (SHUNT_STAGE_BYTES - 1));

		if (part > to - from)
			part = to - from;
		memcpy(out, shunt_stage_at(&tx->stage, from), part);
		out += part;
		from += part;
	}
	return true;
}

/* The first end of a send behind `offset`, or `end`. */
static uint64_t next_cut(struct shunt_cuts *cuts, uint64_t offset, uint64_t end)
{
	uint32_t last = atomic_load_explicit(&cuts->last, memory_order_acquire);

	for (uint32_t i = cuts->first; i != last; i++) {
		uint64_t at = atomic_load_explicit(&cuts->at[i & (SHUNT_STAGE_CUTS - 1)], memory_order_relaxed);

		if (at > offset)
			return at < end ? at : end;
	}
	return end;
}

uint32_t shunt_stage_piece(struct shunt_stage *stage, uint64_t offset, uint64_t end)
{
	uint32_t piece = SHUNT_STAGE_BYTES - (uint32_t)(offset & (SHUNT_STAGE_BYTES - 1));

	if (stage->cuts)
		end = next_cut(stage->cuts, offset, end);
	return end - offset < piece ? (uint32_t)(end - offset) : piece;
}

void shunt_stage_posted(struct shunt_stage *stage, uint64_t offset)
{
	struct shunt_cuts *cuts = stage->cuts;
	uint32_t last;

	if (!cuts)
		return;
	last = atomic_load_explicit(&cuts->last, memory_order_acquire);
	while (cuts->first != last &&
	       atomic_load_explicit(&cuts->at[cuts->first & (SHUNT_STAGE_CUTS - 1)], memory_order_relaxed) <= offset)
		atomic_store_explicit(&cuts->first, cuts->first + 1, memory_order_release);
}
