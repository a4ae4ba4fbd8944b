/* SPDX-License-Identifier: MIT */
/*
 * Proofs of possession against peers that lie, squat, replay and relay, and interrupted at every step. TCP and the
 * witness are the kernel's own. A liar is no engine: it speaks the channel by hand.
 */
#include "tests/sim/bed.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/api.h"
#include "core/base/sha256.h"
#include "core/peer/limits.h"
#include "core/peer/link_end.h"
#include "core/peer/possession.h"
#include "core/peer/witness.h"
#include "core/service.h"
#include "core/stream/tuple.h"
#include "tests/sim/names.h"

#define CLAIMANT 0
#define ACCEPTOR 1
#define HALF SHUNT_DIGEST_BYTES
#define FOREVER 400		/* steps until nothing moves any more */
#define MINUTE 61000000000ull
#define PROVES 0x80000007u	/* a liar's number for a proof */

static const int names[] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL,
			     IP_MULTICAST_LOOP };

uint64_t sim_random_state;

/* --- engines of two users --- */

static struct shunt_sys sys[2];
static uint32_t refused_for[2];	/* why engine i has refused last, + 1 */
static int door = -1;		/* of a middleman: engine 0 comes here, whatever name it looks for; -1: to the name */
static struct sockaddr_un door_address;
static socklen_t door_length;
static bool is_blind;		/* engine 1 has no witness */
static bool is_elsewhere;	/* its sockets are not those that its witness sees */
static in_port_t replaced;	/* the witness shows another socket of that port; 0: none */

static int hidden_prctl(int option, ...)
{
	assert_int_equal(option, PR_GET_DUMPABLE);
	return 0;
}

static int blind_socket(int family, int type, int protocol)
{
	if (family != AF_NETLINK || !is_blind)
		return socket(family, type, protocol);
	errno = EAFNOSUPPORT;
	return -1;
}

static int other_cookie(int fd, int level, int name, void *value, socklen_t *length)
{
	int result = getsockopt(fd, level, name, value, length);

	if (is_elsewhere && level == SOL_SOCKET && name == SO_COOKIE)
		++*(uint64_t *)value;
	return result;
}

static ssize_t other_answer(int fd, struct msghdr *message, int flags)
{
	ssize_t got = recvmsg(fd, message, flags);
	uint8_t *at = message->msg_iov->iov_base;
	struct inet_diag_msg shown;

	if (got < (ssize_t)NLMSG_LENGTH(sizeof(shown)) ||
	    message->msg_namelen != sizeof(struct sockaddr_nl))
		return got;
	memcpy(&shown, at + NLMSG_HDRLEN, sizeof(shown));
	if (shown.idiag_family == AF_INET && shown.id.idiag_sport == replaced)
		shown.id.idiag_cookie[0]++;
	memcpy(at + NLMSG_HDRLEN, &shown, sizeof(shown));
	return got;
}

static int connect_to_door(int fd, const struct sockaddr *address, socklen_t length)
{
	return door < 0 || address->sa_family != AF_UNIX ?
		       sim_names_connect(fd, address, length) :
		       connect(fd, (struct sockaddr *)&door_address, door_length);
}

static ssize_t note(int which, int fd, const struct msghdr *header, int flags)
{
	const struct shunt_message *message = header->msg_iov->iov_base;

	if (header->msg_iov->iov_len == sizeof(*message) && message->type == SHUNT_MSG_REFUSE)
		refused_for[which] = message->why + 1;
	return sendmsg(fd, header, flags);
}

static ssize_t send_of_0(int fd, const struct msghdr *header, int flags)
{
	return note(0, fd, header, flags);
}

static ssize_t send_of_1(int fd, const struct msghdr *header, int flags)
{
	return note(1, fd, header, flags);
}

/* No pair yet. */
static void make_strangers(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.brief = 0;	/* connections without a link are no reason not to ask */
	make_bed(&config, 0);
	for (int i = 0; i < 2; i++) {
		sys[i] = *engines[i]->sys;
		sys[i].sendmsg = i ? send_of_1 : send_of_0;
		sys[i].prctl = hidden_prctl;
		engines[i]->sys = &sys[i];
		refused_for[i] = 0;
	}
	sys[0].connect = connect_to_door;
	sys[1].socket = blind_socket;
	sys[1].getsockopt = other_cookie;
	sys[1].recvmsg = other_answer;
	is_blind = is_elsewhere = false;
	replaced = 0;
}

static void step(int i)
{
	if (engines[i]->service)
		shunt_service_step(engines[i], 0);
	shunt_group_poll_fully(engines[i]);
}

static void settle(void)
{
	for (int i = 0; i < 20; i++)
		turn();
}

static int links_of(int i)
{
	int count = 0;

	for (struct shunt_link *link = engines[i]->service->links; link; link = link->next)
		count += atomic_load(&link->state) != SHUNT_LINK_DEAD;
	return count;
}

static uint64_t proven(int i)
{
	return atomic_load(&engines[i]->proven);
}

static uint64_t disproven(int i)
{
	return atomic_load(&engines[i]->disproven);
}

static uint32_t wrong(int i)
{
	return engines[i]->service->users[0].wrong;
}

static uint8_t options_of(int fd)
{
	uint8_t bits = 0;

	for (int i = 0; i < SHUNT_WITNESS_BITS; i++) {
		socklen_t length = sizeof(int);
		int on = 0;

		assert_int_equal(getsockopt(fd, IPPROTO_IP, names[i], &on, &length), 0);
		bits |= (uint8_t)((on != 0) << i);
	}
	return bits;
}

static void set_options(int fd, uint8_t bits)
{
	for (int i = 0; i < SHUNT_WITNESS_BITS; i++) {
		int on = bits >> i & 1;

		assert_int_equal(setsockopt(fd, IPPROTO_IP, names[i], &on, sizeof(on)), 0);
	}
}

#define AS_MADE (SHUNT_WITNESS_MC_ALL | SHUNT_WITNESS_MC_LOOP)

/* A connection whose other end (`side`) no engine knows. Engine !side's program has used it. */
static struct pair half_known(int unknown)
{
	struct pair pair;
	char byte;

	connect_pair(&pair);
	shunt_file_closing(engines[unknown], pair.side[unknown].fd);
	if (unknown == CLAIMANT)
		receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT);
	else
		send_some(&pair.side[0], "x", 1, 0);
	return pair;
}

static void close_pair(struct pair *pair)
{
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	settle();
}

/* Nothing of a proof is left, and the link may be. */
static void assert_clean(int i)
{
	assert_null(engines[i]->service->proofs.first);
	for (struct shunt_link *link = engines[i]->service->links; link; link = link->next)
		assert_int_equal(link->proving, 0);
}

/* --- a liar --- */

struct liar {
	int fd;			/* its channel */
	int role;		/* CLAIMANT or ACCEPTOR */
	int socket;		/* that it changes; -1: none */
	uint32_t number;	/* the engine's for the proof */
	uint8_t half[HALF];
	struct shunt_tuple tuple;	/* as the claimant sees it */
	uint8_t peers[HALF];
	uint32_t ours;		/* what the socket has to show */
};

static int engine_of(const struct liar *liar)
{
	return liar->role == CLAIMANT ? ACCEPTOR : CLAIMANT;
}

static void say(struct liar *liar, const struct shunt_message *message)
{
	assert_int_equal(send(liar->fd, message, sizeof(*message), MSG_NOSIGNAL), sizeof(*message));
}

/* What the engine says next; false: nothing, or it has hung up. */
static bool hears(struct liar *liar, struct shunt_message *message)
{
	for (int i = 0; i < 5; i++) {
		ssize_t got = recv(liar->fd, message, sizeof(*message), MSG_DONTWAIT);

		if (got >= 0)
			return got == sizeof(*message);
		step(engine_of(liar));
	}
	return false;
}

static void expect(struct liar *liar, enum shunt_message_type type, struct shunt_message *message)
{
	assert_true(hears(liar, message));
	assert_int_equal(message->type, type);
}

static void expect_refusal(struct liar *liar, enum shunt_refusal why)
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

static int dial(void)
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

/* Comes to engine 1. */
static struct liar claimant(void)
{
	struct liar liar = { .fd = dial(), .role = CLAIMANT, .socket = -1 };

	knock(&liar);
	return liar;
}

static void make_door(void)
{
	door_length = sizeof(door_address);
	door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(door, (struct sockaddr *)&(struct sockaddr_un) { .sun_family = AF_UNIX }, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(door, 8), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&door_address, &door_length), 0);
}

static void close_door(void)
{
	close(door);
	door = -1;
}

/* The next that has come to the middleman's door, or -1. */
static int come(void)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);

	return accept4(door, (struct sockaddr *)&from, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Engine 0 comes to it, for a connection that its program has used; the middleman has a door. */
static struct liar acceptor(void)
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

static uint64_t network_of(int fd)
{
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie = 0;

	getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length);
	return cookie;
}

static struct shunt_message ask_for(struct liar *liar, const struct pair *pair, uint32_t number)
{
	struct shunt_message message = { .type = SHUNT_MSG_ASK };

	for (size_t i = 0; i < HALF; i++)
		liar->half[i] = (uint8_t)(7 * i + number);
	assert_int_equal(shunt_tuple_of(engines[0], pair->side[0].fd, &liar->tuple), 0);
	message.proof.number = number;
	message.proof.tuple = liar->tuple;
	message.proof.network = network_of(pair->side[0].fd);
	digest_of(liar->half, message.proof.bytes);
	return message;
}

static void ask(struct liar *liar, const struct pair *pair)
{
	struct shunt_message message = ask_for(liar, pair, PROVES);

	say(liar, &message);
}

/* As possession.c has it: the ends of the channel are the claimant's and the acceptor's. */
static uint32_t parts(const struct liar *liar, const char *whose, const uint8_t peers[HALF])
{
	bool claims = liar->role == CLAIMANT;
	struct shunt_witness *witness = &engines[1]->service->witness;
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;
	uint32_t ends[2], swapped[2], parts;

	(void)witness;
	assert_int_equal(shunt_witness_channel(engines[engine_of(liar)]->service, liar->fd, ends),
			 0);
	swapped[0] = ends[1];
	swapped[1] = ends[0];
	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, whose, 8);
	shunt_sha256_add(&sum, claims ? ends : swapped, sizeof(ends));
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

static void show(const struct liar *liar, uint32_t round)
{
	if (liar->socket >= 0)
		set_options(liar->socket, liar->ours >> (4 * round) & 15);
}

/* The acceptor has challenged: the liar knows what to show. */
static void be_challenged(struct liar *liar)
{
	struct shunt_message message;

	expect(liar, SHUNT_MSG_CHALLENGE, &message);
	assert_int_equal(message.stream, PROVES);
	liar->number = message.proof.number;
	memcpy(liar->peers, message.proof.bytes, HALF);
	liar->ours = parts(liar, "claimant", liar->peers);
}

static void reveal(struct liar *liar)
{
	struct shunt_message message = { .type = SHUNT_MSG_REVEAL, .stream = liar->number };

	memcpy(message.proof.bytes, liar->half, HALF);
	show(liar, 0);
	say(liar, &message);
}

static void say_shown(struct liar *liar, uint32_t round)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHOWN, .stream = liar->number };

	message.proof.round = round;
	say(liar, &message);
}

/* Until the engine says something else than SHOWN, or all has been shown: true. The liar does not look. */
static bool go_on(struct liar *liar, struct shunt_message *message)
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

/* As one that has the socket. */
static void prove(struct liar *liar, const struct pair *pair)
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

static void hang_up(struct liar *liar)
{
	close(liar->fd);
	settle();
}

/* An honest one comes, and the connection is its. */
static void assert_is_taken(struct pair *pair)
{
	struct liar honest = claimant();
	uint64_t before = proven(1);

	prove(&honest, pair);
	assert_int_equal(proven(1), before + 1);
	assert_int_not_equal(stream_of(&pair->side[1])->proven_on, 0);
	assert_int_equal(options_of(pair->side[1].fd), AS_MADE);
	assert_int_equal(atomic_load(&stream_of(&pair->side[1])->state), SHUNT_CANDIDATE);
	hang_up(&honest);
}

/* --- claimants that lie --- */

static void the_holder_is_believed(void **state)
{
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	assert_is_taken(&pair);
	assert_int_equal(disproven(1), 0);
	assert_int_equal(wrong(1), 0);
	assert_clean(1);
	close_pair(&pair);
}

static void a_socket_that_shows_nothing_disproves(void **state)
{
	struct shunt_message message;
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	assert_false(go_on(&liar, &message));	/* by chance, some part may be what the socket has anyway */
	assert_int_equal(message.type, SHUNT_MSG_REFUSE);
	assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	assert_int_equal(proven(1), 0);
	assert_int_equal(wrong(1), 1);
	assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
	assert_is_taken(&pair);
	hang_up(&liar);
	assert_clean(1);
	close_pair(&pair);
}

static void another_half_disproves(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;	/* it even has the socket */
	ask(&liar, &pair);
	be_challenged(&liar);
	liar.half[3] ^= 1;
	liar.ours = parts(&liar, "claimant", liar.peers);	/* and shows what that half wants */
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	assert_int_equal(wrong(1), 1);
	set_options(liar.socket, AS_MADE);
	assert_is_taken(&pair);
	hang_up(&liar);
	close_pair(&pair);
}

/* It has seen that chance is against it. What counts is that it could have gone on: it is free to go with its connection. */
static void who_goes_knowing_the_bits_was_wrong(void **state)
{
	static const struct linger abort_now = { 1, 0 };

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct shunt_message refuse = { .type = SHUNT_MSG_REFUSE };
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		ask(&liar, &pair);
		be_challenged(&liar);
		refuse.stream = liar.number;
		if (what == 2) {
			setsockopt(pair.side[0].fd, SOL_SOCKET, SO_LINGER, &abort_now,
				   sizeof(abort_now));
			close(pair.side[0].fd);
		}
		if (what == 1)
			say(&liar, &refuse);
		else
			close(liar.fd);
		settle();
		assert_int_equal(wrong(1), what < 2);
		assert_clean(1);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		if (what == 1)
			close(liar.fd);
		if (what == 2)
			close_side(&pair.side[1]);
		else
			close_pair(&pair);
	}
}

/* What was right on one channel, or for one connection, is right there alone. */
static void a_proof_is_of_one_channel_and_connection(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct liar first, second;
		struct pair pair, other;

		make_strangers();
		pair = half_known(CLAIMANT);
		other = half_known(CLAIMANT);
		first = claimant();
		prove(&first, &pair);
		second = what ? first : claimant();
		second.socket = what ? other.side[0].fd : pair.side[0].fd;
		ask(&second, what ? &other : &pair);
		be_challenged(&second);
		assert_int_not_equal(second.ours, first.ours);
		second.ours = first.ours;
		reveal(&second);
		assert_false(go_on(&second, &message));
		assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
		assert_int_equal(disproven(1), 1);
		assert_int_equal(proven(1), 1);
		close(first.fd);
		if (!what)
			close(second.fd);
		set_options(second.socket, AS_MADE);
		close_pair(&pair);
		close_pair(&other);
	}
}

static void assert_distrusts(struct liar *liar)
{
	struct shunt_message message;

	while (hears(liar, &message))
		assert_int_not_equal(message.type, SHUNT_MSG_HELLO);
	settle();
	assert_int_equal(atomic_load(&engines[engine_of(liar)]->distrusted), 1);
	assert_int_equal(links_of(engine_of(liar)), 0);
	assert_clean(engine_of(liar));
	close(liar->fd);
}

static void no_hello_comes_before_a_proof(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct liar liar;

	(void)state;
	make_strangers();
	liar = claimant();
	message.hello = (struct shunt_hello) { .magic = SHUNT_WIRE_MAGIC, .version = SHUNT_WIRE_VERSION, .receives = 64,
					       .streams = 32, .kind = 1, .lanes = 1, .arena_bytes = 1 << 20 };
	say(&liar, &message);
	shunt_service_step(engines[1], 0);
	assert_non_null(engines[1]->service->links);	/* it goes in the next step */
	assert_string_equal(engines[1]->service->links->failure, "it has not proven a connection");
	assert_distrusts(&liar);
}

static void a_part_out_of_turn_is_distrusted(void **state)
{
	(void)state;
	for (int what = 0; what < 5; what++) {
		struct shunt_message message;
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		liar.socket = pair.side[0].fd;
		ask(&liar, &pair);
		be_challenged(&liar);
		if (what == 0) {	/* before the half is revealed */
			say_shown(&liar, 1);
		} else {
			reveal(&liar);
			if (what > 1)	/* else before ours has shown anything */
				expect(&liar, SHUNT_MSG_SHOWN, &message);
			if (what == 4)	/* two at once */
				say_shown(&liar, 1);
			say_shown(&liar, what == 3 ? SHUNT_PROOF_ROUNDS : what == 4 ? 2 : what);
		}
		assert_distrusts(&liar);
		assert_int_equal(proven(1), 0);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		set_options(liar.socket, AS_MADE);
		close_pair(&pair);
	}
}

/* --- so many, so long --- */

static void so_many_proofs_are_under_way(void **state)
{
	enum { MORE = 6, ALL = SHUNT_PROOFS_PER_LINK + MORE };
	struct shunt_message message;
	struct pair pair[ALL];
	uint32_t theirs = 0;
	struct liar liar;
	int challenged = 0;

	(void)state;
	make_strangers();
	liar = claimant();
	for (uint32_t i = 0; i < ALL; i++) {
		pair[i] = half_known(CLAIMANT);
		message = ask_for(&liar, &pair[i], PROVES + i);
		say(&liar, &message);
		step(1);
		while (hears(&liar, &message)) {
			assert_int_equal(message.type, SHUNT_MSG_CHALLENGE);
			theirs = message.proof.number;
			challenged++;
		}
	}
	assert_int_equal(challenged, SHUNT_PROOFS_PER_LINK);
	message = (struct shunt_message) { .type = SHUNT_MSG_REFUSE, .stream = theirs };
	say(&liar, &message);
	expect(&liar, SHUNT_MSG_CHALLENGE, &message);
	assert_int_equal(message.stream, PROVES + SHUNT_PROOFS_PER_LINK);	/* who has waited longest */
	assert_false(hears(&liar, &message));
	close(liar.fd);
	settle();
	assert_clean(1);
	for (uint32_t i = 0; i < ALL; i++) {
		assert_int_equal(options_of(pair[i].side[1].fd), AS_MADE);
		close_pair(&pair[i]);
	}
}

static bool is_heard(void)
{
	struct shunt_message message;
	int fd = dial();
	bool heard;

	step(1);
	heard = recv(fd, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message);
	close(fd);
	settle();
	return heard;
}

static void who_is_often_wrong_is_not_heard_for_a_minute(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	freeze_clock(true);
	pair = half_known(CLAIMANT);
	liar = claimant();
	for (int i = 0; i < SHUNT_WRONG_PER_USER; i++) {
		assert_true(is_heard());
		ask(&liar, &pair);
		be_challenged(&liar);
		liar.half[0]++;
		reveal(&liar);
		step(1);
		if (i + 1 < SHUNT_WRONG_PER_USER)
			expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	}
	settle();
	assert_int_equal(links_of(1), 0);
	assert_false(is_heard());
	pair_skew += SHUNT_WRONG_NS - 1000000;
	assert_false(is_heard());
	pair_skew += 2000000;
	assert_true(is_heard());
	assert_is_taken(&pair);
	freeze_clock(false);
	close(liar.fd);
	close_pair(&pair);
}

static void an_unused_connection_is_not_given_up(void **state)
{
	struct liar liar;
	struct pair pair;
	char byte;

	(void)state;
	make_strangers();
	liar = claimant();
	connect_pair(&pair);
	shunt_file_closing(engines[0], pair.side[0].fd);
	ask(&liar, &pair);
	step(1);
	assert_non_null(engines[1]->service->parked);
	pair_skew += engines[1]->config.claim_ms * 1000000 + 1000000;
	expect_refusal(&liar, SHUNT_REFUSED_UNUSED);
	assert_int_equal(atomic_load(&stream_of(&pair.side[1])->state), SHUNT_CANDIDATE);
	receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT);
	settle();
	assert_is_taken(&pair);
	hang_up(&liar);
	close_pair(&pair);
}

/* 0: no REVEAL; 1: no SHOWN. */
static void an_overdue_proof_ends(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		liar.socket = pair.side[0].fd;
		ask(&liar, &pair);
		be_challenged(&liar);
		if (what) {
			reveal(&liar);
			expect(&liar, SHUNT_MSG_SHOWN, &message);
		}
		pair_skew += SHUNT_PROOF_NS + 1000000;
		expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
		assert_int_equal(wrong(1), 1);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		assert_clean(1);
		set_options(liar.socket, AS_MADE);
		hang_up(&liar);
		close_pair(&pair);
	}
}

/* It can say nothing of whom it does not see, and that is nobody's fault. */
static void without_a_witness_nobody_is_wrong(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	is_blind = true;
	pair = half_known(CLAIMANT);
	liar = claimant();
	ask(&liar, &pair);
	is_blind = false;
	be_challenged(&liar);
	shunt_witness_dismiss(engines[1]->service);
	is_blind = true;
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_UNSEEN);
	assert_int_equal(wrong(1), 0);
	hang_up(&liar);
	is_blind = false;
	assert_is_taken(&pair);
	close_pair(&pair);
}

/* The witness speaks of another network than the connection's: nothing that it shows counts, for or against. */
static void a_witness_elsewhere_is_none(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	is_elsewhere = true;
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_UNSEEN);
	assert_int_equal(wrong(1), 0);
	assert_int_equal(proven(1), 0);
	is_elsewhere = false;
	set_options(liar.socket, AS_MADE);
	hang_up(&liar);
	assert_is_taken(&pair);
	close_pair(&pair);
}

/* The connection has ended in the middle, and another one has its addresses. */
static void another_socket_disproves(void **state)
{
	struct shunt_message message;
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	expect(&liar, SHUNT_MSG_SHOWN, &message);
	replaced = liar.tuple.local_port;
	show(&liar, 1);
	say_shown(&liar, 1);
	expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	replaced = 0;
	set_options(liar.socket, AS_MADE);
	hang_up(&liar);
	close_pair(&pair);
}

/* --- acceptors that lie --- */

static struct liar asked(struct pair *pair, struct shunt_message *message)
{
	struct liar liar;

	make_strangers();
	make_door();
	*pair = half_known(ACCEPTOR);
	liar = acceptor();
	expect(&liar, SHUNT_MSG_ASK, message);
	liar.number = message->proof.number;
	liar.tuple = message->proof.tuple;
	return liar;
}

static void challenge(struct liar *liar)
{
	struct shunt_message message = { .type = SHUNT_MSG_CHALLENGE, .stream = liar->number };

	memset(liar->half, 5, HALF);
	memcpy(message.proof.bytes, liar->half, HALF);
	message.proof.number = PROVES;
	say(liar, &message);
	expect(liar, SHUNT_MSG_REVEAL, &message);
	assert_int_equal(message.stream, PROVES);
	liar->ours = parts(liar, "acceptor", message.proof.bytes);
}

/* The acceptor's half of go_on(). */
static bool answer(struct liar *liar, struct shunt_message *message)
{
	for (uint32_t round = 0; round < SHUNT_PROOF_ROUNDS; round++) {
		show(liar, round);
		say_shown(liar, round);
		if (!hears(liar, message) || message->type != SHUNT_MSG_SHOWN)
			return false;
		assert_int_equal(message->proof.round, round + 1);
	}
	return true;
}

static void an_acceptor_proves_too(void **state)
{
	(void)state;
	for (int has = 0; has < 2; has++) {
		struct shunt_message message;
		struct pair pair;
		struct liar liar = asked(&pair, &message);

		liar.socket = has ? pair.side[1].fd : -1;
		challenge(&liar);
		if (has) {
			assert_true(answer(&liar, &message));
			set_options(liar.socket, AS_MADE);
			expect(&liar, SHUNT_MSG_HELLO, &message);
			assert_int_equal(proven(0), 1);
		} else {
			assert_false(answer(&liar, &message));
			assert_int_equal(message.type, SHUNT_MSG_REFUSE);
			assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
			assert_int_equal(disproven(0), 1);
			assert_int_equal(wrong(0), 1);
			assert_int_equal(atomic_load(&stream_of(&pair.side[0])->state),
					 SHUNT_PLAIN);
			assert_false(hears(&liar, &message));	/* nothing of ours is given */
		}
		assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
		assert_clean(0);
		hang_up(&liar);
		close_door();
		close_pair(&pair);
	}
}

/* 0: no CHALLENGE; 1: no SHOWN. The program waits for neither. */
static void an_acceptor_that_says_nothing_is_given_up(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct pair pair;
		struct liar liar = asked(&pair, &message);

		if (what)
			challenge(&liar);
		pair_skew += SHUNT_PROOF_NS + 4 * engines[0]->config.claim_ms * 1000000 + 1000000;
		step(0);
		step(0);
		assert_int_equal(atomic_load(&stream_of(&pair.side[0])->state), SHUNT_PLAIN);
		assert_int_equal(wrong(0), what);
		assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
		assert_clean(0);
		hang_up(&liar);
		close_door();
		close_pair(&pair);
	}
}

/* It sits on the name, and does not even knock. */
static void a_squatter_that_says_nothing_is_given_up(void **state)
{
	struct pair pair;
	int fd = -1;

	(void)state;
	make_strangers();
	make_door();
	pair = half_known(ACCEPTOR);
	for (int i = 0; fd < 0; i++) {
		assert_true(i < FOREVER);
		step(0);
		fd = come();
	}
	step(0);
	assert_int_equal(atomic_load(&stream_of(&pair.side[0])->state), SHUNT_CANDIDATE);
	pair_skew += SHUNT_HELLO_NS + 1000000;
	for (int i = 0; i < 5; i++)
		step(0);
	assert_int_equal(atomic_load(&stream_of(&pair.side[0])->state), SHUNT_PLAIN);
	assert_int_equal(links_of(0), 0);
	close(fd);
	close_door();
	close_pair(&pair);
}

/* --- a process in between --- */

static void pass_on(struct liar *from, struct liar *to)
{
	struct shunt_message message;

	while (hears(from, &message)) {
		if (message.type == SHUNT_MSG_HELLO)
			fail_msg("an engine introduces itself to a process in between");
		if (message.type == SHUNT_MSG_ASK || message.type == SHUNT_MSG_CHALLENGE)
			from->number = message.proof.number;
		if (message.type == SHUNT_MSG_ASK)
			message.stream = 0;
		else
			message.stream = to->number;
		say(to, &message);
		step(engine_of(to));
	}
}

/* It asks at the one for what the other asks of it, and tells each what the other says: neither believes it. */
static void who_stands_in_between_proves_nothing(void **state)
{
	struct liar to_claimant, to_acceptor;
	struct pair pair;

	(void)state;
	make_strangers();
	make_door();
	connect_pair(&pair);
	send_some(&pair.side[0], "x", 1, 0);
	assert_int_equal(receive_some(&pair.side[1], &(char) { 0 }, 1, MSG_DONTWAIT), 1);
	to_claimant = acceptor();
	to_acceptor = claimant();
	for (int i = 0; i < FOREVER / 4; i++) {
		pass_on(&to_claimant, &to_acceptor);
		pass_on(&to_acceptor, &to_claimant);
	}
	assert_int_equal(proven(0) + proven(1), 0);
	assert_int_equal(disproven(0) + disproven(1), 1);	/* the first that looks: the other is refused then */
	assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
	assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
	close(to_claimant.fd);
	hang_up(&to_acceptor);
	assert_clean(0);
	assert_clean(1);
	close_door();
	close_pair(&pair);
}

/* --- two engines --- */

static bool is_linked(struct pair *pair)
{
	return atomic_load(&stream_of(&pair->side[0])->state) == SHUNT_LINKED &&
	       atomic_load(&stream_of(&pair->side[1])->state) == SHUNT_LINKED;
}

static void begin(struct pair *pair)
{
	char byte;

	connect_pair(pair);
	send_some(&pair->side[0], "x", 1, 0);
	receive_some(&pair->side[1], &byte, 1, MSG_DONTWAIT);
}

static void until_linked(struct pair *pair)
{
	for (int n = 0; !is_linked(pair); n++) {
		assert_true(n < FOREVER);
		turn();
	}
}

static void two_engines_prove_each_connection(void **state)
{
	struct pair pair[3];

	(void)state;
	make_strangers();
	for (int i = 0; i < 3; i++) {
		begin(&pair[i]);
		until_linked(&pair[i]);
		for (int side = 0; side < 2; side++) {
			assert_int_equal(proven(side), i + 1);
			assert_int_equal(options_of(pair[i].side[side].fd), AS_MADE);
		}
	}
	assert_int_equal(links_of(1), 1);
	for (int i = 0; i < 3; i++)
		close_pair(&pair[i]);
}

/* On a link that has proven another one. */
static void a_claim_without_a_proof_is_refused(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };
	struct pair linked, pair;
	struct shunt_link *link;
	struct liar liar;

	(void)state;
	make_strangers();
	begin(&linked);
	until_linked(&linked);
	link = stream_of(&linked.side[0])->link;
	pair = half_known(CLAIMANT);
	ask_for(&liar, &pair, PROVES);
	message.claim.tuple = liar.tuple;
	message.claim.network = network_of(pair.side[0].fd);
	message.claim.place = (struct shunt_place) { .ring_offset = link->arena.memory.reserved, .ring_bytes = 4096, .stream = 9,
						     .rkey = link->arena.lines->rkey };
	assert_int_equal(shunt_link_send(link, &message, NULL, 0), 0);
	settle();
	assert_int_equal(refused_for[1], SHUNT_REFUSED_DISPROVEN + 1);
	assert_int_equal(atomic_load(&stream_of(&pair.side[1])->state), SHUNT_CANDIDATE);
	assert_int_equal(atomic_load(&engines[1]->distrusted), 0);
	assert_int_equal(links_of(1), 1);
	assert_true(is_linked(&linked));
	assert_is_taken(&pair);
	close_pair(&pair);
	close_pair(&linked);
}

enum interruption {
	LINK_DIES,
	PROGRAM_CLOSES,
	TURNS_PLAIN,
	PROGRAM_ASKS,
	WITNESS_GOES,
	INTERRUPTIONS
};

static void interrupt(enum interruption what, struct pair *pair, int side)
{
	struct shunt_link *link = engines[side]->service ? engines[side]->service->links : NULL;
	struct shunt_stream *stream = stream_of(&pair->side[side]);

	switch (what) {
	case LINK_DIES:
		if (link)
			shunt_link_kill(link, "the test");
		break;
	case PROGRAM_CLOSES:
		shunt_file_closing(engines[side], pair->side[side].fd);
		break;
	case TURNS_PLAIN:	/* before fork() and exec(), and where the socket is passed on */
		shunt_streams_plain(engines[side], stream, SHUNT_REASON_FORK);
		break;
	case PROGRAM_ASKS:
		assert_true(shunt_stream_option_begins(stream, IPPROTO_IP, IP_FREEBIND));
		assert_int_equal(options_of(pair->side[side].fd), AS_MADE);
		shunt_stream_option_ends(stream);
		break;
	default:
		shunt_witness_dismiss(engines[side]->service);
	}
	if (what != LINK_DIES && what != WITNESS_GOES)
		assert_int_equal(options_of(pair->side[side].fd), AS_MADE);
}

/* After so many steps. True: the connection had been linked before. */
static bool interrupt_after(enum interruption what, int side, int steps)
{
	struct pair pair;
	bool over;

	pair_skew += MINUTE;	/* wrong answers of the last time are forgotten */
	begin(&pair);
	for (int n = 0; n < steps; n++)
		step(n & 1);
	over = is_linked(&pair);
	interrupt(what, &pair, side);
	settle();
	pair_skew += SHUNT_PROOF_NS + 4 * engines[0]->config.claim_ms * 1000000 + 1000000;
	settle();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(options_of(pair.side[i].fd), AS_MADE);
		assert_clean(i);
		assert_int_equal(atomic_load(&engines[i]->distrusted), 0);
	}
	if (what != PROGRAM_CLOSES)
		close_pair(&pair);
	close(pair.side[side].fd);
	if (what == PROGRAM_CLOSES)
		close_side(&pair.side[!side]);
	settle();
	return over;
}

static void a_proof_may_end_at_any_step(void **state)
{
	int interrupted = 0;

	(void)state;
	for (enum interruption what = 0; what < INTERRUPTIONS; what++) {
		for (int side = 0; side < 2; side++) {
			int steps = 1;

			make_strangers();
			begin(&bed.pair[0]);	/* this one holds the address */
			until_linked(&bed.pair[0]);
			for (; !interrupt_after(what, side, steps); steps++)
				assert_true(steps < FOREVER);
			interrupted += steps;
			close_pair(&bed.pair[0]);
		}
	}
	print_message("%d times\n", interrupted);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_holder_is_believed),
		cmocka_unit_test(a_socket_that_shows_nothing_disproves),
		cmocka_unit_test(another_half_disproves),
		cmocka_unit_test(who_goes_knowing_the_bits_was_wrong),
		cmocka_unit_test(a_proof_is_of_one_channel_and_connection),
		cmocka_unit_test(no_hello_comes_before_a_proof),
		cmocka_unit_test(a_part_out_of_turn_is_distrusted),
		cmocka_unit_test(so_many_proofs_are_under_way),
		cmocka_unit_test(who_is_often_wrong_is_not_heard_for_a_minute),
		cmocka_unit_test(an_unused_connection_is_not_given_up),
		cmocka_unit_test(an_overdue_proof_ends),
		cmocka_unit_test(without_a_witness_nobody_is_wrong),
		cmocka_unit_test(a_witness_elsewhere_is_none),
		cmocka_unit_test(another_socket_disproves),
		cmocka_unit_test(an_acceptor_proves_too),
		cmocka_unit_test(an_acceptor_that_says_nothing_is_given_up),
		cmocka_unit_test(a_squatter_that_says_nothing_is_given_up),
		cmocka_unit_test(who_stands_in_between_proves_nothing),
		cmocka_unit_test(two_engines_prove_each_connection),
		cmocka_unit_test(a_claim_without_a_proof_is_refused),
		cmocka_unit_test(a_proof_may_end_at_any_step),
	};

	int witness = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (witness < 0) {
		printf("there is no witness here: %s\n", strerror(errno));
		return 77;
	}
	close(witness);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
