/* SPDX-License-Identifier: MIT */
/* A fork and libraries that are being loaded wait for each other, and neither for ever. */
#include <pthread.h>
#include <sched.h>
#include "core/fd/thread.h"
#include "core/fd/loading.h"
#include "tests/unit/sockets.h"

#define TURNS 2000
#define LONG (11000 * MS)

static _Atomic int order, loaded_at, forked_at;
static _Atomic bool waits;

static void *load(void *arg)
{
	(void)arg;
	shunt_loading_begin(&engine->fds);
	loaded_at = ++order;
	shunt_loading_end(&engine->fds);
	return NULL;
}

static void *fork_once(void *arg)
{
	(void)arg;
	waits = true;
	shunt_loading_wait(&engine->fds);
	forked_at = ++order;
	shunt_loading_parted(&engine->fds);
	return NULL;
}

/* As pthread_atfork() has it called. */
static void *fork_engine(void *arg)
{
	(void)arg;
	waits = true;
	shunt_engine_fork_prepare(engine);
	forked_at = ++order;
	shunt_engine_fork_parent(engine);
	return NULL;
}

static pthread_t begin(void *(*what)(void *))
{
	pthread_t thread;

	order = loaded_at = forked_at = 0;
	waits = false;
	assert_int_equal(pthread_create(&thread, NULL, what, NULL), 0);
	return thread;
}

static void waits_for_a_library(void *(*forks)(void *))
{
	pthread_t thread;

	shunt_loading_begin(&engine->fds);
	shunt_loading_begin(&engine->fds); /* a device is opened by code that has entered already */
	thread = begin(forks);
	while (!waits)
		sched_yield();
	for (int i = 0; i < 1000; i++)
		sched_yield();
	shunt_loading_end(&engine->fds);
	assert_int_equal(forked_at, 0);
	loaded_at = ++order;
	shunt_loading_end(&engine->fds);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(loaded_at < forked_at);
}

static void a_fork_waits_for_a_library(void **state)
{
	(void)state;
	waits_for_a_library(fork_once);
}

static void the_engine_has_a_fork_wait(void **state)
{
	(void)state;
	waits_for_a_library(fork_engine);
}

static void no_library_is_loaded_during_a_fork(void **state)
{
	pthread_t thread;

	(void)state;
	shunt_loading_wait(&engine->fds);
	thread = begin(load);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(loaded_at, 0);
	forked_at = ++order;
	shunt_loading_parted(&engine->fds);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(forked_at < loaded_at);
}

/* A constructor of the program's library forks while the loader is wanted by another thread. */
static void neither_waits_for_ever(void **state)
{
	pthread_t thread;

	(void)state;
	shunt_loading_begin(&engine->fds);
	thread = begin(fork_once);
	while (!waits)
		sched_yield();
	while (!forked_at) {
		__atomic_fetch_add(&clock_ns, LONG, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	shunt_loading_end(&engine->fds);
	assert_int_equal(pthread_join(thread, NULL), 0);
	shunt_loading_wait(&engine->fds);
	thread = begin(load);
	while (!loaded_at) {
		__atomic_fetch_add(&clock_ns, LONG, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	shunt_loading_parted(&engine->fds);
}

static _Atomic unsigned int inside, forks;

static void *load_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		shunt_loading_begin(&engine->fds);
		inside++;
		assert_int_equal(forks, 0);
		inside--;
		shunt_loading_end(&engine->fds);
	}
	return NULL;
}

static void *fork_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		shunt_loading_wait(&engine->fds);
		forks++;
		assert_int_equal(inside, 0);
		forks--;
		shunt_loading_parted(&engine->fds);
	}
	return NULL;
}

static void they_are_never_at_once(void **state)
{
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, i & 1 ? load_often : fork_often, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void a_child_has_nobody_to_wait_for(void **state)
{
	(void)state;
	shunt_loading_wait(&engine->fds);
	shunt_loading_wait(&engine->fds); /* of another thread */
	shunt_loading_forget(&engine->fds);
	assert_int_equal(engine->fds.loading.inside, 0);
	shunt_loading_begin(&engine->fds);
	assert_int_equal(engine->fds.loading.inside, 1);
	shunt_loading_end(&engine->fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_fork_waits_for_a_library, set_up),
		cmocka_unit_test_setup(the_engine_has_a_fork_wait, set_up),
		cmocka_unit_test_setup(no_library_is_loaded_during_a_fork, set_up),
		cmocka_unit_test_setup(neither_waits_for_ever, set_up),
		cmocka_unit_test_setup(they_are_never_at_once, set_up),
		cmocka_unit_test_setup(a_child_has_nobody_to_wait_for, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
