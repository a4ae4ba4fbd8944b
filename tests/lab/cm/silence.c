/* SPDX-License-Identifier: MIT */
/* Questions that stay unanswered, and other processes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lab/cm/cm.h"

static const char nobody[] = "10.77.0.99";	/* no such host */

void nobody_listens(void **state)
{
	double since = now();

	(void)state;
	assert_int_equal(ask(here, there, PORT, PATIENCE), -ECONNREFUSED);
	print_message("# the first refusal took %.1f ms\n", now() - since);
	since = now();
	for (int i = 0; i < 50; i++)
		assert_int_equal(ask(here, there, PORT, PATIENCE), -ECONNREFUSED);
	print_message("# a refusal takes %.2f ms\n", (now() - since) / 50);
}

static void black_hole(const char *where, const char *name)
{
	double since = now(), late;

	assert_int_equal(ask(here, where, PORT, 300), -ETIMEDOUT);
	late = now() - since - 300;
	print_message("# %s: %.1f ms after its deadline\n", name, late);
	assert_true(late > -1);	/* deadlines are whole milliseconds */
}

void black_holes(void **state)
{
	(void)state;
	black_hole(nobody, "no such host");
	assert_false(seen.routed);
	black_hole(hole, "a host that says nothing");
	assert_true(seen.routed);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask_from(&asker, here, i % 2 ? hole : nobody, PORT, 300), 0);
	run(102, PATIENCE);
	assert_int_equal(seen.answers, 102);
	assert_int_equal(seen.status, -ETIMEDOUT);
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
}

void no_way(void **state)
{
	int result = ask(NULL, "127.0.0.1", PORT, PATIENCE);

	(void)state;
	print_message("# 127.0.0.1: %s\n", strerror(-result));
	assert_true(result < 0);
	result = ask(NULL, "192.0.2.1", PORT, 500);
	print_message("# no route: %s\n", strerror(-result));
	assert_true(result < 0);
	assert_int_equal(listen_error("192.0.2.1", PORT, false), -EADDRINUSE);
	result = listen_error("127.0.0.1", PORT, false);
	print_message("# listen on 127.0.0.1: %s\n", strerror(-result));
}

/* A child that listens; returns when it does. */
static void child_listens(void)
{
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		cm_forget(&asker);
		cm_forget(&listener);
		if (cm_open(&listener, &callbacks, NULL))
			_exit(1);
		listening(&listener, there, PORT, false);
		if (write(ready[1], "!", 1) != 1)
			_exit(1);
		for (;;) {
			poll(&(struct pollfd) { .fd = cm_fd(&listener), .events = POLLIN }, 1, -1);
			cm_step(&listener, 0);
		}
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], (char[1]) { 0 }, 1), 1);
	close(ready[0]);
}

void a_stopped_listener(void **state)
{
	double since;

	(void)state;
	child_listens();
	assert_int_equal(ask(here, there, PORT, PATIENCE), 0);
	kill(child, SIGSTOP);
	since = now();
	assert_int_equal(ask(here, there, PORT, 500), -ETIMEDOUT);
	print_message("# stopped: %.1f ms after its deadline\n", now() - since - 500);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask_from(&asker, here, there, PORT, 500), 0);
	run(102, PATIENCE);
	assert_int_equal(seen.answers, 102);
	print_message("# of 101 to who is stopped, %d were rejected\n", seen.rejected);
	kill(child, SIGCONT);
	since = now();
	assert_int_equal(ask(here, there, PORT, 10 * PATIENCE), 0);
	print_message("# and when he goes on, an answer takes %.0f ms\n", now() - since);
	end_child();
	assert_int_equal(ask(here, there, PORT, PATIENCE), -ECONNREFUSED);
}

void another_process_listens(void **state)
{
	(void)state;
	child_listens();
	assert_int_equal(listen_error(there, PORT, false), -EADDRINUSE);
	assert_non_null(strstr(asker.error, "another process"));
	assert_int_equal(listen_error("0.0.0.0", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error("::", PORT, false), -EADDRINUSE);
	assert_int_equal(listen_error("::", PORT, true), 0);
	assert_int_equal(listen_error(here, PORT, false), 0);
	end_child();
	assert_int_equal(listen_error(there, PORT, false), 0);
}

/* A child of a process that has devices open asks and listens for itself. */
void a_forks_child(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	listening(&listener, there, PORT, false);
	answered(here, there, PORT);
	pid = fork();
	if (!pid) {
		cm_forget(&asker);
		cm_forget(&listener);
		open_both();
		listening(&listener, there, PORT + 1, false);
		seen.answers = 0;
		_exit(ask(here, there, PORT + 1, PATIENCE) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	answered(here, there, PORT);
}
