/* SPDX-License-Identifier: MIT */
/*
 * Names of relatives' doors: hashes that strangers cannot continue; a name that is taken.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/fd/own_fds.h"
#include "core/fork/fork_door.h"
#include "core/fork/fork_slots.h"
#include "tests/unit/sockets.h"

/* A family of its own for each test. */
static int begin(void **state)
{
	if (set_up(state))
		return -1;
	if (engine->forks.shared)
		munmap(engine->forks.shared, SHUNT_FORK_SLOTS_BYTES);
	engine->forks.shared = NULL;
	engine->forks.doors = 0;
	return !shunt_fork_slots_prepare(&engine->forks, engine->sys);
}

static int at(pid_t owner, uint32_t number)
{
	char name[SHUNT_ENDPOINT_NAME];

	shunt_fork_door_name(&engine->forks, owner, number, name);
	return shunt_endpoint_connect(&engine->porter, name, SOCK_SEQPACKET);
}

static void close_all(const int *fd, int count)
{
	while (count--)
		shunt_own_fds_close(&engine->fds, fd[count]);
}

static void names_differ(void **state)
{
	char first[SHUNT_ENDPOINT_NAME], other[SHUNT_ENDPOINT_NAME];

	(void)state;
	shunt_fork_door_name(&engine->forks, 1, 0, first);
	assert_int_equal(strlen(first), sizeof("shunt/rights/") - 1 + 32);
	shunt_fork_door_name(&engine->forks, 1, 1, other);
	assert_string_not_equal(first, other);
	shunt_fork_door_name(&engine->forks, 2, 0, other);
	assert_string_not_equal(first, other);
	shunt_fork_door_name(&engine->forks, 1, 0, other);
	assert_string_equal(first, other);
}

static void reopened_door_has_another_name(void **state)
{
	int fd[4];

	(void)state;
	assert_int_equal(shunt_fork_door_count(&engine->forks), 0);
	fd[0] = shunt_fork_door_open(&engine->forks, &engine->porter);
	fd[1] = at(engine->forks.pid, 0);
	assert_true(fd[0] >= 0 && fd[1] >= 0);
	fd[2] = shunt_fork_door_open(&engine->forks, &engine->porter);	/* the former name is still taken: that is no matter */
	assert_int_equal(shunt_fork_door_count(&engine->forks), 2);
	fd[3] = at(engine->forks.pid, 1);
	assert_true(fd[2] >= 0 && fd[3] >= 0);
	close_all(fd, 4);
	assert_int_equal(at(engine->forks.pid, 0), -ECONNREFUSED);
}

static void taken_name_is_skipped(void **state)
{
	char name[SHUNT_ENDPOINT_NAME];
	int fd[4];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		shunt_fork_door_name(&engine->forks, engine->forks.pid, i, name);
		fd[i] = shunt_endpoint_listen(&engine->porter, name, SOCK_SEQPACKET, 1);
		assert_true(fd[i] >= 0);
		assert_int_equal(shunt_endpoint_listen(&engine->porter, name, SOCK_SEQPACKET, 1),
				 -EADDRINUSE);
	}
	fd[2] = shunt_fork_door_open(&engine->forks, &engine->porter);
	assert_int_equal(shunt_fork_door_count(&engine->forks), 3);
	fd[3] = at(engine->forks.pid, 2);
	assert_true(fd[2] >= 0 && fd[3] >= 0);
	close_all(fd, 4);
}

/* Any relative may write into the page. */
static void count_is_bounded(void **state)
{
	(void)state;
	atomic_store(&shunt_fork_slots_family(&engine->forks)->doors, UINT32_MAX);
	assert_int_equal(shunt_fork_door_count(&engine->forks), SHUNT_FORK_DOORS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_differ, begin),
		cmocka_unit_test_setup(reopened_door_has_another_name, begin),
		cmocka_unit_test_setup(taken_name_is_skipped, begin),
		cmocka_unit_test_setup(count_is_bounded, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
