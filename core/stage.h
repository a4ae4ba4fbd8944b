/*
 * The staging buffer of a stream: bytes that were accepted while its lane could not post them.
 * Written under tx.lock, emptied under lane.lock.
 */
#ifndef SHUNT_CORE_STAGE_H
#define SHUNT_CORE_STAGE_H

#include <sys/uio.h>
#include "core/stream.h"

#define SHUNT_STAGE_BYTES 65536	/* a power of two */
#define SHUNT_STAGE_CUTS 1024	/* sends that are kept apart; a power of two */

/*
 * Takes up to `bytes` of iov at `skip` into the buffer, behind tx.offset; as much as there is room for.
 * `apart`: a send of its own, not to be merged with the next (SHUNT_BATCH single and chain).
 */
size_t shunt_stage_take(struct shunt_tx *tx, const struct iovec *iov, size_t skip, size_t bytes, bool apart);
/* How many of the bytes from `offset` to `end` one WR may carry; at most what lies contiguously. */
uint64_t shunt_stage_piece(struct shunt_tx *tx, uint64_t offset, uint64_t end);
/* Bytes up to `offset` have been posted. */
void shunt_stage_posted(struct shunt_tx *tx, uint64_t offset);
void shunt_stage_free(struct shunt_tx *tx);

static inline const void *shunt_stage_at(const struct shunt_tx *tx, uint64_t offset)
{
	return tx->stage + (offset & (tx->stage_bytes - 1));
}

/* No more than half of it is in use: worth telling a sender of. */
bool shunt_stage_roomy(const struct shunt_tx *tx);

#endif
