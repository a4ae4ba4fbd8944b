/* SPDX-License-Identifier: MIT */
/*
 * The ledger of a stream's end. It has what the kernel, the link and a lost link have said of it. It has what the program
 * has done and been told, and what the next call is to tell.
 *
 * All of that is one word, so that a look is one load, and shunt_end_learn() is its only writer. Events come under
 * rx.lock, tx.lock or group.lock, and each takes effect at once. tests/unit/end_test.c has the table of states and events.
 */
#ifndef SHUNT_CORE_STREAM_END_H
#define SHUNT_CORE_STREAM_END_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/loop/loop.h"

enum shunt_end_fact {
	/* what is true of the connection */
	SHUNT_END_TCP_OVER = 1 << 0,	/* the kernel's socket has nothing more for the program */
	SHUNT_END_RESET = 1 << 1,	/* the peer's end is gone: an error, behind all that has come */
	SHUNT_END_BROKEN = 1 << 2,	/* sends fail: that, or this end has reset the connection */
	SHUNT_END_SUSPECT = 1 << 3,	/* bytes may be missing before TCP's end: EOF is a reset */
	SHUNT_END_EARLY = 1 << 4,	/* FIN came ahead of the nonce, or of ACCEPT: `fin` does not count yet */
	/* what the program has done, or this end for it */
	SHUNT_END_SHUT_READ = 1 << 5,	/* shutdown(SHUT_RD) */
	SHUNT_END_SHUT_WRITE = 1 << 6,	/* shutdown(SHUT_WR), or close() */
	SHUNT_END_REFUSED = 1 << 7,	/* a reset has answered data behind SHUT_RDWR */
	/* what is due */
	SHUNT_END_OWES_RESET = 1 << 8,	/* TCP is to be reset behind its unread bytes, or by close() */
	SHUNT_END_TOLD = 1 << 9,	/* the program knows of the error; the other track may bring it, too */
};

/* (e): with an error. */
enum shunt_end_event {
	SHUNT_LEARN_EOF,		/* TCP is over: its end was read, or only an error is left */
	SHUNT_LEARN_RESET,		/* (e) the peer's end is gone; the first error counts */
	SHUNT_LEARN_LOSS,		/* (e) bytes are lost with the link; this error counts */
	SHUNT_LEARN_SUSPICION,		/* a distrusted link may have had more, or TCP ends within a nonce */
	SHUNT_LEARN_EARLY_FIN,		/* FIN is known, and counts from SHUNT_LEARN_PROOF on */
	SHUNT_LEARN_PROOF,		/* the nonce has been read, or is not waited for: ACCEPT has come */
	SHUNT_LEARN_LINK_LEFT,		/* the stream has no link any more: its FIN does not count */
	SHUNT_LEARN_SHUT_READ,		/* shutdown(SHUT_RD) */
	SHUNT_LEARN_SHUT_WRITE,		/* shutdown(SHUT_WR), or close() */
	SHUNT_LEARN_OWN_RESET,		/* this end resets the connection, or cannot send any more */
	SHUNT_LEARN_REFUSAL,		/* it resets, as the answer to data that the program does not want */
	SHUNT_LEARN_RESET_OWED,		/* TCP is to be reset later */
	SHUNT_LEARN_RESET_PAID,		/* and has been */
	SHUNT_LEARN_ERROR_TOLD,		/* the program is told of the error, if there is one */
	SHUNT_LEARN_KERNEL_TOLD,	/* (e) the kernel has told the program of one */
	SHUNT_LEARN_CANDIDATE_TOLD,	/* the same, before there is a link */
	SHUNT_LEARN_KERNEL_RESET,	/* recv() has taken the kernel's ECONNRESET */
	SHUNT_LEARN_SUSPICION_TOLD,	/* EOF came under suspicion: ECONNRESET, unless an end is known */
	SHUNT_LEARN_UNTOLD,		/* (e or 0) the next call tells it: this one has moved bytes, or connects anew */
	SHUNT_LEARN_KEPT,		/* (e) the next call tells it, whichever asks */
	SHUNT_LEARN_KEPT_TOLD,		/* and has */
	SHUNT_END_EVENTS
};

/* The answer of the next recv() or poll() for input, where nothing is left to read. */
enum shunt_end_due { SHUNT_END_OPEN, SHUNT_END_EOF, SHUNT_END_ERROR };

struct shunt_end {
	_Atomic uint64_t word;	/* enum shunt_end_fact; from bit 16 on the error; from bit 32 on the kept one */
	_Atomic uint64_t fin;	/* group.lock: stream offset of FIN, or of TCP's end that was read; SHUNT_NEVER: unknown */
	uint64_t owed;		/* rx.lock: stream offset up to which TCP must bring the bytes of a failed link; EOF before it is a reset */
};

/* The word after an event. */
uint64_t shunt_end_after(uint64_t word, enum shunt_end_event event, int error);
/* The event takes effect. Returns the word before it. Any thread, any lock. */
uint64_t shunt_end_learn(struct shunt_end *end, enum shunt_end_event event, int error);
/* The stream has no link any more: what the link has told of the end does not count. */
void shunt_end_leave_link(struct shunt_end *end);
/* As in a new stream. Nobody else looks. */
void shunt_end_begin(struct shunt_end *end);

static inline int shunt_end_error_of(uint64_t word)
{
	return (int)(word >> 16 & 0xffff);
}

static inline int shunt_end_kept_of(uint64_t word)
{
	return (int)(word >> 32 & 0xffff);
}

/* One of these is true. */
static inline bool shunt_end_has(const struct shunt_end *end, uint32_t facts)
{
	return atomic_load(&end->word) & facts;
}

/* The same without order, for the common case that none is. */
static inline bool shunt_end_seems(const struct shunt_end *end, uint32_t facts)
{
	return __builtin_expect(
		(atomic_load_explicit(&end->word, memory_order_relaxed) & facts) != 0, 0);
}

/* The error that the program is still to be told of; 0: none. */
static inline int shunt_end_error(const struct shunt_end *end)
{
	return shunt_end_error_of(atomic_load_explicit(&end->word, memory_order_relaxed));
}

/* The error that waits for the next call; 0: none. */
static inline int shunt_end_kept(const struct shunt_end *end)
{
	return shunt_end_kept_of(atomic_load_explicit(&end->word, memory_order_relaxed));
}

/* Stream offset of the end; SHUNT_NEVER: not known, or it does not count yet. */
static inline uint64_t shunt_end_at(const struct shunt_end *end)
{
	uint64_t fin = atomic_load_explicit(&end->fin, memory_order_relaxed);

	return __builtin_expect(fin == SHUNT_NEVER, 1) || shunt_end_has(end, SHUNT_END_EARLY) ?
		       SHUNT_NEVER :
		       fin;
}

/* The reader stands at `head` with nothing to read. `by_link`: the link would bring the next byte. */
static inline enum shunt_end_due shunt_end_due(const struct shunt_end *end, uint64_t head,
					       bool by_link)
{
	uint64_t word = atomic_load(&end->word);

	if (word & SHUNT_END_SHUT_READ || shunt_end_at(end) == head)
		return SHUNT_END_EOF;
	return word & SHUNT_END_RESET && (by_link || word & SHUNT_END_TCP_OVER) ? SHUNT_END_ERROR :
										  SHUNT_END_OPEN;
}

#endif
