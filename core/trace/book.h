/* SPDX-License-Identifier: MIT */
/*
 * The book of a process: the last sends of its peers that its program has read, with a time for each stage. It also
 * counts the fates of sends that were followed. All times of an entry are ns of this process's clock.
 *
 *   called ── waited for credit ── posted ── on the link ── placed ── waited for the reader's poll ── seen
 *          ── waited for the program ── read
 */
#ifndef SHUNT_CORE_TRACE_BOOK_H
#define SHUNT_CORE_TRACE_BOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/lock.h"

#define SHUNT_TRACE_KEPT 1024

struct shunt_trace {
	uint64_t id;
	uint64_t end; /* stream offset behind the last byte */
	uint32_t stream; /* our number on its link */
	uint32_t peer; /* process id of the sender, for people */
	int fd; /* of the reader */
	uint32_t bytes;
	bool answer; /* the sender had read the send of this id, which was ours, before */
	uint64_t called, accepted,
		posted; /* as in struct shunt_trace_record; accepted 0: at once */
	uint64_t placed; /* 0: nobody has told */
	uint64_t seen; /* a poll of the reader's process took it from the device */
	uint64_t read; /* the program has the last byte */
	uint64_t error; /* ns: the sender's times may be off by so many */
};

enum shunt_trace_count {
	SHUNT_TRACE_SENDS, /* ours that were counted */
	SHUNT_TRACE_CHOSEN, /* of them: to be followed, one in 2^K of each stream */
	SHUNT_TRACE_ANSWERS, /* followed because the program had read a followed send */
	SHUNT_TRACE_WRITTEN, /* records at the peer */
	SHUNT_TRACE_LOST, /* no ring, or no room: no record */
	SHUNT_TRACE_ABANDONED, /* the last byte went over TCP, or nowhere */
	SHUNT_TRACE_REFUSED, /* a peer's record could not be right */
	SHUNT_TRACE_MISSED, /* a peer's records that others had replaced */
	SHUNT_TRACE_UNREAD, /* a peer's record whose last byte was not read over the link */
	SHUNT_TRACE_READ, /* a peer's: these are the entries */
	SHUNT_TRACE_COUNTS
};

extern const char *const shunt_trace_count_names[SHUNT_TRACE_COUNTS];

struct shunt_trace_book {
	struct shunt_lock lock; /* innermost */
	_Atomic uint64_t counts[SHUNT_TRACE_COUNTS];
	_Atomic uint32_t ids; /* that our own sends have been given */
	uint64_t entries; /* there have been; the last SHUNT_TRACE_KEPT are here */
	struct shunt_trace of[SHUNT_TRACE_KEPT];
};

/* NULL: there is no memory. */
struct shunt_trace_book *shunt_trace_book_make(void);
/* In a fork's child, whose sends and reads are its own. */
void shunt_trace_book_inherit(struct shunt_trace_book *book);
void shunt_trace_book_add(struct shunt_trace_book *book, const struct shunt_trace *trace);
/* Copies the entries, the oldest first; returns how many. */
uint32_t shunt_trace_book_copy(struct shunt_trace_book *book,
			       struct shunt_trace out[SHUNT_TRACE_KEPT]);

static inline void shunt_trace_count(struct shunt_trace_book *book, enum shunt_trace_count what,
				     uint64_t add)
{
	atomic_fetch_add_explicit(&book->counts[what], add, memory_order_relaxed);
}

#endif
