/* SPDX-License-Identifier: MIT */
/*
 * Each offence against the order of the locks ends its process, and names the locks. The checks are compiled into this
 * program, whatever the build has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/lock.h"

static struct shunt_lock rx = SHUNT_LOCK(RX), tx = SHUNT_LOCK(TX), other_tx = SHUNT_LOCK(TX);
static struct shunt_lock queue = SHUNT_LOCK(QUEUE), inbox = SHUNT_LOCK(INBOX),
			 group = SHUNT_LOCK(GROUP);
static struct shunt_lock zeroes;
static char said[4096];

/* False: a child that does this lives on. Its message is in said[]. */
static bool dies(void (*offend)(void))
{
	int pipe_of[2], status;
	size_t had = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(pipe_of), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		dup2(pipe_of[1], STDERR_FILENO);
		close(pipe_of[0]);
		close(pipe_of[1]);
		offend();
		_exit(0);
	}
	close(pipe_of[1]);
	while ((got = read(pipe_of[0], said + had, sizeof(said) - 1 - had)) > 0)
		had += (size_t)got;
	said[had] = '\0';
	close(pipe_of[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGABRT);
	else
		assert_int_equal(status, 0);
	return WIFSIGNALED(status);
}

static void refused(void (*offend)(void), const char *why)
{
	assert_true(dies(offend));
	assert_non_null(strstr(said, why));
}

static void take_against_the_order(void)
{
	shunt_lock_take(&tx);
	shunt_lock_take(&rx);
}

static void take_twice(void)
{
	shunt_lock_take(&rx);
	shunt_lock_take(&rx);
}

static void take_two_of_one_rank(void)
{
	shunt_lock_take(&tx);
	shunt_lock_take(&other_tx);
}

static void take_inside_an_innermost(void)
{
	shunt_lock_take(&queue);
	shunt_lock_take(&inbox);
}

static void take_zeroes(void)
{
	shunt_lock_take(&zeroes);
}

static void leave_what_is_free(void)
{
	shunt_lock_leave(&group);
}

static void lack_a_lock(void)
{
	shunt_lock_take(&rx);
	shunt_assert_held(&tx);
}

static void play_the_service_thread(void)
{
	shunt_assert_service_thread((const struct shunt_engine *)&rx);
}

static void each_offence_is_named(void **state)
{
	(void)state;
	refused(take_against_the_order, "stream.rx.lock is wanted while stream.tx.lock is held");
	refused(take_twice, "stream.rx.lock is wanted and held already");
	refused(take_two_of_one_rank, "stream.tx.lock is wanted while stream.tx.lock is held");
	refused(take_inside_an_innermost,
		"engine.work.inbox_lock is wanted while lane.queue_lock is held");
	refused(take_zeroes, "a lock without a rank is wanted");
	refused(leave_what_is_free, "group.lock is left and not held");
	refused(lack_a_lock, "stream.tx.lock should be held");
	refused(play_the_service_thread, "this thread is not the service thread");
}

static void *is_free_of_our_locks(void *arg)
{
	(void)arg;
	shunt_lock_take(&rx);
	shunt_lock_leave(&rx);
	return NULL;
}

static void keep_the_order(void)
{
	const struct shunt_engine *before;
	pthread_t thread;

	shunt_lock_take(&rx);
	shunt_lock_take(&tx);
	shunt_lock_take(&group);
	shunt_lock_take(&queue);
	shunt_assert_held(&tx);
	/* In another order than they were taken. */
	shunt_lock_leave(&rx);
	shunt_lock_leave(&queue);
	/* An attempt waits for nothing. */
	if (shunt_lock_try(&rx))
		shunt_lock_leave(&rx);
	pthread_create(&thread, NULL, is_free_of_our_locks, NULL);
	pthread_join(thread, NULL);
	shunt_lock_leave(&group);
	shunt_lock_leave(&tx);
	before = shunt_service_role_begin((const struct shunt_engine *)&rx);
	play_the_service_thread();
	shunt_service_role_end(before);
}

static void what_is_in_order_goes_on(void **state)
{
	(void)state;
	assert_false(dies(keep_the_order));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_offence_is_named),
		cmocka_unit_test(what_is_in_order_goes_on),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
