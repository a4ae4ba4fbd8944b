/* SPDX-License-Identifier: MIT */
/* The program of a client: what a process of our own user says of itself counts, and what another user's says does not. */
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/qos/facts.h"
#include "tests/unit/sockets.h"

#define OTHER 65534
#define NAME "shunt-gold"

/* A process of that user, which calls itself NAME, or runs `program` and waits for the end of its input. */
static pid_t start(uid_t user, const char *program, int *held)
{
	int input[2], ready[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe2(input, 0), 0);
	assert_int_equal(pipe2(ready, 0), 0);
	child = fork();
	if (!child) {
		close(input[1]);
		close(ready[0]);
		if (user != geteuid() && (setgroups(0, NULL) || setresgid(user, user, user) ||
					  setresuid(user, user, user)))
			_exit(1);
		dup2(input[0], STDIN_FILENO);
		dup2(ready[1], STDOUT_FILENO);
		if (program) { /* cat says something when it runs */
			execl(program, program, (char *)NULL);
			_exit(1);
		}
		prctl(PR_SET_NAME, NAME);
		if (write(ready[1], "x", 1) == 1)
			while (read(input[0], &byte, 1) > 0)
				;
		_exit(0);
	}
	close(input[0]);
	close(ready[1]);
	if (program)
		assert_int_equal(write(input[1], "x", 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*held = input[1];
	return child;
}

static struct shunt_qos_client learnt(uid_t user, const char *program)
{
	struct shunt_qos_client client = { .has_user = true, .uid = user };
	int held;
	pid_t child = start(user, program, &held);

	shunt_facts_program(engine, (uint32_t)child, &client);
	close(held);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return client;
}

static void ours_names_itself(void **state)
{
	struct shunt_qos_client client = learnt(geteuid(), NULL);

	(void)state;
	assert_string_equal(client.command, NAME);
	assert_non_null(strstr(client.program, "facts_test"));
}

static void copy_of_cat(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /usr/bin/cat '%s' && chmod 755 '%s'", path, path);
	assert_int_equal(system(command), 0);
}

static void other_users_does_not(void **state)
{
	char folder[] = "/tmp/shunt-facts.XXXXXX", path[64];
	struct shunt_qos_client client;

	(void)state;
	if (geteuid())
		skip();
	client = learnt(OTHER, NULL);
	assert_string_equal(client.command, "");
	assert_string_equal(client.program, "");
	client = learnt(OTHER, "/usr/bin/cat");
	assert_string_equal(client.command, "");
	assert_string_equal(client.program, "cat");
	assert_non_null(mkdtemp(folder));
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	copy_of_cat(path);
	client = learnt(OTHER, path);
	assert_string_equal(client.program, "");
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ours_names_itself, set_up),
		cmocka_unit_test_setup(other_users_does_not, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
