/* SPDX-License-Identifier: MIT */
#include "tests/engine/liar.h"
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/api.h"
#include "core/base/sha256.h"
#include "core/peer/limits.h"
#include "core/service.h"
#include "tests/sim/names.h"

int engine_of(const struct liar *liar)
{
	return liar->role == CLAIMANT ? ACCEPTOR : CLAIMANT;
}

void say(struct liar *liar, const struct shunt_message *message)
{
	assert_int_equal(send(liar->fd, message, sizeof(*message), MSG_NOSIGNAL), sizeof(*message));
}

bool hears(struct liar *liar, struct shunt_message *message)
{
	for (int i = 0; i < 5; i++) {
		ssize_t got = recv(liar->fd, message, sizeof(*message), MSG_DONTWAIT);

		if (got >= 0)
			return got == sizeof(*message);
		step(engine_of(liar));
	}
	return false;
}

void expect(struct liar *liar, enum shunt_message_type type, struct shunt_message *message)
{
	assert_true(hears(liar, message));
	assert_int_equal(message->type, type);
}

void expect_refusal(struct liar *liar, enum shunt_refusal why)
{
	struct shunt_message message;

	expect(liar, SHUNT_MSG_REFUSE, &message);
	assert_int_equal(message.stream, PROVES);
	assert_int_equal(message.why, why);
}

static void knock(struct liar *liar)
{
	struct shunt_message message = { .type = SHUNT_MSG_KNOCK };

	message.knock.magic = SHUNT_WIRE_MAGIC;
	message.knock.version = SHUNT_WIRE_VERSION;
	message.knock.proves = 1;
	say(liar, &message);
	expect(liar, SHUNT_MSG_KNOCK, &message);
}

int dial(void)
{
	const struct shunt_name *name = &engines[1]->rendezvous->name;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name->text, name->length);
	assert_int_equal(sim_names_connect(fd, (struct sockaddr *)&address,
					   (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
						       name->length)),
			 0);
	return fd;
}

struct liar claimant(void)
{
	struct liar liar = { .fd = dial(), .role = CLAIMANT, .socket = -1 };

	knock(&liar);
	return liar;
}

struct liar acceptor(void)
{
	struct liar liar = { .fd = -1, .role = ACCEPTOR, .socket = -1 };

	for (int i = 0; liar.fd < 0; i++) {
		assert_true(i < FOREVER);
		step(0);
		liar.fd = come();
	}
	knock(&liar);
	return liar;
}

static void digest_of(const uint8_t half[HALF], uint8_t digest[HALF])
{
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, "shunt half", 11);
	shunt_sha256_add(&sum, half, HALF);
	shunt_sha256_end(&sum, digest);
}

uint64_t network_of(int fd)
{
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie = 0;

	getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length);
	return cookie;
}

struct shunt_message ask_for(struct liar *liar, const struct pair *pair, uint32_t number)
{
	struct shunt_message message = { .type = SHUNT_MSG_ASK };

	for (size_t i = 0; i < HALF; i++)
		liar->half[i] = (uint8_t)(7 * i + number);
	assert_int_equal(shunt_tuple_of(engines[0]->sys, pair->side[0].fd, &liar->tuple), 0);
	message.proof.number = number;
	message.proof.tuple = liar->tuple;
	message.proof.network = network_of(pair->side[0].fd);
	digest_of(liar->half, message.proof.bytes);
	return message;
}

void ask(struct liar *liar, const struct pair *pair)
{
	struct shunt_message message = ask_for(liar, pair, PROVES);

	say(liar, &message);
}

uint32_t parts(const struct liar *liar, const char *whose, const uint8_t peers[HALF])
{
	bool claims = liar->role == CLAIMANT;
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;
	uint32_t ends[2], swapped[2], parts;
	uint64_t processes[2];

	assert_int_equal(shunt_witness_channel(engines[engine_of(liar)]->service, liar->fd, ends),
			 0);
	assert_int_equal(
		shunt_witness_processes(engines[engine_of(liar)]->service, liar->fd, processes), 0);
	assert_true(processes[0] == processes[1]);
	swapped[0] = ends[1];
	swapped[1] = ends[0];
	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, whose, 8);
	shunt_sha256_add(&sum, claims ? ends : swapped, sizeof(ends));
	shunt_sha256_add(&sum, processes, sizeof(processes));
	shunt_sha256_add(&sum, liar->tuple.local, 16);
	shunt_sha256_add(&sum, &liar->tuple.local_port, 2);
	shunt_sha256_add(&sum, liar->tuple.peer, 16);
	shunt_sha256_add(&sum, &liar->tuple.peer_port, 2);
	shunt_sha256_add(&sum, claims ? liar->half : peers, HALF);
	shunt_sha256_add(&sum, claims ? peers : liar->half, HALF);
	shunt_sha256_end(&sum, digest);
	memcpy(&parts, digest, sizeof(parts));
	return parts;
}

void show(const struct liar *liar, uint32_t round)
{
	if (liar->socket >= 0)
		set_options(liar->socket, liar->ours >> (4 * round) & 15);
}

void be_challenged(struct liar *liar)
{
	struct shunt_message message;

	expect(liar, SHUNT_MSG_CHALLENGE, &message);
	assert_int_equal(message.stream, PROVES);
	liar->number = message.proof.number;
	memcpy(liar->peers, message.proof.bytes, HALF);
	liar->ours = parts(liar, "claimant", liar->peers);
}

void reveal(struct liar *liar)
{
	struct shunt_message message = { .type = SHUNT_MSG_REVEAL, .stream = liar->number };

	memcpy(message.proof.bytes, liar->half, HALF);
	show(liar, 0);
	say(liar, &message);
}

void say_shown(struct liar *liar, uint32_t round)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHOWN, .stream = liar->number };

	message.proof.round = round;
	say(liar, &message);
}

bool go_on(struct liar *liar, struct shunt_message *message)
{
	for (uint32_t round = 0; hears(liar, message) && message->type == SHUNT_MSG_SHOWN;
	     round++) {
		assert_int_equal(message->stream, PROVES);
		assert_int_equal(message->proof.round, round);
		if (round + 1 < SHUNT_PROOF_ROUNDS)
			show(liar, round + 1);
		say_shown(liar, round + 1);
		if (round + 1 == SHUNT_PROOF_ROUNDS) {
			step(engine_of(liar));
			return true;
		}
	}
	return false;
}

void prove(struct liar *liar, const struct pair *pair)
{
	struct shunt_message message;
	uint8_t before = options_of(pair->side[0].fd);

	liar->socket = pair->side[0].fd;
	ask(liar, pair);
	be_challenged(liar);
	reveal(liar);
	assert_true(go_on(liar, &message));
	set_options(liar->socket, before);
}

void hang_up(struct liar *liar)
{
	close(liar->fd);
	settle();
}

void assert_is_taken(struct pair *pair)
{
	struct liar honest = claimant();
	uint64_t before = proven(1);

	prove(&honest, pair);
	assert_int_equal(proven(1), before + 1);
	assert_int_not_equal(stream_of(&pair->side[1])->proven_on, 0);
	assert_int_equal(options_of(pair->side[1].fd), AS_MADE);
	assert_int_equal(stream_state(stream_of(&pair->side[1])), SHUNT_CANDIDATE);
	hang_up(&honest);
}
