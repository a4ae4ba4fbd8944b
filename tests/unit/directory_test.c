/* SPDX-License-Identifier: MIT */
/* The directory of a host: questions over loopback, whose askers seem to come from another host. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/fd/own_fds.h"
#include "core/loop/porter.h"
#include "core/peer/directory.h"
#include "core/peer/directory_ask.h"
#include "core/peer/links.h"
#include "core/peer/listener_message.h"
#include "core/peer/rendezvous.h"
#include "core/service.h"
#include "core/stream/tuple.h"
#include "tests/unit/sockets.h"

#define STEPS 1000
#define WORDS "a question" /* which the directory only carries */

static struct shunt_directory directory;
static struct shunt_rendezvous *answered_by;
static struct shunt_tuple answered_for;
static int answers;
static bool says_nothing;

/* --- surroundings --- */

static const uint8_t outside[16] = { SHUNT_ADDRESS_V4, 240, 0, 0, 1 }; /* no host has it */
static const uint8_t loopback[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };
static bool within; /* askers come from where they come from */

static int far_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	int result = getpeername(fd, address, length);

	if (!result && !within && address->sa_family != AF_UNIX) {
		*v4 = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(4711) };
		memcpy(&v4->sin_addr, outside + 12, 4);
	}
	return result;
}

static int say(struct shunt_rendezvous *rendezvous, const struct shunt_tuple *asked,
	       const struct shunt_have_words *said, struct remote_answer *answer)
{
	answers++;
	answered_by = rendezvous;
	answered_for = *asked;
	if (says_nothing || said->bytes != sizeof(WORDS) ||
	    memcmp(said->words, WORDS, sizeof(WORDS)))
		return -1;
	*answer = (struct remote_answer) { .port = 77 };
	return SHUNT_REMOTE_ANSWER_BARE;
}

static const struct shunt_link_hooks *hooks_that_say(void)
{
	static struct shunt_link_hooks hooks;

	hooks = *engine->link_hooks;
	hooks.asked = say;
	return &hooks;
}

static int begin(void **state)
{
	static struct shunt_sys far;
	int failed = set_up(state);

	if (failed)
		return failed;
	if (engine->sys != &far) {
		far = *engine->sys;
		far.getpeername = far_getpeername;
		engine->sys = &far;
		engine->link_hooks = hooks_that_say();
	}
	engine->manual = true;
	within = says_nothing = false;
	answers = 0;
	answered_by = NULL;
	return !shunt_service_start(engine);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	uint8_t ip[16];
	uint16_t port = 0;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(shunt_address_of(&address, ip, &port), 0);
	return port;
}

static void open_at(uint16_t port)
{
	directory = (struct shunt_directory) {
		.engine = engine, .port = port, .patience = 1000 * MS, .answer = say
	};
	assert_int_equal(shunt_directory_open(&directory), 0);
	if (!port)
		directory.port = port_of(directory.listener);
}

static void step(void)
{
	struct pollfd pfd = { .fd = directory.fd, .events = POLLIN };

	poll(&pfd, 1, 1);
	shunt_directory_step(&directory);
	shunt_service_step(engine, 0);
}

/* --- listeners of the program --- */

static int listen_on(in_addr_t address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = address };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 5), 0);
	shunt_file_socket(engine, fd, false);
	return fd;
}

static struct shunt_rendezvous *offer(int fd)
{
	shunt_file_listening(engine, fd);
	return ((struct shunt_stream *)shunt_file(engine, fd))->rendezvous;
}

static void withdraw(int fd)
{
	shunt_file_closing(engine, fd);
	close(fd);
	shunt_service_step(engine, 0);
}

/* --- asking --- */

static struct shunt_tuple to(uint16_t port)
{
	struct shunt_tuple tuple = { .peer_port = port };

	memcpy(tuple.local, loopback, 16);
	memcpy(tuple.peer, loopback, 16);
	return tuple;
}

static void begin_ask(struct shunt_directory_ask *ask, uint16_t port, uint16_t at)
{
	struct shunt_tuple tuple = to(port);

	assert_int_equal(shunt_directory_ask_begin(ask, engine, &tuple, at, WORDS, sizeof(WORDS)),
			 0);
}

/* The result of a step; 0: nothing. */
static int end_ask(struct shunt_directory_ask *ask)
{
	int result = 0;

	for (int i = 0; i < STEPS && !result; i++) {
		step();
		result = shunt_directory_ask_step(ask);
	}
	shunt_directory_ask_end(ask);
	return result;
}

static int ask_for(uint16_t port)
{
	struct shunt_directory_ask ask;

	begin_ask(&ask, port, directory.port);
	return end_ask(&ask);
}

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

/* --- several processes --- */

struct owner {
	int fd, have_fd; /* the two names of a rendezvous */
};

static void own(struct owner *owner, const struct shunt_name *name)
{
	struct shunt_name have;

	shunt_rendezvous_have(name, &have);
	owner->have_fd = shunt_rendezvous_offer(engine, &have);
	owner->fd = shunt_rendezvous_offer(engine, name);
	assert_true(owner->have_fd >= 0 && owner->fd >= 0);
}

static int come_to(struct owner *owner, struct shunt_have *have)
{
	int fd = -EAGAIN;

	for (int i = 0; i < STEPS && fd < 0; i++) {
		step();
		fd = shunt_rendezvous_accept(engine, owner->have_fd, &(bool) { false });
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
		shunt_own_fds_close(engine, fd);
	if (how == 4)
		clock_ns += 1000 * MS;
	result = end_ask(&ask);
	if (how != 3)
		shunt_own_fds_close(engine, fd);
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
	shunt_own_fds_close(engine, owner.fd);
	shunt_own_fds_close(engine, owner.have_fd);
	shunt_porter_await(engine, UINT64_MAX);
	assert_int_equal(descriptors(), before);
	withdraw(listener);
}

static int answer_of(struct shunt_rendezvous *r, struct shunt_have *have)
{
	struct shunt_name door;
	int fd, result = 0;
	bool strange;

	shunt_rendezvous_have(&r->name, &door);
	fd = shunt_rendezvous_knock(engine, &door, &strange);
	assert_true(fd >= 0);
	assert_int_equal(shunt_listener_message_send(engine, fd, have), 0);
	for (int i = 0; i < STEPS && !result; i++) {
		shunt_service_step(engine, 0);
		result = shunt_listener_message_receive(engine, fd, have);
	}
	shunt_own_fds_close(engine, fd);
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
		execl("/proc/self/exe", "directory_test", text, NULL);
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
		cmocka_unit_test_setup(the_owner_of_a_name_is_asked, begin),
		cmocka_unit_test_setup(an_owner_answers, begin),
		cmocka_unit_test_setup(two_processes_share_the_port, begin),
		cmocka_unit_test_setup(a_port_that_is_taken, begin),
	};

	if (argc > 1)
		return serve(htons((uint16_t)atoi(argv[1])));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
