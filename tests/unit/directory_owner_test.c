/* SPDX-License-Identifier: MIT */
/* The directory of a host with several processes: owners of names, a shared port, a port that is taken. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/peer/listener_message.h"
#include "core/service.h"
#include "tests/unit/directory_bed.h"

struct owner {
	int fd, worker_fd; /* the two names of a rendezvous */
};

static void own(struct owner *owner, const struct shunt_name *name)
{
	struct shunt_name have;

	shunt_rendezvous_workers(name, &have);
	owner->worker_fd = shunt_rendezvous_offer(engine, &have);
	owner->fd = shunt_rendezvous_offer(engine, name);
	assert_true(owner->worker_fd >= 0 && owner->fd >= 0);
}

static int come_to(struct owner *owner, struct shunt_have *have)
{
	int fd = -EAGAIN;

	for (int i = 0; i < STEPS && fd < 0; i++) {
		step();
		fd = shunt_rendezvous_accept(engine, owner->worker_fd, &(bool) { false });
	}
	assert_true(fd >= 0);
	assert_int_equal(shunt_listener_message_receive(engine, fd, have), 1);
	assert_int_equal(have->type, SHUNT_HAVE_QUESTION);
	return fd;
}

/* Of owners: 0 answers, 1 with too much, 2 something else, 3 hangs up, 4 says nothing until the guest's time is over. */
static int reply_as(struct owner *owner, uint16_t port, int how)
{
	struct remote_answer answer = { .port = 78 };
	struct shunt_directory_ask ask;
	struct shunt_have have;
	int fd, result;

	begin_ask(&ask, port, directory.port);
	for (int i = 0; i < STEPS && !shunt_directory_ask_is_sent(&ask); i++)
		assert_int_equal(shunt_directory_ask_step(&ask), 0);
	fd = come_to(owner, &have);
	assert_int_equal(have.tuple.local_port, port);
	assert_memory_equal(have.tuple.local, loopback, 16);
	assert_memory_equal(have.tuple.peer, outside, 16);
	assert_int_equal(have.said.bytes, sizeof(WORDS));
	assert_memory_equal(have.said.words, WORDS, sizeof(WORDS));
	have = (struct shunt_have) { .type = how == 2 ? SHUNT_HAVE_WANTED : SHUNT_HAVE_ANSWER };
	have.said.bytes = how == 1 ? sizeof(answer) + 1 : SHUNT_REMOTE_ANSWER_BARE;
	memcpy(have.said.words, &answer, sizeof(answer));
	if (how < 3)
		shunt_listener_message_send(engine, fd, &have);
	if (how == 3)
		shunt_own_fds_close(&engine->fds, fd);
	if (how == 4)
		clock_ns += 1000 * MS;
	result = end_ask(&ask);
	if (how != 3)
		shunt_own_fds_close(&engine->fds, fd);
	if (!how) {
		memcpy(&answer, ask.answer.words, SHUNT_REMOTE_ANSWER_BARE);
		assert_int_equal(answer.port, 78);
	}
	return result;
}

static void the_owner_of_a_name_is_asked(void **state)
{
	int listener = listen_on(htonl(INADDR_LOOPBACK)), before;
	uint16_t port = port_of(listener);
	struct shunt_name name;
	struct owner owner;

	(void)state;
	before = descriptors();
	shunt_rendezvous_name(loopback, port, false, &name);
	own(&owner, &name);
	open_at(0);
	for (int how = 0; how < 5; how++)
		assert_int_equal(reply_as(&owner, port, how),
				 how ? -EPROTO : (int)SHUNT_REMOTE_ANSWER_BARE);
	assert_int_equal(answers, 0);
	assert_int_equal(directory.turned_away, 1);
	shunt_directory_close(&directory);
	shunt_own_fds_close(&engine->fds, owner.fd);
	shunt_own_fds_close(&engine->fds, owner.worker_fd);
	shunt_porter_await(&engine->porter, UINT64_MAX);
	assert_int_equal(descriptors(), before);
	withdraw(listener);
}

static int answer_of(struct shunt_rendezvous *r, struct shunt_have *have)
{
	struct shunt_name door;
	int fd, result = 0;
	bool strange;

	shunt_rendezvous_workers(&r->name, &door);
	fd = shunt_rendezvous_knock(engine, &door, &strange);
	assert_true(fd >= 0);
	assert_int_equal(shunt_listener_message_send(engine, fd, have), 0);
	for (int i = 0; i < STEPS && !result; i++) {
		shunt_service_step(engine, 0);
		result = shunt_listener_message_receive(engine, fd, have);
	}
	shunt_own_fds_close(&engine->fds, fd);
	shunt_service_step(engine, 0);
	return result;
}

static struct shunt_have question_for(int listener)
{
	struct shunt_have have = { .type = SHUNT_HAVE_QUESTION };

	memcpy(have.tuple.local, loopback, 16);
	memcpy(have.tuple.peer, outside, 16);
	have.tuple.local_port = port_of(listener);
	have.said.bytes = sizeof(WORDS);
	memcpy(have.said.words, WORDS, sizeof(WORDS));
	return have;
}

/* The test is an asker of the owner. The owner hangs up on a question that makes no sense. */
static void an_owner_answers(void **state)
{
	int listener = listen_on(htonl(INADDR_ANY));
	struct shunt_rendezvous *r = offer(listener);

	(void)state;
	for (int wrong = 0; wrong < 5; wrong++) {
		struct shunt_have have = question_for(listener);

		if (wrong == 1)
			have.tuple.local_port ^= htons(1);
		if (wrong == 2)
			memcpy(have.tuple.peer, loopback, 16);
		if (wrong == 3)
			have.said.bytes = sizeof(have.said.words) + 1;
		if (wrong == 4)
			have.said.bytes = 1; /* which the answerer does not like */
		if (wrong) {
			assert_true(answer_of(r, &have) < 0);
			continue;
		}
		assert_int_equal(answer_of(r, &have), 1);
		assert_int_equal(have.type, SHUNT_HAVE_ANSWER);
		assert_int_equal(have.said.bytes, SHUNT_REMOTE_ANSWER_BARE);
		assert_ptr_equal(answered_by, r);
	}
	assert_int_equal(answers, 2);
	withdraw(listener);
}

/* The kernel gives askers to either process; the other one listens. */
static int serve(uint16_t port)
{
	struct pollfd pfd = { .fd = 0, .events = POLLIN };
	uint16_t its;
	char text[16];
	int listener;

	begin(NULL);
	listener = listen_on(htonl(INADDR_LOOPBACK));
	offer(listener);
	open_at(port);
	its = port_of(listener);
	snprintf(text, sizeof(text), "%u\n", ntohs(its));
	if (directory.listener < 0 || write(1, text, strlen(text)) < 0)
		return 1;
	while (!poll(&pfd, 1, 0))
		step();
	return 0;
}

struct helper {
	pid_t pid;
	FILE *says;
	int ends;
};

static void start(struct helper *helper, uint16_t port)
{
	int in[2], out[2];
	char text[16];

	snprintf(text, sizeof(text), "%u", ntohs(port));
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	helper->pid = fork();
	if (!helper->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/proc/self/exe", "directory_owner_test", text, NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	helper->ends = in[1];
	helper->says = fdopen(out[0], "r");
}

static void stop(struct helper *helper)
{
	int status = 1;

	close(helper->ends);
	fclose(helper->says);
	waitpid(helper->pid, &status, 0);
	assert_int_equal(status, 0);
}

static void two_processes_share_the_port(void **state)
{
	struct helper helper;
	unsigned int port = 0;

	(void)state;
	open_at(0);
	start(&helper, directory.port);
	assert_int_equal(fscanf(helper.says, "%u", &port), 1);
	for (int i = 0; i < 40; i++)
		assert_int_equal(ask_for(htons((uint16_t)port)), SHUNT_REMOTE_ANSWER_BARE);
	assert_int_equal(answers, 0);
	shunt_directory_close(&directory);
	stop(&helper);
}

/* As another user's, who does not share it. */
static void a_port_that_is_taken(void **state)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	(void)state;
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
		skip();
	open_at(port_of(fd));
	assert_int_equal(directory.listener, -1);
	assert_int_equal(shunt_directory_due(&directory), clock_ns + 1000 * MS);
	clock_ns += 1000 * MS;
	shunt_directory_step(&directory);
	assert_int_equal(directory.listener, -1);
	close(fd);
	clock_ns += 1000 * MS;
	shunt_directory_step(&directory);
	assert_true(directory.listener >= 0);
	assert_int_equal(shunt_directory_due(&directory), SHUNT_NEVER);
	shunt_directory_forget(&directory);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_owner_of_a_name_is_asked, begin),
		cmocka_unit_test_setup(an_owner_answers, begin),
		cmocka_unit_test_setup(two_processes_share_the_port, begin),
		cmocka_unit_test_setup(a_port_that_is_taken, begin),
	};

	if (argc > 1)
		return serve(htons((uint16_t)atoi(argv[1])));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
