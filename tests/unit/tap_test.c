/* SPDX-License-Identifier: MIT */
/* The rings of a tap: order, wrapping, what has no room, a reader that lies, many writers, and memory that is none. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/iov.h"
#include "core/trace/tap.h"

#define RING SHUNT_TAP_BYTES_MIN
#define UNITS (uint32_t)(RING / SHUNT_TAP_UNIT)
#define RECORDS (uint32_t)(RING / SHUNT_TAP_PER_RECORD)
#define WRITERS 4
#define EACH 50000u

static const uint64_t copy = SHUNT_COPY_AUTO;
static struct shunt_tap *tap;
static uint64_t tail; /* of the reader */
static uint8_t read_bytes[SHUNT_TAP_MOST];
static _Atomic int at_work; /* writers */

static int make_memory(uint64_t size, int seals)
{
	int fd = memfd_create("tap_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int set_up(void **state)
{
	int fd = make_memory(shunt_tap_size(RING), F_SEAL_SHRINK | F_SEAL_GROW);
	const char *why;

	(void)state;
	tap = shunt_tap_open(fd, &why);
	close(fd);
	tail = 0;
	return !tap || why;
}

static int tear_down(void **state)
{
	(void)state;
	shunt_tap_close(tap);
	return 0;
}

static void put(uint64_t offset, const uint8_t *bytes, size_t count)
{
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA, .offset = offset, .born = 7 };
	struct iovec piece = { (void *)bytes, count };
	struct shunt_iov of;

	shunt_iov_begin(&of, &piece, 1);
	shunt_iov_advance(&of, count);
	shunt_tap_put(tap, &what, count, &of, &copy);
}

/* The next record, with its bytes in `read_bytes`; false: there is none. */
static bool take(struct shunt_tap_record *record)
{
	struct shunt_tap_record *slot = &tap->records[shunt_tap_record_of(tail) % RECORDS];

	if (atomic_load_explicit(&slot->number, memory_order_acquire) !=
	    shunt_tap_record_of(tail) + 1)
		return false;
	memcpy(record, slot, sizeof(*record));
	assert_int_equal(record->unit, shunt_tap_unit_of(tail));
	for (uint32_t i = 0; record->units && i < record->bytes; i++)
		read_bytes[i] = tap->bytes[((uint64_t)record->unit * SHUNT_TAP_UNIT + i) % RING];
	tail = shunt_tap_at(shunt_tap_record_of(tail) + 1,
			    shunt_tap_unit_of(tail) + record->units);
	atomic_store_explicit(&tap->page->tail, tail, memory_order_release);
	return true;
}

static void records_come_in_order_round_the_rings(void **state)
{
	static uint8_t bytes[3 * SHUNT_TAP_MOST];
	struct shunt_tap_record record;
	uint64_t offset = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + i / 251);
	for (uint32_t i = 0; i < 3 * RECORDS; i++) {
		size_t count = 1 + i * 7919ull % sizeof(bytes), done = 0;

		put(offset, bytes, count);
		while (done < count) {
			assert_true(take(&record));
			assert_int_equal(record.offset, offset + done);
			assert_int_equal(record.born, 7);
			assert_int_equal(record.dropped, 0);
			assert_in_range(record.bytes, 1, SHUNT_TAP_MOST);
			assert_memory_equal(read_bytes, bytes + done, record.bytes);
			done += record.bytes;
		}
		assert_int_equal(done, count);
		offset += count;
	}
	assert_false(take(&record));
	assert_int_equal(tap->page->dropped, 0);
}

static void buffers_are_one_after_another(void **state)
{
	uint8_t text[] = "one two three";
	struct iovec pieces[] = { { text, 4 }, { NULL, 0 }, { text + 4, 4 }, { text + 8, 5 } };
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA }, record;
	struct shunt_iov of;

	(void)state;
	shunt_iov_begin(&of, pieces, 4);
	for (size_t at = 1; at <= 13; at++) { /* the call has moved all up to there, and the last byte by itself */
		shunt_iov_advance(&of, 1);
		shunt_tap_put(tap, &what, at, &of, &copy);
		assert_true(take(&record));
		assert_int_equal(record.bytes, at);
		assert_memory_equal(read_bytes, text, at);
		shunt_tap_put(tap, &what, 1, &of, &copy);
		assert_true(take(&record));
		assert_int_equal(read_bytes[0], text[at - 1]);
	}
}

/* The program has made its array shorter meanwhile. */
static void no_buffer_before_the_first_is_read(void **state)
{
	uint8_t text[] = "0123456789";
	struct iovec pieces[] = { { (void *)1, 1ull << 60 }, { text, 5 }, { text + 5, 5 } };
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA }, record;
	struct shunt_iov of;

	(void)state;
	shunt_iov_begin(&of, pieces + 1, 2);
	shunt_iov_advance(&of, 10);
	pieces[1].iov_len = 2;
	shunt_tap_put(tap, &what, 10, &of, &copy);
	assert_true(take(&record));
	assert_true(record.flags & SHUNT_TAP_UNSEEN);
}

static void what_has_no_room_is_counted(void **state)
{
	static uint8_t bytes[SHUNT_TAP_MOST];
	struct shunt_tap_record record;
	uint32_t kept = UNITS / shunt_tap_units(sizeof(bytes));

	(void)state;
	for (uint32_t i = 0; i < kept + 5; i++)
		put(i * sizeof(bytes), bytes, sizeof(bytes));
	assert_int_equal(tap->page->dropped, 5);
	assert_int_equal(tap->page->dropped_bytes, 5 * sizeof(bytes));
	for (uint32_t i = 0; i < kept; i++) {
		assert_true(take(&record));
		assert_int_equal(record.offset, i * sizeof(bytes));
		assert_int_equal(record.dropped, 0);
	}
	assert_false(take(&record));
	put((kept + 5) * sizeof(bytes), bytes, 1);
	assert_true(take(&record));
	assert_int_equal(record.dropped, 5);
	put(0, bytes, 1);
	assert_true(take(&record));
	assert_int_equal(record.dropped, 0);
	/* The records can be used up before the bytes. */
	for (uint32_t i = 0; i < RECORDS + 3; i++)
		put(i, bytes, 1);
	assert_int_equal(tap->page->dropped, 8);
}

/* A reader that lies moves no write out of the memory: guards on both sides would fault. */
static void a_reader_may_say_anything(void **state)
{
	static uint8_t bytes[SHUNT_TAP_MOST];
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		atomic_store(&tap->page->tail,
			     i % 3 ? random : atomic_load(&tap->head) - (random >> 40));
		put(random, bytes, 1 + (random >> 33) % sizeof(bytes));
	}
}

static void bytes_that_are_not_there_are_unseen(void **state)
{
	struct shunt_tap_record what = { .kind = SHUNT_TAP_DATA }, record;

	(void)state;
	shunt_tap_put(tap, &what, 2 * SHUNT_TAP_MOST, NULL, &copy);
	for (int i = 0; i < 2; i++) {
		assert_true(take(&record));
		assert_int_equal(record.bytes, SHUNT_TAP_MOST);
		assert_int_equal(record.units, 0);
		assert_true(record.flags & SHUNT_TAP_UNSEEN);
	}
	what.kind = SHUNT_TAP_CLOSE;
	shunt_tap_put(tap, &what, 0, NULL, &copy);
	assert_true(take(&record));
	assert_int_equal(record.kind, SHUNT_TAP_CLOSE);
	assert_false(record.flags & SHUNT_TAP_UNSEEN);
}

/* Each writes its number and its count. */
static void *write_many(void *arg)
{
	uint32_t words[40];

	for (uint32_t i = 0; i < EACH; i++) {
		for (size_t j = 0; j < 40; j++)
			words[j] = i;
		put((uint64_t)(uintptr_t)arg << 32 | i, (uint8_t *)words, 4 + i % 157);
	}
	atomic_fetch_sub(&at_work, 1);
	return NULL;
}

static void writers_wait_for_nobody(void **state)
{
	pthread_t threads[WRITERS];
	int64_t last[WRITERS];
	uint64_t got = 0, dropped = 0;
	struct shunt_tap_record record;
	bool over = false, more = true;

	(void)state;
	memset(last, 0xff, sizeof(last));
	atomic_store(&at_work, WRITERS);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
	while (!over || more) {
		uint32_t who, count;

		over = !atomic_load(&at_work);
		more = take(&record);
		if (!more)
			continue;
		who = (uint32_t)(record.offset >> 32);
		count = (uint32_t)record.offset;
		assert_in_range(who, 0, WRITERS - 1);
		assert_true((int64_t)count > last[who]);
		last[who] = count;
		assert_int_equal(record.bytes, 4 + count % 157);
		for (uint32_t i = 0; i + 4 <= record.bytes; i += 4)
			assert_memory_equal(read_bytes + i, &count, 4);
		dropped += record.dropped;
		got++;
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(got + atomic_load(&tap->page->dropped), WRITERS * EACH);
	assert_true(dropped <= atomic_load(&tap->page->dropped));
}

static void only_sealed_memory_is_taken(void **state)
{
	uint64_t size = shunt_tap_size(RING);
	const struct {
		uint64_t size;
		int seals;
	} wrong[] = {
		{ size, 0 },
		{ size, F_SEAL_GROW },
		{ size, F_SEAL_SHRINK },
		{ size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE },
		{ size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE },
		{ size - 1, F_SEAL_SHRINK | F_SEAL_GROW },
		{ size + 4096, F_SEAL_SHRINK | F_SEAL_GROW },
		{ 0, F_SEAL_SHRINK | F_SEAL_GROW },
		{ shunt_tap_size(RING / 2), F_SEAL_SHRINK | F_SEAL_GROW },
		{ shunt_tap_size(2 * SHUNT_TAP_BYTES_MAX), F_SEAL_SHRINK | F_SEAL_GROW },
	};
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = make_memory(wrong[i].size, wrong[i].seals);

		assert_null(shunt_tap_open(fd, &why));
		assert_non_null(why);
		close(fd);
	}
	assert_null(shunt_tap_open(-1, &why));
}

static void users_keep_a_tap(void **state)
{
	struct shunt_tapping tapping = { 0 };

	(void)state;
	assert_false(shunt_tapping_listens(&tapping));
	assert_null(shunt_tapping_enter(&tapping));
	assert_int_equal(tapping.users, 0);
	atomic_store(&tapping.tap, tap);
	assert_true(shunt_tapping_listens(&tapping));
	assert_ptr_equal(shunt_tapping_enter(&tapping), tap);
	assert_int_equal(tapping.users, 1);
	shunt_tapping_leave(&tapping);
	assert_int_equal(tapping.users, 0);
}

int main(void)
{
#define WITH_TAP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_TAP(records_come_in_order_round_the_rings),
		WITH_TAP(buffers_are_one_after_another),
		WITH_TAP(no_buffer_before_the_first_is_read),
		WITH_TAP(what_has_no_room_is_counted),
		WITH_TAP(a_reader_may_say_anything),
		WITH_TAP(bytes_that_are_not_there_are_unseen),
		WITH_TAP(writers_wait_for_nobody),
		WITH_TAP(users_keep_a_tap),
		cmocka_unit_test(only_sealed_memory_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
