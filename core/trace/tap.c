/* SPDX-License-Identifier: MIT */
#include "core/trace/tap.h"
#include <errno.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "core/base/guard.h"
#include "core/base/iov.h"
#include "core/base/space.h"

/* --- the memory --- */

/* Bytes of the ring in a file of that size; 0: it is no such file. */
static uint64_t ring_of(uint64_t size)
{
	for (uint64_t bytes = SHUNT_TAP_BYTES_MIN; bytes <= SHUNT_TAP_BYTES_MAX; bytes *= 2)
		if (shunt_tap_size(bytes) == size)
			return bytes;
	return 0;
}

static uint64_t ring_in(int fd)
{
	struct stat stat;
	uint64_t bytes = fstat(fd, &stat) ? 0 : ring_of((uint64_t)stat.st_size);

	return bytes && shunt_guard_is_safe(fd, shunt_tap_size(bytes), &stat) ? bytes : 0;
}

static void *map(int fd, uint64_t size)
{
	void *at = shunt_guard_map(size, fd);

	/* The tool has allocated the pages. So the program's threads get no page faults, where the kernel can do that. */
	if (at)
		madvise(at, size, MADV_POPULATE_WRITE);
	return at;
}

struct shunt_tap *shunt_tap_open(int fd, const char **why)
{
	uint64_t bytes = ring_in(fd);
	struct shunt_tap *tap;

	*why = "that is no memory for a dump";
	if (!bytes)
		return NULL;
	*why = "the program has limited its address space (RLIMIT_AS)";
	if (shunt_space_is_limited())
		return NULL;
	*why = "out of memory";
	tap = calloc(1, sizeof(*tap));
	if (!tap)
		return NULL;
	tap->page = map(fd, shunt_tap_size(bytes));
	if (!tap->page) {
		free(tap);
		return NULL;
	}
	tap->record_count = (uint32_t)(bytes / SHUNT_TAP_PER_RECORD);
	tap->units = (uint32_t)(bytes / SHUNT_TAP_UNIT);
	tap->records = (struct shunt_tap_record *)((uint8_t *)tap->page + SHUNT_TAP_PAGE);
	tap->bytes = (uint8_t *)(tap->records + tap->record_count);
	atomic_store(&tap->since, UINT64_MAX);
	*why = NULL;
	return tap;
}

void shunt_tap_close(struct shunt_tap *tap)
{
	shunt_guard_unmap(tap->page, shunt_tap_size((uint64_t)tap->units * SHUNT_TAP_UNIT));
	free(tap);
}

/* --- who uses it --- */

struct shunt_tap *shunt_tapping_enter(struct shunt_tapping *tapping)
{
	struct shunt_tap *tap;

	atomic_fetch_add(&tapping->users, 1);
	tap = atomic_load(&tapping->tap);
	if (!tap)
		atomic_fetch_sub(&tapping->users, 1);
	return tap;
}

void shunt_tapping_leave(struct shunt_tapping *tapping)
{
	atomic_fetch_sub_explicit(&tapping->users, 1, memory_order_release);
}

/* --- records --- */

static void drop(struct shunt_tap *tap, uint32_t bytes)
{
	atomic_fetch_add_explicit(&tap->dropped, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&tap->page->dropped, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&tap->page->dropped_bytes, bytes, memory_order_relaxed);
}

/* Both distances are those of words that wrap. A wrong tail makes them anything: then there may be no room. */
static bool has_room(const struct shunt_tap *tap, uint64_t head, uint32_t units)
{
	uint64_t tail = atomic_load_explicit(&tap->page->tail, memory_order_acquire);

	return shunt_tap_record_of(head) - shunt_tap_record_of(tail) < tap->record_count &&
	       shunt_tap_unit_of(head) - shunt_tap_unit_of(tail) <= tap->units - units;
}

static bool reserve(struct shunt_tap *tap, uint32_t units, uint64_t *at)
{
	uint64_t head = atomic_load_explicit(&tap->head, memory_order_relaxed), next;

	do {
		if (!has_room(tap, head, units))
			return false;
		next = shunt_tap_at(shunt_tap_record_of(head) + 1, shunt_tap_unit_of(head) + units);
	} while (!atomic_compare_exchange_weak_explicit(
		&tap->head, &head, next, memory_order_relaxed, memory_order_relaxed));
	*at = head;
	return true;
}

/* Takes `bytes` bytes from the buffers into the ring. False: a fault. */
static bool fill(struct shunt_tap *tap, uint32_t unit, struct shunt_iov *from, uint32_t bytes,
		 const uint64_t *copy)
{
	uint64_t ring = (uint64_t)tap->units * SHUNT_TAP_UNIT,
		 at = (uint64_t)(unit & (tap->units - 1)) * SHUNT_TAP_UNIT;
	struct iovec part;

	while (bytes && shunt_iov_next(from, bytes < ring - at ? bytes : ring - at, &part)) {
		if (!shunt_copy(tap->bytes + at, part.iov_base, part.iov_len, copy))
			return false;
		bytes -= (uint32_t)part.iov_len;
		at = (at + part.iov_len) & (ring - 1);
	}
	return !bytes;
}

/* `from` NULL: the bytes are not to be had. */
static void put(struct shunt_tap *tap, const struct shunt_tap_record *what, uint64_t offset,
		uint32_t bytes, struct shunt_iov *from, const uint64_t *copy)
{
	struct shunt_tap_record *record;
	uint32_t units = from ? shunt_tap_units(bytes) : 0;
	uint8_t flags = what->flags;
	uint64_t at;

	if (!reserve(tap, units, &at)) {
		if (from)
			shunt_iov_advance(from, bytes);
		drop(tap, bytes);
		return;
	}
	if (bytes && (!from || !fill(tap, shunt_tap_unit_of(at), from, bytes, copy)))
		flags |= SHUNT_TAP_UNSEEN;
	record = &tap->records[shunt_tap_record_of(at) & (tap->record_count - 1)];
	record->bytes = bytes;
	record->unit = shunt_tap_unit_of(at);
	record->units = units;
	record->dropped = atomic_load_explicit(&tap->dropped, memory_order_relaxed) ?
				  atomic_exchange_explicit(&tap->dropped, 0, memory_order_relaxed) :
				  0;
	record->offset = offset;
	record->time = what->time;
	record->born = what->born;
	record->tuple = what->tuple;
	record->kind = what->kind;
	record->flags = flags;
	atomic_store_explicit(&record->number, shunt_tap_record_of(at) + 1, memory_order_release);
}

void shunt_tap_put(struct shunt_tap *tap, const struct shunt_tap_record *what, uint64_t bytes,
		   const struct shunt_iov *behind, const uint64_t *copy)
{
	uint64_t done = 0;
	struct shunt_iov from;

	if (behind) {
		from = *behind;
		shunt_iov_go_back(&from, bytes);
	}
	do {
		uint32_t piece = bytes - done < SHUNT_TAP_MOST ? (uint32_t)(bytes - done) :
								 SHUNT_TAP_MOST;

		put(tap, what, what->offset + done, piece, behind ? &from : NULL, copy);
		done += piece;
	} while (done < bytes);
}
