/*
 * What memory a link holds: regions that come with the rings and go without them. Two engines in one thread
 * over real TCP; time is what the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/sim/pair.h"

#define PAIRS 100
#define BUFFER 65536
#define M (1 << 20)
#define SECOND 1000000000ull

static struct {
	struct pair pair[PAIRS];
	int pairs;
	uint64_t sent[PAIRS][2], received[PAIRS][2];	/* by sending side */
} bed;

/* LeakSanitizer shall find what is still alive. */
static struct shunt_engine *former[64][2];
static int formers;

static struct shunt_config small_config(void)
{
	struct shunt_config config;

	shunt_config_defaults(&config);
	config.log_level = 0;
	config.spin_us = 0;
	config.arena_bytes = 64 * M;
	return config;
}

/* --- moving bytes; the pattern is checked --- */

static uint8_t byte_at(uint64_t offset, int salt)
{
	return offset * 131 + (offset >> 8) + salt;
}

/* One send. Returns how much was taken. */
static size_t put(int i, int side, size_t bytes, int flags)
{
	static uint8_t buffer[BUFFER];
	uint64_t *sent = &bed.sent[i][side];
	ssize_t taken;

	bytes = bytes < BUFFER ? bytes : BUFFER;
	for (size_t k = 0; k < bytes; k++)
		buffer[k] = byte_at(*sent + k, 2 * i + side);
	taken = send_some(&bed.pair[i].side[side], buffer, bytes, flags | MSG_DONTWAIT);
	if (taken == -EAGAIN || (taken < 0 && errno == EAGAIN))
		taken = 0;
	assert_true(taken >= 0);
	*sent += taken;
	return taken;
}

/* Reads at most `most` of what `side` has sent. */
static size_t get(int i, int side, size_t most)
{
	static uint8_t buffer[BUFFER];
	uint64_t *received = &bed.received[i][side];
	ssize_t got = receive_some(&bed.pair[i].side[!side], buffer, most < BUFFER ? most : BUFFER, MSG_DONTWAIT);

	if (got == -EAGAIN || (got < 0 && errno == EAGAIN))
		return 0;
	assert_true(got >= 0);
	for (ssize_t k = 0; k < got; k++)
		assert_int_equal(buffer[k], byte_at(*received + k, 2 * i + side));
	*received += got;
	return got;
}

/* The service threads alone: no program calls anything. */
static void serve(void)
{
	for (int n = 0; n < 2; n++)
		for (int i = 0; i < 2; i++)
			if (engines[i]->service)
				shunt_service_step(engines[i], 0);
}

/* So many seconds in which nothing is sent or received. */
static void pass(int seconds)
{
	while (seconds--) {
		pair_skew += SECOND;
		serve();
	}
}

static void drain(void)
{
	size_t moved;

	do {
		moved = 0;
		serve();
		for (int i = 0; i < bed.pairs; i++)
			for (int side = 0; side < 2; side++)
				moved += get(i, side, BUFFER);
	} while (moved);
}

static void all_arrived(void)
{
	drain();
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			assert_int_equal(bed.received[i][side], bed.sent[i][side]);
	assert_int_equal(atomic_load(&engines[0]->distrusted) + atomic_load(&engines[1]->distrusted), 0);
}

/* --- the bed --- */

static bool on_link(struct side *side)
{
	struct shunt_stream *stream = stream_of(side);

	return stream->tx.track == SHUNT_LINK && stream->rx.track == SHUNT_LINK && !atomic_load(&stream->tx.unpassed);
}

static void warm(int i)
{
	for (int n = 0; !on_link(&bed.pair[i].side[0]) || !on_link(&bed.pair[i].side[1]); n++) {
		assert_true(n < 10000);
		for (int side = 0; side < 2; side++) {
			put(i, side, 1, 0);
			serve();
			get(i, side, BUFFER);
		}
	}
}

static void make_bed(const struct shunt_config *config)
{
	if (engines[0]) {
		former[formers][0] = engines[0];
		former[formers++][1] = engines[1];
	}
	memset(&bed, 0, sizeof(bed));
	make_engines(config, true);
	listen_here();
}

static void add_pair(void)
{
	connect_pair(&bed.pair[bed.pairs]);
	warm(bed.pairs++);
}

static void close_all(void)
{
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	bed.pairs = 0;
	for (int i = 0; i < 2; i++)
		shunt_group_poll_fully(engines[i]);
	serve();
}

static struct shunt_arena *arena_of(int i)
{
	return &engines[i]->service->links->arena;
}

/* Memory regions beside that of the control lines. */
static uint32_t blocks(int i)
{
	struct shunt_arena *arena = arena_of(i);

	assert_int_equal(arena->strays, 0);
	assert_int_equal(arena->registered, arena->memory.reserved +
			 (arena->regions - 1) * shunt_arena_most(arena));
	return arena->regions - 1;
}

static uint64_t counted(int i, const char *name)
{
	char wanted[32], *json, *found;
	uint64_t number;
	size_t bytes;

	snprintf(wanted, sizeof(wanted), "\"%s\":", name);
	json = shunt_stats_json(engines[i], &bytes);
	assert_non_null(json);
	found = strstr(json, wanted);
	assert_non_null(found);
	number = strtoull(found + strlen(wanted), NULL, 10);
	free(json);
	return number;
}

/* --- regions (XR-14) --- */

static void regions_follow_the_streams(void **state)
{
	struct shunt_config config = small_config();

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config);
	for (int n = 1; n <= PAIRS; n++) {
		add_pair();
		for (int i = 0; i < 2; i++)
			assert_int_equal(blocks(i), (n * config.ring_min + 4 * M - 1) / (4 * M));
	}
	assert_int_equal(counted(0, "memory_regions"), 8);
	assert_int_equal(counted(0, "memory_registered"), 8 * M + 7 * 4 * M);
	for (int round = 0; round < 20; round++) {	/* the rings wrap */
		for (int i = 0; i < PAIRS; i++)
			for (int side = 0; side < 2; side++)
				assert_int_equal(put(i, side, 30011, 0), 30011);
		all_arrived();
	}
	pass(5);
	assert_int_equal(blocks(0), 7);
	close_all();
	pair_skew += SECOND / 2;
	serve();
	assert_int_equal(blocks(0), 7);
	pass(2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(blocks(i), 0);
	assert_int_equal(counted(1, "memory_regions"), 1);
	add_pair();	/* and it begins anew */
	assert_int_equal(blocks(0), 1);
	all_arrived();
	close_all();
	pass(3);
}

/* Half of them go, every other one: those that stay keep their blocks. */
static void blocks_in_use_stay(void **state)
{
	struct shunt_config config = small_config();

	(void)state;
	config.ring_min = 256 << 10;
	config.mr_bytes = 1 * M;
	config.ring_max = 1 * M;
	make_bed(&config);
	for (int n = 0; n < 8; n++)
		add_pair();
	assert_int_equal(blocks(0), 2);
	for (int n = 4; n < 8; n++) {
		close_side(&bed.pair[n].side[0]);
		close_side(&bed.pair[n].side[1]);
	}
	bed.pairs = 4;
	for (int i = 0; i < 2; i++)
		shunt_group_poll_fully(engines[i]);
	pass(4);
	assert_int_equal(blocks(0), 1);
	assert_int_equal(put(2, 0, 1000, 0), 1000);
	all_arrived();
	close_all();
	pass(3);
	assert_int_equal(blocks(0), 0);
}

/* Without a region for its ring a connection stays on TCP; the others do not notice. */
static void no_more_regions(void **state)
{
	struct shunt_config config = small_config();

	(void)state;
	config.arena_bytes = 16 * M;
	config.ring_min = config.ring_max = 4 * M;
	make_bed(&config);
	add_pair();
	add_pair();
	assert_int_equal(blocks(0), 2);
	connect_pair(&bed.pair[2]);
	bed.pairs++;
	for (int n = 0; n < 100; n++)
		for (int side = 0; side < 2; side++) {
			put(2, side, 100, 0);
			serve();
			get(2, side, BUFFER);
		}
	assert_false(on_link(&bed.pair[2].side[0]));
	for (int i = 0; i < 3; i++)
		put(i, 0, 50000, 0);
	all_arrived();
	close_all();
	pass(3);
}

/* The engine believes the peer's keys; the device does not. */
static void a_wrong_key_ends_the_link(void **state)
{
	struct shunt_config config = small_config();
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config);
	add_pair();
	add_pair();
	stream = stream_of(&bed.pair[0].side[0]);
	stream->tx.ring_rkey ^= 1u << 20;
	put(0, 0, 100, 0);
	for (int n = 0; n < 10; n++) {
		shunt_group_poll_fully(engines[0]);
		shunt_group_poll_fully(engines[1]);
		serve();
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(stream_of(&bed.pair[1].side[i])->tx.track, SHUNT_TCP);
	assert_int_equal(put(1, 0, 100, 0), 100);
	while (bed.received[1][0] < bed.sent[1][0])
		get(1, 0, BUFFER);
	close_all();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_follow_the_streams),
		cmocka_unit_test(blocks_in_use_stay),
		cmocka_unit_test(no_more_regions),
		cmocka_unit_test(a_wrong_key_ends_the_link),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
