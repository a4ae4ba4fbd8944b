/* SPDX-License-Identifier: MIT */
/*
 * Streams at rest (core/stream/rest.h): a fork's child takes one that its parent has not used since, once, and never
 * one that the parent has used or could not leave whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/fork/fork_rest.h"
#include "core/fork/fork_slots.h"
#include "core/stream/rest.h"
#include "tests/inspect.h"
#include "tests/unit/sockets.h"

static struct shunt_link linked;
static struct shunt_stream stream;
static struct shunt_seat seat;

/* A linked stream that has sent and read all. */
static int begin(void **state)
{
	if (set_up(state))
		return -1;
	if (engine->forks.shared)
		munmap(engine->forks.shared, SHUNT_FORK_SLOTS_BYTES);
	engine->forks.shared = NULL;
	engine->forks.pid = getpid();
	linked = (struct shunt_link) { .engine = engine, .state = SHUNT_LINK_UP, .kin_told = true };
	linked.channel.kind = SHUNT_CHANNEL_UNIX;
	linked.channel.known = true;
	seat = (struct shunt_seat) { .stream = &stream, .link = &linked };
	stream = (struct shunt_stream) { .group = &engine->group, .seat = &seat, .state = SHUNT_LINKED };
	stream_set_idle(&stream);
	return !shunt_fork_slots_prepare(&engine->forks, engine->sys);
}

static int end(void **state)
{
	(void)state;
	shunt_fork_slots_leave(&engine->forks, &stream.sharing);
	return 0;
}

static void before_fork(void)
{
	struct shunt_sharing sharing = { .forks = &engine->forks };

	assert_int_equal(shunt_rest_share(&stream, &sharing), 0);
	assert_false(sharing.full);
}

/* Whether a process gets the stream that has it as it is now. The mark that it leaves is its own, and it ends. */
static bool child_takes(void)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		engine->forks.pid = getpid();
		_exit(shunt_rest_take(&stream) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_child_takes_what_rests(void **state)
{
	(void)state;
	before_fork();
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_RESTING);
	assert_false(shunt_fork_rest_is_taken(stream.sharing.slot));
	assert_true(child_takes());
	assert_true(shunt_fork_rest_is_taken(stream.sharing.slot));
	assert_false(shunt_rest_end(&stream));
	assert_true(shunt_fork_slots_held(&stream.sharing));
}

static void not_what_has_been_used(void **state)
{
	(void)state;
	before_fork();
	assert_true(shunt_rest_end(&stream));
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_STAYING);
	assert_false(child_takes());
	assert_true(shunt_rest_end(&stream));	/* a reader and a sender may come at once */
}

/* The place that an earlier child knows has been passed. */
static void not_by_a_child_of_before(void **state)
{
	uint64_t before;

	(void)state;
	before_fork();
	before = stream.sharing.rest;
	assert_true(shunt_rest_end(&stream));
	before_fork();
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_RESTING);
	assert_true(stream.sharing.rest > before);
	stream.sharing.rest = before;
	assert_false(child_takes());
}

static void a_sibling_goes_on_after_one_that_died(void **state)
{
	pid_t own = engine->forks.pid;

	(void)state;
	before_fork();
	assert_true(child_takes());
	assert_true(child_takes());
	engine->forks.pid = getppid();	/* that lives */
	assert_true(shunt_rest_take(&stream));
	engine->forks.pid = own;
	assert_false(child_takes());
}

static void the_peer_has_the_last_word(void **state)
{
	(void)state;
	before_fork();
	assert_true(child_takes());
	shunt_rest_revoke(&stream);
	assert_false(shunt_fork_rest_is_taken(stream.sharing.slot));
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_STAYING);
	assert_false(child_takes());
}

static void nothing_rests_that_is_not_whole(void **state)
{
	(void)state;
	stream_set_staged(&stream, 1);	/* accepted, and not posted */
	before_fork();
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_STAYING);
	assert_false(child_takes());
	stream_set_idle(&stream);
	linked.channel.kind = SHUNT_CHANNEL_TCP;	/* another host */
	before_fork();
	assert_int_equal(atomic_load(&stream.seat->leaving.retiring), SHUNT_STAYING);
	assert_false(child_takes());
}

/* The slot of a stream that has gone, for one that has it next. */
static void a_slot_that_is_used_again_is_not_taken(void **state)
{
	struct shunt_fork_slot *slot;
	uint64_t rest;

	(void)state;
	before_fork();
	slot = stream.sharing.slot;
	rest = stream.sharing.rest;
	shunt_fork_rest_revoke(slot);
	assert_true(atomic_load(&slot->use) >> 24 > rest);
	assert_false(child_takes());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_takes_what_rests),
		TEST(not_what_has_been_used),
		TEST(not_by_a_child_of_before),
		TEST(a_sibling_goes_on_after_one_that_died),
		TEST(the_peer_has_the_last_word),
		TEST(nothing_rests_that_is_not_whole),
		TEST(a_slot_that_is_used_again_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
