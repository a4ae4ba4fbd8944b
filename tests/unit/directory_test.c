/* SPDX-License-Identifier: MIT */
/* The directory of a host: questions over loopback, whose askers seem to come from another host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tests/unit/directory_bed.h"

/* --- askers --- */

static void a_listener_is_found(void **state)
{
	(void)state;
	for (int any = 0; any < 2; any++) {
		int before = descriptors(),
		    fd = listen_on(htonl(any ? INADDR_ANY : INADDR_LOOPBACK));
		struct shunt_rendezvous *r = offer(fd);

		open_at(0);
		assert_int_equal(ask_for(port_of(fd)), SHUNT_REMOTE_ANSWER_BARE);
		assert_ptr_equal(answered_by, r);
		assert_memory_equal(answered_for.local, loopback, 16);
		assert_memory_equal(answered_for.peer, outside, 16);
		assert_int_equal(answered_for.local_port, port_of(fd));
		shunt_directory_close(&directory);
		withdraw(fd);
		assert_int_equal(descriptors(), before);
	}
	assert_int_equal(directory.turned_away, 0);
}

static void a_byte_at_a_time(void **state)
{
	struct shunt_directory_ask ask;
	int fd = listen_on(htonl(INADDR_LOOPBACK));

	(void)state;
	offer(fd);
	open_at(0);
	at_most = 1;
	begin_ask(&ask, port_of(fd), directory.port);
	/* The directory's answer is one send, which finds room. */
	for (int i = 0; i < STEPS && !shunt_directory_ask_is_sent(&ask); i++)
		assert_int_equal(shunt_directory_ask_step(&ask), 0);
	for (int i = 0; i < STEPS && directory.guests[0].bytes < sizeof(ask.question) - 1; i++)
		step();
	at_most = 0;
	assert_int_equal(end_ask(&ask), SHUNT_REMOTE_ANSWER_BARE);
	shunt_directory_close(&directory);
	withdraw(fd);
}

static void nobody_listens(void **state)
{
	int fd = listen_on(htonl(INADDR_LOOPBACK));
	uint16_t port = port_of(fd);

	(void)state;
	offer(fd);
	open_at(0);
	assert_int_equal(ask_for(port ^ htons(1)), -EPROTO);
	assert_int_equal(answers, 0);
	says_nothing = true;
	assert_int_equal(ask_for(port), -EPROTO);
	assert_int_equal(answers, 1);
	withdraw(fd);
	assert_int_equal(ask_for(port), -EPROTO);
	assert_int_equal(answers, 1);
	assert_int_equal(directory.turned_away, 0);
	shunt_directory_close(&directory);
}

static void no_directory(void **state)
{
	struct shunt_directory_ask ask;
	struct shunt_tuple tuple = to(htons(80));
	int result;

	(void)state;
	open_at(0);
	shunt_directory_close(&directory);
	result = shunt_directory_ask_begin(&ask, engine, &tuple, directory.port, WORDS,
					   sizeof(WORDS));
	for (int i = 0; i < STEPS && !result; i++)
		result = shunt_directory_ask_step(&ask);
	assert_int_equal(result, -ECONNREFUSED);
	shunt_directory_ask_end(&ask);
}

/* --- answerers that are none --- */

static int fake_listener(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	*port = port_of(fd);
	return fd;
}

/* The asker is told these bytes; `reset`: and the question stays unread. */
static int told(const void *bytes, size_t length, bool reset)
{
	struct shunt_directory_question question;
	struct shunt_directory_ask ask;
	int result = 0, fd, listener;
	uint16_t port;

	listener = fake_listener(&port);
	begin_ask(&ask, htons(80), port);
	fd = accept(listener, NULL, NULL);
	for (int i = 0; i < STEPS && !shunt_directory_ask_is_sent(&ask); i++)
		assert_int_equal(shunt_directory_ask_step(&ask), 0);
	if (!reset)
		assert_int_equal(recv(fd, &question, sizeof(question), MSG_WAITALL),
				 sizeof(question));
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
	assert_int_equal(shunt_directory_ask_step(&ask) > 0, length >= sizeof(ask.answer));
	close(fd);
	for (int i = 0; i < STEPS && !result; i++)
		result = shunt_directory_ask_step(&ask);
	shunt_directory_ask_end(&ask);
	close(listener);
	return result;
}

static void strange_answers(void **state)
{
	struct shunt_directory_answer answer;
	uint8_t garbage[300];

	(void)state;
	memset(garbage, 'x', sizeof(garbage));
	assert_int_equal(told("", 0, false), -EPROTO);
	assert_int_equal(told("", 0, true), -EPROTO);
	assert_int_equal(told(garbage, 3, false), -EPROTO);
	shunt_directory_answer_make(&answer, WORDS, sizeof(WORDS));
	assert_int_equal(told(&answer, 8, false), -EPROTO);
	assert_int_equal(told(&answer, 8 + sizeof(WORDS) - 1, false), -EPROTO);
	assert_int_equal(told(&answer, 8 + sizeof(WORDS), false),
			 sizeof(WORDS)); /* a version with short frames */
}

static void garbage_ends_an_ask_at_once(void **state)
{
	struct shunt_directory_ask ask;
	int listener, fd, result = 0;
	uint16_t port;

	(void)state;
	listener = fake_listener(&port);
	begin_ask(&ask, htons(80), port);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(send(fd, "HTTP/1.1 400 Bad", 16, MSG_NOSIGNAL), 16);
	for (int i = 0; i < STEPS && !result; i++)
		result = shunt_directory_ask_step(&ask);
	assert_int_equal(result, -EPROTO);
	shunt_directory_ask_end(&ask);
	close(fd);
	close(listener);
}

/* Its owner has the deadline. */
static void a_silent_answerer(void **state)
{
	struct shunt_directory_ask ask;
	int before = descriptors(), listener;
	uint16_t port;

	(void)state;
	listener = fake_listener(&port);
	begin_ask(&ask, htons(80), port);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(shunt_directory_ask_step(&ask), 0);
	shunt_directory_ask_end(&ask);
	shunt_directory_ask_end(&ask);
	close(listener);
	assert_int_equal(descriptors(), before);
}

/* --- askers that are none --- */

static int come(const void *bytes, size_t length)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = directory.port,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
	return fd;
}

/* The bytes that the directory has said before it hung up; -1: it has not hung up. */
static ssize_t heard(int fd, void *bytes, size_t room)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	size_t all = 0;
	ssize_t got = 1;

	for (int i = 0; i < 5; i++)
		step();
	while (got > 0 && poll(&pfd, 1, 200) == 1) {
		got = recv(fd, (uint8_t *)bytes + all, room - all, MSG_DONTWAIT);
		all += got > 0 ? (size_t)got : 0;
	}
	return got > 0 ? -1 : (ssize_t)all;
}

static void is_turned_away(const void *bytes, size_t length)
{
	uint64_t before = directory.turned_away;
	char said[8];
	int fd = come(bytes, length);

	assert_int_equal(heard(fd, said, sizeof(said)), 0);
	assert_int_equal(directory.turned_away, before + 1);
	assert_int_equal(answers, 0);
	close(fd);
}

static void strange_questions(void **state)
{
	struct shunt_directory_question question;
	int fd = listen_on(htonl(INADDR_LOOPBACK));
	uint8_t garbage[3000];

	(void)state;
	offer(fd);
	open_at(0);
	memset(garbage, 'x', sizeof(garbage));
	is_turned_away("GET / HTTP/1.1\r\n\r\n", 18);
	is_turned_away(garbage, sizeof(garbage));
	shunt_directory_question_make(&question, loopback, port_of(fd), WORDS, sizeof(WORDS));
	question.bytes = UINT16_MAX;
	is_turned_away(&question, sizeof(question));
	question.bytes = sizeof(WORDS);
	question.address[15] = 2; /* it has come to 127.0.0.1 */
	is_turned_away(&question, sizeof(question));
	question.address[15] = 1;
	within = true;
	is_turned_away(&question, sizeof(question));
	within = false;
	shunt_directory_close(&directory);
	withdraw(fd);
}

/* More behind the question is not looked at. */
static void a_long_question(void **state)
{
	int listener = listen_on(htonl(INADDR_LOOPBACK)), fd;
	uint8_t bytes[3000] = { 0 };

	(void)state;
	offer(listener);
	open_at(0);
	shunt_directory_question_make((struct shunt_directory_question *)bytes, loopback,
				      port_of(listener), WORDS, sizeof(WORDS));
	fd = come(bytes, sizeof(bytes));
	heard(fd, bytes, sizeof(bytes));
	assert_int_equal(answers, 1);
	assert_int_equal(directory.guests[0].fd, -1);
	close(fd);
	shunt_directory_close(&directory);
	withdraw(listener);
}

static void another_version(void **state)
{
	(void)state;
	open_at(0);
	for (size_t longer = 0; longer < 3; longer++) {
		struct shunt_directory_answer said;
		struct remote_answer answer = { .port = 1 };
		uint32_t bytes[64] = { SHUNT_DIRECTORY_MAGIC, SHUNT_WIRE_VERSION + 1 };
		int fd = come(bytes, longer ? longer * 100 : 8);

		assert_int_equal(heard(fd, &said, sizeof(said)), sizeof(said));
		assert_int_equal(shunt_directory_answer_read(&said, sizeof(said), true),
				 SHUNT_REMOTE_ANSWER_BARE);
		memcpy(&answer, said.words, SHUNT_REMOTE_ANSWER_BARE);
		assert_int_equal(answer.version, SHUNT_WIRE_VERSION);
		assert_int_equal(answer.port, 0);
		assert_int_equal(answer.why, SHUNT_REMOTE_WHY_VERSION);
		close(fd);
	}
	assert_int_equal(directory.turned_away, 0);
	shunt_directory_close(&directory);
}

static void who_says_nothing_must_go(void **state)
{
	char said[8];
	int silent, slow;

	(void)state;
	open_at(0);
	assert_int_equal(shunt_directory_due(&directory), SHUNT_NEVER);
	silent = come("", 0);
	slow = come("1AHS", 4); /* as its host writes the magic, most likely; or it goes at once */
	for (int i = 0; i < STEPS && directory.guests[0].fd < 0; i++)
		step();
	assert_int_equal(shunt_directory_due(&directory), clock_ns + 1000 * MS);
	clock_ns += 1000 * MS;
	assert_int_equal(heard(silent, said, sizeof(said)), 0);
	assert_int_equal(heard(slow, said, sizeof(said)), 0);
	assert_int_equal(directory.turned_away, 2);
	assert_int_equal(shunt_directory_due(&directory), SHUNT_NEVER);
	close(silent);
	close(slow);
	shunt_directory_close(&directory);
}

static void a_crowd(void **state)
{
	int crowd[3 * SHUNT_DIRECTORY_GUESTS], before = descriptors(),
					       fd = listen_on(htonl(INADDR_LOOPBACK));

	(void)state;
	offer(fd);
	open_at(0);
	for (int i = 0; i < 3 * SHUNT_DIRECTORY_GUESTS; i++) {
		crowd[i] = come("", 0);
		clock_ns++;
		step();
	}
	assert_int_equal(directory.turned_away, 2 * SHUNT_DIRECTORY_GUESTS);
	assert_int_equal(ask_for(port_of(fd)), SHUNT_REMOTE_ANSWER_BARE);
	for (int i = 0; i < 3 * SHUNT_DIRECTORY_GUESTS; i++)
		close(crowd[i]);
	shunt_directory_close(&directory);
	withdraw(fd);
	assert_int_equal(descriptors(), before);
}

static void without_descriptors_it_rests(void **state)
{
	struct rlimit before, none;
	int fd;

	(void)state;
	open_at(0);
	fd = come("", 0);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit) { .rlim_cur = 3, .rlim_max = before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	shunt_directory_step(&directory);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_not_equal(shunt_directory_due(&directory), SHUNT_NEVER);
	assert_int_equal(poll(&(struct pollfd) { .fd = directory.fd, .events = POLLIN }, 1, 0), 0);
	clock_ns = shunt_directory_due(&directory);
	shunt_directory_step(&directory);
	assert_int_equal(shunt_directory_due(&directory), clock_ns + 1000 * MS); /* the guest's */
	close(fd);
	shunt_directory_close(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_listener_is_found, begin),
		cmocka_unit_test_setup(a_byte_at_a_time, begin),
		cmocka_unit_test_setup(nobody_listens, begin),
		cmocka_unit_test_setup(no_directory, begin),
		cmocka_unit_test_setup(strange_answers, begin),
		cmocka_unit_test_setup(garbage_ends_an_ask_at_once, begin),
		cmocka_unit_test_setup(a_silent_answerer, begin),
		cmocka_unit_test_setup(strange_questions, begin),
		cmocka_unit_test_setup(a_long_question, begin),
		cmocka_unit_test_setup(another_version, begin),
		cmocka_unit_test_setup(who_says_nothing_must_go, begin),
		cmocka_unit_test_setup(a_crowd, begin),
		cmocka_unit_test_setup(without_descriptors_it_rests, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
