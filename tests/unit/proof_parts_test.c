/* SPDX-License-Identifier: MIT */
/* The bits that sockets show in a proof follow from the processes at both ends, too: inodes of sockets come again. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/peer/proof_parts.h"
#include "core/service.h"
#include "tests/unit/sockets.h"

static const uint8_t claimants[SHUNT_PROOF_HALF] = "one", acceptors[SHUNT_PROOF_HALF] = "other";

static uint32_t parts(uint64_t claimants_process, uint64_t acceptors_process, bool of_claimant)
{
	const struct shunt_proof_facts facts = { .claimants_end = 1,
						 .acceptors_end = 2,
						 .claimants_process = claimants_process,
						 .acceptors_process = acceptors_process,
						 .claimants = claimants,
						 .acceptors = acceptors };

	return shunt_proof_parts(&facts, of_claimant);
}

static void processes_count(void **state)
{
	(void)state;
	for (int of_claimant = 0; of_claimant < 2; of_claimant++) {
		assert_int_equal(parts(1, 2, of_claimant), parts(1, 2, of_claimant));
		assert_int_not_equal(parts(1, 2, of_claimant), parts(3, 2, of_claimant));
		assert_int_not_equal(parts(1, 2, of_claimant),
				     parts(1, 1ull << 32 | 2, of_claimant));
		assert_int_not_equal(parts(1, 2, of_claimant), parts(2, 1, of_claimant));
	}
	assert_int_not_equal(parts(1, 2, true), parts(1, 2, false));
}

/* A child connects to a listener of ours. */
static int child_comes(pid_t *child)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(sa_family_t);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), fd;

	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	length = sizeof(address);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(listen(listener, 1), 0);
	*child = fork();
	if (!*child) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (!connect(fd, (struct sockaddr *)&address, length))
			pause();
		_exit(1);
	}
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	close(listener);
	return fd;
}

static void ends_are_told_apart(void **state)
{
	struct shunt_service service = { .engine = engine };
	uint64_t with_itself[2], with_child[2];
	int ends[2], fd;
	pid_t child;

	(void)state;
	engine->forks.pid = getpid();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(shunt_witness_processes(&service, ends[0], with_itself), 0);
	assert_true(with_itself[0] == with_itself[1]);
	fd = child_comes(&child);
	assert_int_equal(shunt_witness_processes(&service, fd, with_child), 0);
	assert_true(with_child[0] == with_itself[0]);
	if (with_child[1] == with_child[0])
		puts("this kernel has no pidfs: all processes have one inode");
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_count),
		cmocka_unit_test_setup(ends_are_told_apart, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
