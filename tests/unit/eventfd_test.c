/* SPDX-License-Identifier: MIT */
/* Eventfds are told from everything else without /proc, and nothing is signalled or started. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/fd/eventfd.h"

static unsigned long context;

static void eventfd_is_one(void **state)
{
	int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t value;

	(void)state;
	errno = ENOTTY;
	if (!shunt_eventfd_is(&context, fd))	/* a kernel without AIO, or a filter */
		skip();
	assert_true(shunt_eventfd_is(&context, fd));
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
	assert_int_equal(value, 3);
	close(fd);
}

static void others_are_none(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	int other[] = {
		ends[0],
		ends[1],
		timerfd_create(CLOCK_MONOTONIC, 0),
		epoll_create1(0),
		socket(AF_UNIX, SOCK_STREAM, 0),
		memfd_create("memory", 0),
		open("/", O_RDONLY | O_DIRECTORY),
		open("/", O_PATH),
		open("/dev/null", O_RDWR),
	};

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		assert_true(other[i] >= 0);
		assert_false(shunt_eventfd_is(&context, other[i]));
		close(other[i]);
		assert_false(shunt_eventfd_is(&context, other[i]));
	}
}

static void child_has_its_own(void **state)
{
	int fd = eventfd(0, 0), status;
	unsigned long none = 0;
	pid_t pid;

	(void)state;
	if (!shunt_eventfd_is(&context, fd))
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(shunt_eventfd_is(&none, fd) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eventfd_is_one),
		cmocka_unit_test(others_are_none),
		cmocka_unit_test(child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
