/* SPDX-License-Identifier: MIT */
#include "tests/unit/directory_bed.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/peer/links.h"
#include "core/service.h"

struct shunt_directory directory;
struct shunt_rendezvous *answered_by;
struct shunt_tuple answered_for;
int answers;
bool says_nothing;

const uint8_t outside[16] = { SHUNT_ADDRESS_V4, 240, 0, 0, 1 }; /* no host has it */
const uint8_t loopback[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };
bool within; /* askers come from where they come from */

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

int begin(void **state)
{
	static struct shunt_sys far;
	int failed = set_up(state);

	if (failed)
		return failed;
	if (engine->sys != &far) {
		far = *engine->sys;
		far.getpeername = far_getpeername;
		shunt_engine_surround(engine, &far);
		engine->link_hooks = hooks_that_say();
	}
	engine->loop.manual = true;
	within = says_nothing = false;
	answers = 0;
	answered_by = NULL;
	return !shunt_service_start(engine);
}

uint16_t port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	uint8_t ip[16];
	uint16_t port = 0;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(shunt_address_of(&address, ip, &port), 0);
	return port;
}

void open_at(uint16_t port)
{
	directory = (struct shunt_directory) {
		.engine = engine, .port = port, .patience = 1000 * MS, .answer = say
	};
	assert_int_equal(shunt_directory_open(&directory), 0);
	if (!port)
		directory.port = port_of(directory.listener);
}

void step(void)
{
	struct pollfd pfd = { .fd = directory.fd, .events = POLLIN };

	poll(&pfd, 1, 1);
	shunt_directory_step(&directory);
	shunt_service_step(engine, 0);
}

/* --- listeners of the program --- */

int listen_on(in_addr_t address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = address };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 5), 0);
	shunt_file_socket(engine, fd, false);
	return fd;
}

struct shunt_rendezvous *offer(int fd)
{
	shunt_file_listening(engine, fd);
	return ((struct shunt_stream *)shunt_file(engine, fd))->rendezvous;
}

void withdraw(int fd)
{
	shunt_file_closing(engine, fd);
	close(fd);
	shunt_service_step(engine, 0);
}

/* --- asking --- */

struct shunt_tuple to(uint16_t port)
{
	struct shunt_tuple tuple = { .peer_port = port };

	memcpy(tuple.local, loopback, 16);
	memcpy(tuple.peer, loopback, 16);
	return tuple;
}

void begin_ask(struct shunt_directory_ask *ask, uint16_t port, uint16_t at)
{
	struct shunt_tuple tuple = to(port);

	assert_int_equal(shunt_directory_ask_begin(ask, engine, &tuple, at, WORDS, sizeof(WORDS)),
			 0);
}

int end_ask(struct shunt_directory_ask *ask)
{
	int result = 0;

	for (int i = 0; i < STEPS && !result; i++) {
		step();
		result = shunt_directory_ask_step(ask);
	}
	shunt_directory_ask_end(ask);
	return result;
}

int ask_for(uint16_t port)
{
	struct shunt_directory_ask ask;

	begin_ask(&ask, port, directory.port);
	return end_ask(&ask);
}
