/* SPDX-License-Identifier: MIT */
/* The two ends and what they are told. An answer is the question, each byte plus one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lab/cm/cm.h"

struct cm asker, listener;
struct seen seen;
pid_t child;

static int on_question(void *arg, const uint8_t *question, unsigned int bytes, const struct cm_route *route,
		       uint8_t *answer)
{
	seen.questions++;
	seen.listener_arg = arg;
	seen.asked_bytes = bytes;
	seen.asked_route = *route;
	memcpy(seen.question, question, bytes);
	for (unsigned int i = 0; i < bytes; i++)
		answer[i] = question[i] + 1;
	if (seen.leave)
		cm_unlisten(&listener, seen.leave);
	seen.leave = NULL;
	return seen.refuse ? -1 : (int)bytes;
}

static void on_answer(void *arg, int status, const uint8_t *answer, unsigned int bytes, const struct cm_route *route)
{
	seen.answers++;
	seen.rejected += status == -EPROTO;
	seen.ask_arg = arg;
	seen.status = status;
	seen.bytes = bytes;
	seen.routed = route;
	if (bytes)
		memcpy(seen.answer, answer, bytes);
	if (route)
		seen.route = *route;
	if (seen.again-- > 0) {
		union cm_address remote = at(there, PORT);

		assert_int_equal(cm_ask(&asker, NULL, &remote.any, "again", 5, now() + PATIENCE, arg, NULL), 0);
	}
}

static void on_lost(void *arg)
{
	seen.losts++;
	seen.listener_arg = arg;
}

static int on_keep(void *arg, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);

	(void)arg;
	return high < 0 ? -errno : high;
}

static void on_drop(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

const struct cm_callbacks callbacks = {
	.question = on_question, .answer = on_answer, .lost = on_lost, .keep = on_keep, .drop = on_drop,
};

void open_both(void)
{
	if (cm_open(&asker, &callbacks, NULL)) {
		print_error("%s\n", asker.error);
		abort();
	}
	assert_int_equal(cm_open(&listener, &callbacks, NULL), 0);
	time_calls(&asker);
	time_calls(&listener);
}

void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

void close_both(void)
{
	cm_close(&asker);
	cm_close(&listener);
}

int set_up(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	open_both();
	return 0;
}

int tear_down(void **state)
{
	(void)state;
	if (child > 0)
		end_child();
	close_both();
	print_message("# slowest call: %s, %.1f ms\n", seen.slowest_call, seen.slowest);
	return 0;
}
