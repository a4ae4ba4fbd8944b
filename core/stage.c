#include "core/stage.h"
#include <stdlib.h>
#include <string.h>

struct shunt_cuts {	/* where sends end that are not to be merged: offsets, oldest first */
	_Atomic uint32_t first, last;	/* lane.lock; tx.lock */
	_Atomic uint64_t at[SHUNT_STAGE_CUTS];
};

static bool stage_ready(struct shunt_tx *tx, bool apart)
{
	if (!tx->stage) {
		tx->stage = malloc(SHUNT_STAGE_BYTES);
		if (tx->stage)
			tx->stage_bytes = SHUNT_STAGE_BYTES;
	}
	if (apart && !tx->cuts)
		tx->cuts = calloc(1, sizeof(*tx->cuts));
	return tx->stage && (!apart || tx->cuts);
}

void shunt_stage_free(struct shunt_tx *tx)
{
	free(tx->stage);
	free(tx->cuts);
	tx->stage = NULL;
	tx->cuts = NULL;
	tx->stage_bytes = 0;
}

bool shunt_stage_roomy(const struct shunt_tx *tx)
{
	const struct shunt_cuts *cuts = tx->cuts;
	/* While a send goes straight from the program's buffer, `posted` runs ahead. */
	int64_t used = atomic_load(&tx->staged) - atomic_load(&tx->posted);

	return used <= SHUNT_STAGE_BYTES / 2 &&
	       (!cuts || atomic_load(&cuts->last) - atomic_load(&cuts->first) <= SHUNT_STAGE_CUTS / 2);
}

/* Copies from iov at `skip`, wrapping. */
static void copy(struct shunt_tx *tx, uint64_t offset, const struct iovec *iov, size_t skip, size_t bytes)
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

size_t shunt_stage_take(struct shunt_tx *tx, const struct iovec *iov, size_t skip, size_t bytes, bool apart)
{
	uint64_t used = tx->offset - atomic_load_explicit(&tx->posted, memory_order_acquire);
	struct shunt_cuts *cuts;

	if (!stage_ready(tx, apart))
		return 0;
	cuts = tx->cuts;
	if (apart && cuts->last - atomic_load_explicit(&cuts->first, memory_order_acquire) == SHUNT_STAGE_CUTS)
		return 0;
	if (bytes > tx->stage_bytes - used)
		bytes = tx->stage_bytes - used;
	if (!bytes)
		return 0;
	copy(tx, tx->offset, iov, skip, bytes);
	tx->offset += bytes;
	if (apart) {
		atomic_store_explicit(&cuts->at[cuts->last & (SHUNT_STAGE_CUTS - 1)], tx->offset,
				      memory_order_relaxed);
		atomic_store_explicit(&cuts->last, cuts->last + 1, memory_order_release);
	}
	atomic_store_explicit(&tx->staged, tx->offset, memory_order_release);
	return bytes;
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

uint64_t shunt_stage_piece(struct shunt_tx *tx, uint64_t offset, uint64_t end)
{
	uint64_t at = offset & (tx->stage_bytes - 1);

	if (tx->cuts)
		end = next_cut(tx->cuts, offset, end);
	return end - offset < tx->stage_bytes - at ? end - offset : tx->stage_bytes - at;
}

void shunt_stage_posted(struct shunt_tx *tx, uint64_t offset)
{
	struct shunt_cuts *cuts = tx->cuts;
	uint32_t last;

	if (!cuts)
		return;
	last = atomic_load_explicit(&cuts->last, memory_order_acquire);
	while (cuts->first != last &&
	       atomic_load_explicit(&cuts->at[cuts->first & (SHUNT_STAGE_CUTS - 1)], memory_order_relaxed) <= offset)
		atomic_store_explicit(&cuts->first, cuts->first + 1, memory_order_release);
}
