/* SPDX-License-Identifier: MIT */
/*
 * The peer's sends that are followed on one lane. That begins when the peer has written a record of them, and ends
 * when the program has read their last byte. The peer writes the ring whenever it likes: a record is copied, and the
 * copy is checked. Streams are numbers here, and the caller says what it knows of them.
 */
#ifndef SHUNT_CORE_TRACE_FOLLOWED_H
#define SHUNT_CORE_TRACE_FOLLOWED_H

#include "core/trace/book.h"
#include "shunt/wire.h"

/* The other end's clock, as known now. */
struct shunt_trace_zone {
	int64_t offset; /* ours = theirs + offset */
	uint64_t error; /* ns by which that may be off, */
	uint64_t at; /* ns: at this time; 0: it is the same clock */
};

struct shunt_followed_slot {
	uint64_t number; /* of the record */
	uint64_t late; /* ns: the link is known to have had it until then; 0: nothing is known */
	int64_t offset; /* ours = theirs + offset */
	struct shunt_trace trace;
};

struct shunt_followed {
	struct shunt_lock lock; /* innermost, except the book's */
	struct shunt_trace_book *book;
	const struct shunt_trace_record
		*ring; /* SHUNT_TRACE_SLOTS of them; the peer writes there */
	uint32_t peer; /* its process id, for people */
	struct shunt_trace_zone zone; /* all 0 within one host */
	uint64_t next; /* number of the next record */
	_Atomic uint64_t last_at; /* ns: when the last one came */
	/* A bit for each slot, in one of these at most: */
	_Atomic uint64_t told; /* its record has come; read without the lock, too */
	uint64_t seen; /* its last byte has been seen */
	uint64_t read; /* the program has that byte, and the peer may still say when it was placed */
	struct shunt_followed_slot slots[SHUNT_TRACE_SLOTS];
};

/* NULL: there is no memory. */
struct shunt_followed *shunt_followed_make(struct shunt_trace_book *book,
					   const struct shunt_trace_record *ring, uint32_t peer);

/* The rest with the lock held. */

/* Copies the next record of the peer. False: none. Records that were replaced before are counted. */
bool shunt_followed_next(struct shunt_followed *followed, struct shunt_trace_record *record);
/* The record is followed from here on, unless its times cannot be right. The caller has checked stream and end. */
void shunt_followed_tell(struct shunt_followed *followed, const struct shunt_trace_record *record,
			 uint64_t now);
/*
 * A poll has taken the bytes of a stream up to `tail` from the device, at `now`. The link is known to have had them
 * until `late`, or 0. Returns the least end that the program has not read, 0: none.
 */
uint64_t shunt_followed_see(struct shunt_followed *followed, uint32_t stream, uint64_t tail,
			    uint64_t now, uint64_t late);
/* The program has read up to `head`. The same; and *id of the last that is no answer, 0: none. */
uint64_t shunt_followed_read(struct shunt_followed *followed, uint32_t stream, uint64_t head,
			     int fd, uint64_t now, uint64_t *id);
/*
 * A send that has been read becomes an entry of the book once the peer has told when it was placed.
 * If it was read before `before`, it becomes one without that.
 */
void shunt_followed_settle(struct shunt_followed *followed, uint64_t before);
/* The number is another stream's from here on. */
void shunt_followed_forget(struct shunt_followed *followed, uint32_t stream);

/* May there be a record that has not been copied? Without the lock, where no other thread copies records. */
static inline bool shunt_followed_any(const struct shunt_followed *followed)
{
	return __atomic_load_n(&followed->ring[followed->next % SHUNT_TRACE_SLOTS].number,
			       __ATOMIC_ACQUIRE) >= followed->next;
}

#endif
