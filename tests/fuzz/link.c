/* SPDX-License-Identifier: MIT */
/*
 * Rendezvous and link messages from a process that is no engine. It connects to the victim, or
 * accepts its connection, and sends packets of any size. Messages come at any time with any field,
 * with descriptors of any kind. It can prove a connection as it should, up to where it pleases.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/api.h"
#include "core/base/scm_rights.h"
#include "core/base/sha256.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_door.h"
#include "core/peer/possession.h"
#include "core/peer/witness.h"
#include "core/service.h"
#include "core/stream/tuple.h"
#include "tests/fuzz/world.h"
#include "tests/sim/names.h"
#include "tests/sim/start.h"
#include "tests/sim/witness.h"

#define STEPS 100
#define PROVING 234	/* bytes from this on are steps of a proof */

static struct fuzz_input *in;
static uint8_t buffer[4096];

static struct talker {		/* the hostile process */
	int fd;			/* its channel; -1: none */
	bool initiator;
	uint32_t seat;		/* the victim's number for a stream, as it told last */
	uint32_t number;	/* the same for a proof */
	uint32_t round;		/* that the victim's SHOWN was for */
	enum shunt_message_type heard;	/* of a proof's messages; 0: none */
	bool answered;		/* it has been */
	int conn;		/* that is to be proven */
	struct shunt_tuple tuple;	/* of it, as the claimant sees it */
	uint8_t half[SHUNT_DIGEST_BYTES];
	uint32_t ours;		/* what its socket is to show */
} talker;

static bool blind;	/* the victim has no witness */

/* Its queue pair, which does nothing but be there. */
static struct segment {
	const struct shunt_verbs *verbs;
	struct ibv_pd *pd;
	struct soft_address address;
	uint64_t arena, arena_bytes;
	struct ibv_mr *mr;
	int fds[2];
} segment;

static int blocking_eventfd, plain_memfd;

/* --- what it has --- */

static void make_segment(void)
{
	struct soft_attr attr = { .max_qp_wr = 64, .arena_bytes = 1 << 20 };
	struct ibv_context *context = soft_open(&attr, &segment.verbs);
	struct ibv_comp_channel *channel = segment.verbs->create_comp_channel(context);
	struct ibv_cq *cq = segment.verbs->create_cq(context, 64, NULL, channel, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 64, 64, 1, 1, 64 } };
	struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				       .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_qp *qp;
	size_t bytes;
	void *arena;

	segment.pd = segment.verbs->alloc_pd(context);
	arena = soft_arena(segment.pd, &bytes);
	qp = segment.verbs->create_qp(segment.pd, &init);
	fuzz_check(qp && !segment.verbs->modify_qp(qp, &to_init, SHUNT_TO_INIT));
	segment.mr = segment.verbs->register_mr(segment.pd, arena, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						IBV_ACCESS_REMOTE_READ);
	segment.arena = (uintptr_t)arena;
	segment.arena_bytes = bytes;
	fuzz_check(!soft_qp_export(qp, &segment.address, segment.fds));
	blocking_eventfd = eventfd(0, EFD_CLOEXEC);
	plain_memfd = memfd_create("plain", MFD_CLOEXEC);
}

static int some_descriptor(unsigned int kind)
{
	struct fuzz_conn *conn = &fuzz_world.conn[fuzz_below(in, 4) % (fuzz_world.conns ?: 1)];
	int side = fuzz_world.conns ? fuzz_world_side(conn, FUZZ_HOSTILE) : 0;

	switch (kind) {
	case 0:
		return segment.fds[0];
	case 1:
		return segment.fds[1];
	case 2:
		return fuzz_world.conns && conn->fd[side] >= 0 ? conn->fd[side] : STDERR_FILENO;
	case 3:
		return blocking_eventfd;
	case 4:
		return plain_memfd;
	case 5:
		return fuzz_world.honest[0].fd[0];
	default:
		return STDERR_FILENO;
	}
}

/* --- what it says --- */

static struct shunt_place some_place(void)
{
	return (struct shunt_place) { .ring_offset = 65536 + fuzz_below(in, 4) * 65536, .ring_bytes = 4096u << fuzz_below(in, 4),
				      .stream = 1 + fuzz_below(in, 4), .rkey = segment.mr->rkey };
}

static void say_hello(struct shunt_hello *hello)
{
	*hello = (struct shunt_hello) { .magic = SHUNT_WIRE_MAGIC, .version = SHUNT_WIRE_VERSION, .arena_address = segment.arena,
					.arena_bytes = segment.arena_bytes, .rkey = segment.mr->rkey, .receives = 64, .streams = 32,
					.pid = 1, .kind = 1, .lanes = 1,
					.nonces = fuzz_world.engine[FUZZ_VICTIM]->config.proof };
	memcpy(hello->address, &segment.address, sizeof(segment.address));
}

static void say_knock(struct shunt_message *message)
{
	*message = (struct shunt_message) { .type = SHUNT_MSG_KNOCK };
	message->hello.magic = SHUNT_WIRE_MAGIC;
	message->hello.version = SHUNT_WIRE_VERSION;
}

static void fill(struct shunt_message *message, int fds[16], int *count)
{
	struct fuzz_conn *conn = &fuzz_world.conn[0];

	switch (message->type) {
	case SHUNT_MSG_HELLO:
		say_hello(&message->hello);
		fds[(*count)++] = segment.fds[0];
		fds[(*count)++] = segment.fds[1];
		break;
	case SHUNT_MSG_CLAIM:
		if (fuzz_world.conns) {
			conn = &fuzz_world.conn[fuzz_below(in, 4) % fuzz_world.conns];
			if (conn->fd[0] >= 0)
				shunt_tuple_of(fuzz_world.engine[FUZZ_HOSTILE]->sys, conn->fd[0],
					       &message->claim.tuple);
		}
		message->claim.place = some_place();
		break;
	case SHUNT_MSG_KNOCK:
		say_knock(message);
		break;
	case SHUNT_MSG_ACCEPT:
		message->accept.place = some_place();
		break;
	default:
		message->leave.offset = fuzz_world.start + fuzz_byte(in);
		message->leave.announced = fuzz_below(in, 3);
		message->leave.heard = fuzz_below(in, 3);
		message->leave.how = fuzz_below(in, 4);
	}
}

/* Without them it is no knock. */
static void add_credentials(struct msghdr *header, char *space)
{
	struct ucred self = { getpid(), geteuid(), getegid() };
	struct cmsghdr *control;

	header->msg_control = space;
	header->msg_controllen = CMSG_SPACE(sizeof(self));
	control = CMSG_FIRSTHDR(header);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_CREDENTIALS;
	control->cmsg_len = CMSG_LEN(sizeof(self));
	memcpy(CMSG_DATA(control), &self, sizeof(self));
}

static void transmit(int to, const void *bytes, size_t size, const int *fds, int count)
{
	char space[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)bytes, size };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	shunt_scm_rights_attach(&header, space, fds, count);
	if (!count && size == sizeof(struct shunt_message) &&
	    ((const struct shunt_message *)bytes)->type == SHUNT_MSG_KNOCK)
		add_credentials(&header, space);
	sim_sys.sendmsg(to, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void change_field(struct shunt_message *message)
{
	uint8_t *at = (uint8_t *)message + fuzz_below(in, sizeof(*message) / 4) * 4;
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	word = fuzz_below(in, 2) ? word + (int8_t)fuzz_byte(in) : fuzz_u32(in);
	memcpy(at, &word, sizeof(word));
}

static void say(void)
{
	struct shunt_message message = { .type = fuzz_below(in, SHUNT_MSG_KNOCK), .stream = fuzz_below(in, 4) ? talker.seat : fuzz_byte(in) };
	unsigned int wrong = fuzz_byte(in);
	size_t size = sizeof(message);
	int fds[16], count = 0;

	if (talker.fd < 0)
		return;
	if (!message.type)	/* of no type is a changed one, too */
		message.type = SHUNT_MSG_KNOCK;
	fill(&message, fds, &count);
	for (int i = 0; i < (int)(wrong & 3); i++)
		change_field(&message);
	if ((wrong >> 2 & 7) == 7)
		size = fuzz_byte(in) * 2;
	if ((wrong >> 5 & 3) == 3)
		for (count = 0; count < (int)(wrong >> 2 & 7) * 2; count++)
			fds[count] = some_descriptor(fuzz_below(in, 8));
	else if (wrong & 128 && count)
		fds[fuzz_below(in, count)] = some_descriptor(fuzz_below(in, 8));
	memcpy(buffer, &message, sizeof(message));
	transmit(talker.fd, buffer, size, fds, count);
}

/* --- it proves a connection --- */

static int some_socket(void)
{
	struct fuzz_conn *conn = &fuzz_world.conn[talker.conn];

	return talker.conn < fuzz_world.conns ? conn->fd[fuzz_world_side(conn, FUZZ_HOSTILE)] : -1;
}

/* As possession.c has it. */
static uint32_t parts(const uint8_t peers[SHUNT_DIGEST_BYTES])
{
	uint32_t ends[2] = { 0 }, swapped[2], parts;
	uint64_t processes[2] = { 0 };	/* all are in one */
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;
	bool claims = talker.initiator;

	shunt_witness_channel(fuzz_world.engine[FUZZ_HOSTILE]->service, talker.fd, ends);
	shunt_witness_processes(fuzz_world.engine[FUZZ_HOSTILE]->service, talker.fd, processes);
	swapped[0] = ends[1];
	swapped[1] = ends[0];
	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, claims ? "claimant" : "acceptor", 8);
	shunt_sha256_add(&sum, claims ? ends : swapped, sizeof(ends));
	shunt_sha256_add(&sum, processes, sizeof(processes));
	shunt_sha256_add(&sum, talker.tuple.local, 16);
	shunt_sha256_add(&sum, &talker.tuple.local_port, 2);
	shunt_sha256_add(&sum, talker.tuple.peer, 16);
	shunt_sha256_add(&sum, &talker.tuple.peer_port, 2);
	shunt_sha256_add(&sum, claims ? talker.half : peers, SHUNT_DIGEST_BYTES);
	shunt_sha256_add(&sum, claims ? peers : talker.half, SHUNT_DIGEST_BYTES);
	shunt_sha256_end(&sum, digest);
	memcpy(&parts, digest, sizeof(parts));
	return parts;
}

static void hear_proof(const struct shunt_message *message)
{
	struct shunt_tuple tuple;

	if (message->type == SHUNT_MSG_ASK || message->type == SHUNT_MSG_CHALLENGE)
		talker.number = message->proof.number;
	if (message->type == SHUNT_MSG_ASK) {
		talker.tuple = message->proof.tuple;
		for (talker.conn = 0; talker.conn < fuzz_world.conns; talker.conn++)
			if (fuzz_world.conn[talker.conn].fd[0] >= 0 &&
			    !shunt_tuple_of(fuzz_world.engine[FUZZ_VICTIM]->sys,
					    fuzz_world.conn[talker.conn].fd[0], &tuple) &&
			    !memcmp(&tuple, &talker.tuple, sizeof(tuple)))
				break;
	}
	if (message->type == SHUNT_MSG_CHALLENGE || message->type == SHUNT_MSG_REVEAL)
		talker.ours = parts(message->proof.bytes);
	if (message->type == SHUNT_MSG_SHOWN)
		talker.round = message->proof.round;
	if (message->type >= SHUNT_MSG_ASK && message->type <= SHUNT_MSG_SHOWN)
		talker.heard = message->type, talker.answered = false;
}

static void show(uint32_t round)
{
	static const int names[SIM_OPTIONS] = { IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT,
						IP_MULTICAST_ALL, IP_MULTICAST_LOOP };

	for (int i = 0; i < SIM_OPTIONS && some_socket() >= 0 && round < SHUNT_PROOF_ROUNDS; i++) {
		int on = talker.ours >> (SHUNT_WITNESS_BITS * round + i) & 1;

		sim_sys.setsockopt(some_socket(), IPPROTO_IP, names[i], &on, sizeof(on));
	}
}

static void say_ask(struct shunt_message *message)
{
	static const char what[] = "shunt half";
	struct shunt_sha256 sum;

	talker.conn = fuzz_below(in, FUZZ_CONNS);
	memset(&talker.tuple, 0, sizeof(talker.tuple));
	if (some_socket() >= 0)
		shunt_tuple_of(fuzz_world.engine[FUZZ_HOSTILE]->sys, some_socket(), &talker.tuple);
	message->stream = 0;
	message->proof.number = fuzz_byte(in) | SHUNT_PROOF_BIT;
	message->proof.tuple = talker.tuple;
	shunt_sha256_begin(&sum);
	shunt_sha256_add(&sum, what, sizeof(what));
	shunt_sha256_add(&sum, talker.half, sizeof(talker.half));
	shunt_sha256_end(&sum, message->proof.bytes);
}

/* Also what its socket shows then. */
static void fill_proof(struct shunt_message *message)
{
	switch (message->type) {
	case SHUNT_MSG_ASK:
		say_ask(message);
		break;
	case SHUNT_MSG_CHALLENGE:
		message->proof.number = fuzz_byte(in) | SHUNT_PROOF_BIT;
		memcpy(message->proof.bytes, talker.half, sizeof(talker.half));
		break;
	case SHUNT_MSG_REVEAL:
		memcpy(message->proof.bytes, talker.half, sizeof(talker.half));
		show(0);
		break;
	case SHUNT_MSG_SHOWN:
		message->proof.round = talker.heard == SHUNT_MSG_SHOWN ? talker.round + talker.initiator : 0;
		show(message->proof.round);
		break;
	case SHUNT_MSG_REFUSE:
		message->why = fuzz_below(in, 12);
		break;
	default:
		message->onward.process = fuzz_world.engine[fuzz_below(in, FUZZ_ENGINES)]->identity;
		message->onward.gate = fuzz_below(in, 16) == 15;
	}
}

/* The right next thing after what was heard last. */
static enum shunt_message_type next_step(void)
{
	if (talker.heard == SHUNT_MSG_ASK)
		return SHUNT_MSG_CHALLENGE;
	if (talker.heard == SHUNT_MSG_CHALLENGE)
		return SHUNT_MSG_REVEAL;
	return talker.heard ? SHUNT_MSG_SHOWN : SHUNT_MSG_ASK;
}

static void say_step(enum shunt_message_type type, unsigned int wrong)
{
	struct shunt_message message = { .type = type, .stream = talker.number };

	if (talker.fd < 0)
		return;
	fill_proof(&message);
	for (unsigned int i = 0; i < wrong; i++)
		change_field(&message);
	transmit(talker.fd, &message, sizeof(message), NULL, 0);
}

/* Knocks, as one whose connections are to be proven. */
static void be_strange(void)
{
	struct shunt_message message;

	say_knock(&message);
	message.knock.proves = 1;
	if (talker.fd >= 0)
		transmit(talker.fd, &message, sizeof(message), NULL, 0);
}

static void introduce(void)
{
	struct shunt_message hello = { .type = SHUNT_MSG_HELLO };

	say_hello(&hello.hello);
	if (talker.fd >= 0)
		transmit(talker.fd, &hello, sizeof(hello), segment.fds, 2);
}

static void use_marks(void)
{
	struct shunt_stream *stream =
		fuzz_world.conns ?
			fuzz_world_stream(&fuzz_world.conn[fuzz_below(in, 4) % fuzz_world.conns],
					  FUZZ_VICTIM) :
			NULL;

	if (stream && shunt_stream_option_begins(stream, IPPROTO_IP, IP_MULTICAST_ALL))
		shunt_stream_option_ends(stream);
}

static int blind_socket(int family, int type, int protocol)
{
	if (family != AF_NETLINK || !blind)
		return socket(family, type, protocol);
	errno = EAFNOSUPPORT;
	return -1;
}

/* Its descriptor stays: another would have a number that world.c does not look at. */
static void set_blind(bool on)
{
	struct shunt_witness *witness = &fuzz_world.engine[FUZZ_VICTIM]->service->witness;
	static int kept;

	fuzz_world_sys()->socket = blind_socket;
	if (on)
		kept = witness->fd;
	witness->fd = on ? -1 : kept;
	blind = on;
}

static void hear(void);
static void knock(void);
static void open_door(void);

/* So many right steps, each after what the victim has said to the one before. */
static void go_on(unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++) {
		if (!talker.answered)
			say_step(next_step(), 0);
		talker.answered = true;
		fuzz_world_turn();
		hear();
	}
}

static void prove(void)
{
	static const enum shunt_message_type types[] = { SHUNT_MSG_ASK,	   SHUNT_MSG_CHALLENGE,
							 SHUNT_MSG_REVEAL, SHUNT_MSG_SHOWN,
							 SHUNT_MSG_REFUSE, SHUNT_MSG_REDIRECT };

	switch (fuzz_below(in, 11)) {
	case 0:
		knock();
		be_strange();
		fuzz_world_turn();
		hear();
		break;
	case 1:
		open_door();
		be_strange();
		fuzz_world_turn();
		hear();
		break;
	case 2: case 3: case 4:
		go_on(1 + fuzz_below(in, 24));
		break;
	case 5:
		use_marks();
		break;
	case 6:
		set_blind(!blind);
		break;
	case 7:
		memset(talker.half, fuzz_byte(in), sizeof(talker.half));
		break;
	case 8:
		introduce();
		break;
	default:
		say_step(types[fuzz_below(in, 6)], fuzz_below(in, 3));
	}
}

/* --- it comes to hear --- */

/* Reads the victim's messages; the numbers of its streams are worth knowing. */
static void hear(void)
{
	struct shunt_message message;
	char space[CMSG_SPACE(4 * sizeof(int))];
	struct iovec iov = { &message, sizeof(message) };
	ssize_t got;

	do {
		struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
		struct cmsghdr *control;

		got = talker.fd < 0 ? -1 : recvmsg(talker.fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		fuzz_check(got <= 0 || got == sizeof(message));
		control = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;
		for (size_t i = 0; control && CMSG_LEN((i + 1) * sizeof(int)) <= control->cmsg_len; i++)
			close(((int *)CMSG_DATA(control))[i]);
		if (got > 0 && message.type == SHUNT_MSG_CLAIM)
			talker.seat = message.claim.place.stream;
		if (got > 0 && message.type == SHUNT_MSG_ACCEPT)
			talker.seat = message.accept.place.stream;
		if (got > 0)
			hear_proof(&message);
	} while (got > 0);
}

/* --- it comes and goes --- */

static void hang_up(void)
{
	shunt_own_fds_close(&fuzz_world.engine[FUZZ_HOSTILE]->fds, talker.fd);
	talker.fd = -1;
}

static void knock(void)
{
	struct shunt_engine *hostile = fuzz_world.engine[FUZZ_HOSTILE];
	struct fuzz_conn *conn = &fuzz_world.honest[0];
	struct shunt_tuple tuple;
	struct shunt_name name;

	hang_up();
	fuzz_check(!shunt_tuple_of(hostile->sys, conn->fd[0], &tuple));
	talker.fd = shunt_rendezvous_connect(hostile, &tuple, &(struct shunt_user_dir) { .network = 0 }, &name, &(bool) { false });
	talker.initiator = true;
	talker.number = talker.heard = talker.answered = 0;
}

/* The victim has come to its rendezvous. */
static void open_door(void)
{
	struct shunt_engine *hostile = fuzz_world.engine[FUZZ_HOSTILE];
	int fd = shunt_rendezvous_accept(hostile, hostile->rendezvous->fd, &(bool) { false });

	if (fd < 0)
		return;
	hang_up();
	talker.fd = fd;
	talker.initiator = false;
	talker.number = talker.heard = talker.answered = 0;
}

/*
 * As a relative that wants a stream back, and as who knocks there for no reason. Whatever it sends
 * is never read.
 */
static void knock_as_relative(void)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];
	struct fuzz_conn *conn = &fuzz_world.conn[fuzz_below(in, 4) % (fuzz_world.conns ?: 1)];
	unsigned int count = fuzz_below(in, 8), bytes = fuzz_below(in, 4) % 3;
	struct sockaddr_un address;
	char name[SHUNT_ENDPOINT_NAME];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fds[16];
	struct shunt_stream *stream = fuzz_world.conns ?
				      fuzz_world_stream(conn, FUZZ_VICTIM) : NULL;

	shunt_fork_door_name(&victim->forks, victim->forks.pid, 0, name);
	if (sim_names_connect(fd, (struct sockaddr *)&address,
			      shunt_endpoint_address(name, &address))) {
		fuzz_check(errno == EAGAIN);	/* so many have come that nobody has looked at */
		close(fd);
		shunt_service_step(victim, 0);
		return;
	}
	if (stream && fuzz_below(in, 4))
		atomic_store(&stream->handing.wanted, true);
	for (unsigned int i = 0; i < count; i++)
		fds[i] = some_descriptor(fuzz_below(in, 7));
	if (bytes)
		transmit(fd, "\1\2", bytes, fds, count);
	if (fuzz_below(in, 4))
		shunt_service_step(victim, 0);
	close(fd);
}

static void use_some(void)
{
	struct fuzz_conn *conn = &fuzz_world.conn[fuzz_below(in, 4) % (fuzz_world.conns ?: 1)];
	struct iovec iov = { buffer, 1 + fuzz_byte(in) };
	unsigned int what = fuzz_below(in, 8);
	ssize_t result = 0;
	int side;

	if (!fuzz_world.conns)
		return;
	side = fuzz_world_side(conn, FUZZ_VICTIM);
	if (what < 3)
		result = fuzz_world_send(conn, side, buffer, iov.iov_len, 0);
	else if (what < 6)
		result = fuzz_world_receive(conn, side, buffer, iov.iov_len, 0);
	else if (what == 6)
		fuzz_world_close(conn, fuzz_below(in, 2));
	else
		sim_tcp_send(&conn->sock[!side], &iov, 1);
	fuzz_check(result >= 0 || result == -EAGAIN || result == -EPIPE || result == -ECONNRESET || result == -EBADF ||
		   result == -ENOTCONN || result == -ENOBUFS);
}

static void step(void)
{
	uint8_t what = fuzz_byte(in);

	if (what >= PROVING) {
		prove();
		return;
	}
	switch (what % 13) {
	case 12:
		knock_as_relative();
		break;
	case 0:
		knock();
		break;
	case 1:
		open_door();
		break;
	case 2:
		if (fuzz_below(in, 2))
			fuzz_world_connect(FUZZ_VICTIM, FUZZ_HOSTILE);
		else
			fuzz_world_connect(FUZZ_HOSTILE, FUZZ_VICTIM);
		break;
	case 3: case 4:
		use_some();
		break;
	case 5:
		hear();
		break;
	case 6:
		fuzz_world_turn();
		break;
	case 7:
		sim_clock += 1000000ull << fuzz_below(in, 10);
		break;
	case 8:
		hang_up();
		break;
	default:
		say();
	}
}

/* Mostly there is a link at first: two thirds of what can be said makes no sense before. */
static void begin(void)
{
	uint8_t how = fuzz_byte(in);
	struct shunt_message first;

	fuzz_world.engine[FUZZ_VICTIM]->config.proof = how & 1;
	fuzz_world.engine[FUZZ_VICTIM]->config.retain = how & 1;
	fuzz_world.start = sim_start(how >> 3 & 3, how >> 5);
	fuzz_world_connect(how & 4 ? FUZZ_VICTIM : FUZZ_HOSTILE, how & 4 ? FUZZ_HOSTILE : FUZZ_VICTIM);
	if (how & 4) {
		fuzz_world_send(&fuzz_world.conn[0], 0, buffer, 1, 0);
		fuzz_world_turn();
		open_door();
	} else {
		fuzz_world_receive(&fuzz_world.conn[0], 1, buffer, 1, 0);
		knock();
	}
	if (how & 2 || talker.fd < 0)
		return;
	say_knock(&first);
	transmit(talker.fd, &first, sizeof(first), NULL, 0);
	introduce();
	fuzz_world_turn();
	hear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	in = &input;
	fuzz_world.raw = false;
	talker = (struct talker) { .fd = -1 };
	fuzz_world_begin();
	if (!segment.pd)
		make_segment();
	fuzz_world_begin();
	fuzz_world.raw = true;
	begin();
	for (int i = 0; i < STEPS && fuzz_more(in); i++)
		step();
	hang_up();
	if (blind)
		set_blind(false);
	fuzz_world.raw = false;
	fuzz_world_turn();	/* whoever has come to its rendezvous and was not let in */
	fuzz_world_end();
	return 0;
}
