/* SPDX-License-Identifier: MIT */
/*
 * A copy of the bytes of streams for `shunt dump`, in memory that the tool has made. Threads of the program write
 * records there, beside their streams, and never wait: records without room are dropped and counted. The tool reads.
 *
 * The memory is a page, then an array of records, then the bytes. Both are rings. A thread reserves its record and its
 * bytes by one compare-and-swap of `head`, which the process keeps to itself. It fills them in, and stores the
 * record's number last. The tool takes records in order, and moves `tail` behind them.
 *
 * The tool is not trusted: of what it can write the process reads `tail` alone. A wrong `tail` leaves no room, or has
 * records overwritten that the tool has not read. It never moves a write out of the memory, whose size is sealed.
 *
 * Without a listener `tap` is NULL, and a call tests that once, beside the table of files that it reads anyway.
 */
#ifndef SHUNT_CORE_TRACE_TAP_H
#define SHUNT_CORE_TRACE_TAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shunt/wire.h"

struct shunt_iov;

#define SHUNT_TAP_LAYOUT 1 /* of this memory: tool and library may be of different versions */
#define SHUNT_TAP_PAGE 4096u
#define SHUNT_TAP_UNIT 64u /* bytes of a record begin at a multiple of it */
#define SHUNT_TAP_MOST 65408u /* bytes of a record: a TCP segment in one IP packet */
#define SHUNT_TAP_BYTES_MIN (1ull << 20) /* of the ring of bytes, a power of two */
#define SHUNT_TAP_BYTES_MAX (1ull << 30)
#define SHUNT_TAP_PER_RECORD 512u /* bytes of that ring for each record */

enum shunt_tap_kind {
	SHUNT_TAP_DATA,
	SHUNT_TAP_END, /* out: shutdown() of sending; in: the program has read the peer's end */
	SHUNT_TAP_CLOSE, /* the program has closed it */
	SHUNT_TAP_RESET, /* the program has been told of a reset */
	SHUNT_TAP_LEFT, /* the kernel's alone from here on: its calls are not seen */
	SHUNT_TAP_KINDS
};

/* Bits. */
enum shunt_tap_flag {
	SHUNT_TAP_OUT = 1 << 0, /* sent, not received */
	SHUNT_TAP_LINK = 1 << 1, /* by the link, not by TCP */
	SHUNT_TAP_WHOLE = 1 << 2, /* the connection began after the tool had come */
	SHUNT_TAP_CONNECTED = 1 << 3, /* this end has connected, not accepted */
	SHUNT_TAP_UNSEEN = 1 << 4, /* the bytes are not here: the program has thrown them away unread */
};

struct shunt_tap_record {
	_Alignas(64) _Atomic uint32_t number; /* its place in the order + 1 once it is complete */
	uint32_t bytes; /* of the stream, at most SHUNT_TAP_MOST */
	uint32_t unit; /* its bytes begin there in the ring, modulo the ring's size, */
	uint32_t units; /* and take so many; 0: they are not there */
	uint32_t dropped; /* records between the one before and this one */
	uint64_t offset; /* of the stream: its first byte, or where it has ended */
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	uint64_t born; /* ns: when the connection began. It tells two of the same addresses apart */
	struct shunt_tuple tuple; /* all 0: not known any more, and `born` says which connection it is */
	uint8_t kind; /* enum shunt_tap_kind */
	uint8_t flags; /* enum shunt_tap_flag */
};

_Static_assert(sizeof(struct shunt_tap_record) == 128, "one size for all versions of this layout");

/* The first page. */
struct shunt_tap_page {
	_Atomic uint64_t dropped; /* records; the process writes */
	_Atomic uint64_t dropped_bytes; /* of their streams */
	_Alignas(64) _Atomic uint64_t tail; /* as shunt_tap_at(); the tool writes */
};

/* A place in both rings. Both parts wrap. */
static inline uint64_t shunt_tap_at(uint32_t record, uint32_t unit)
{
	return (uint64_t)record << 32 | unit;
}

static inline uint32_t shunt_tap_record_of(uint64_t at)
{
	return (uint32_t)(at >> 32);
}

static inline uint32_t shunt_tap_unit_of(uint64_t at)
{
	return (uint32_t)at;
}

static inline uint32_t shunt_tap_units(uint32_t bytes)
{
	return (bytes + SHUNT_TAP_UNIT - 1) / SHUNT_TAP_UNIT;
}

/* Size of the memory with a ring of so many bytes. */
static inline uint64_t shunt_tap_size(uint64_t bytes)
{
	return SHUNT_TAP_PAGE +
	       bytes / SHUNT_TAP_PER_RECORD * sizeof(struct shunt_tap_record) + bytes;
}

struct shunt_tap {
	struct shunt_tap_page *page;
	struct shunt_tap_record *records;
	uint8_t *bytes;
	uint32_t record_count, units; /* powers of two */
	_Atomic uint64_t since; /* ns: connections that began then or later are told of whole; UINT64_MAX: none */
	_Atomic uint64_t head; /* as shunt_tap_at() */
	_Atomic uint32_t dropped; /* records that no later one has told of */
};

/* The engine's. `users`: threads that may be at work with the tap. It stays until they are gone. */
struct shunt_tapping {
	struct shunt_tap *_Atomic tap; /* NULL: nobody listens */
	_Atomic uint32_t users;
};

static inline bool shunt_tapping_listens(const struct shunt_tapping *tapping)
{
	return __builtin_expect(
		atomic_load_explicit(&((struct shunt_tapping *)tapping)->tap,
				     memory_order_relaxed) != NULL,
		0);
}

/*
 * Maps the memory behind a descriptor that the tool has sent; the descriptor stays the caller's. NULL: *why says why
 * not, for people; else that is NULL. Service thread.
 */
struct shunt_tap *shunt_tap_open(int fd, const char **why);
/* No thread uses it any more. */
void shunt_tap_close(struct shunt_tap *tap);

/*
 * Around the use of a tap. NULL: nobody listens any more, and there is nothing to leave. Any thread, any lock may be
 * held; neither waits.
 */
struct shunt_tap *shunt_tapping_enter(struct shunt_tapping *tapping);
void shunt_tapping_leave(struct shunt_tapping *tapping);

/*
 * Writes records of `bytes` bytes from what->offset on, as many as are needed. A call has just moved the bytes, and they
 * end at `behind` in its buffers, or `behind` is NULL and the records have none. `copy` is that word of SHUNT_TUNE. Any
 * thread, any lock may be held; nothing waits.
 */
void shunt_tap_put(struct shunt_tap *tap, const struct shunt_tap_record *what, uint64_t bytes,
		   const struct shunt_iov *behind, const uint64_t *copy);

#endif
