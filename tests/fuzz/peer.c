/* SPDX-License-Identifier: MIT */
/*
 * The engine and a hostile peer that has a valid link: it claims and is claimed, sends and reads as an engine does.
 * The script changes any field of its messages. It sends messages out of turn and for seats that are not its own, and
 * writes wherever it may write in shared memory. The victim's program goes on using its connections meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/traced.h"
#include "core/wait/epset.h"
#include "tests/fuzz/hostile.h"
#include "tests/inspect.h"
#include "tests/sim/start.h"

#define STEPS 400	/* of a script */
#define RULES "period 100ms; capacity 1Gbit; class all reserve=50% limit=900Mbit"

static struct fuzz_input *in;
static uint8_t buffer[65536];
static bool traced; /* both engines follow each send */

/* --- programs --- */

static bool error_is_fair(ssize_t result)
{
	return result >= 0 || result == -EAGAIN || result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN ||
	       result == -EBADF || result == -ETIMEDOUT || result == -EBUSY || result == -ENOBUFS || result == -ENOMEM;
}

static size_t some_bytes(void)
{
	unsigned int bytes = fuzz_byte(in);

	return bytes < 128 ? bytes + 1 : (bytes - 127) * 512;
}

static void use(struct fuzz_conn *conn, enum fuzz_who who)
{
	int side = fuzz_world_side(conn, who), flags = fuzz_below(in, 8);
	size_t bytes = some_bytes();
	ssize_t result;

	if (flags & 1) {
		result = fuzz_world_send(conn, side, buffer, bytes, flags & 6 ? 0 : MSG_MORE);
	} else {
		flags = flags == 2 ? MSG_PEEK : flags == 4 ? MSG_TRUNC : 0;
		result = fuzz_world_receive(conn, side, buffer, bytes, flags);
	}
	fuzz_check(result <= (ssize_t)bytes && error_is_fair(result));
}

static void ask(struct fuzz_conn *conn)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];
	struct shunt_stream *stream = fuzz_world_stream(conn, FUZZ_VICTIM);
	int fd = conn->fd[fuzz_world_side(conn, FUZZ_VICTIM)];
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP };
	struct epoll_event events[8];
	struct timespec no_time = { 0, 0 };

	if (!stream)
		return;
	switch (fuzz_below(in, 6)) {
	case 0:
		fuzz_check(shunt_wait_poll(victim, &one, 1, &no_time, NULL) >= 0);
		break;
	case 1:
		shunt_epset_ctl(victim, fuzz_world.epfd, EPOLL_CTL_ADD, fd, &(struct epoll_event) {
				.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (fuzz_below(in, 2) ? EPOLLET : 0), .data.fd = fd });
		break;
	case 2:
		fuzz_check(shunt_epset_wait(victim, fuzz_world.epfd, events, 8, &no_time, NULL) >= 0);
		break;
	case 3:
		fuzz_check(shunt_stream_inq(victim, fd, stream) >= 0);
		break;
	case 4:
		shunt_stream_outq(victim, fd, stream);
		break;
	default:
		shunt_stream_take_error(stream);
	}
}

static void end_some(enum fuzz_who who)
{
	struct fuzz_conn *conn = hostile_conn();
	struct shunt_stream *stream = fuzz_world_stream(conn, who);
	int side = fuzz_world_side(conn, who), what = fuzz_below(in, 6), result = 0;

	if (what < 3 && stream)
		result = shunt_stream_shutdown(fuzz_world.engine[who], conn->fd[side], stream, what);
	else if (what == 3 && stream)
		result = shunt_stream_retire(fuzz_world.engine[who], conn->fd[side], stream,
					     SHUNT_CAUSE_SPLICE);
	else if (what > 3)
		fuzz_world_close(conn, side);
	fuzz_check(error_is_fair(result));
}

/* Behind the back of its own engine. */
static void use_tcp(void)
{
	struct fuzz_conn *conn = hostile_conn();
	struct sim_sock *sock = &conn->sock[fuzz_world_side(conn, FUZZ_HOSTILE)];
	struct shunt_stream *stream = fuzz_world_stream(conn, FUZZ_VICTIM);
	struct iovec iov = { buffer, some_bytes() };

	switch (fuzz_below(in, 5)) {
	case 0:
		sim_tcp_send(sock, &iov, 1);
		break;
	case 1:
		sim_tcp_shutdown(sock, SHUT_WR);
		break;
	case 2:
		if (sock->state == SIM_TCP_OPEN)
			sim_tcp_disconnect(sock);
		break;
	case 3:	/* the nonce, or a part of it */
		if (stream)
			sim_tcp_send(sock,
				     &(struct iovec) { (void *)stream_nonce(stream, STREAM_READS),
						       1 + fuzz_below(in, SHUNT_NONCE_BYTES) },
				     1);
		break;
	default:
		sim_tcp_receive(sock, &iov, 1, 0);
	}
}

static void open_some(bool outward)
{
	fuzz_world_connect(outward ? FUZZ_VICTIM : FUZZ_HOSTILE, outward ? FUZZ_HOSTILE : FUZZ_VICTIM);
}

/* A program that has connected, or accepted, says something and closes. */
static void use_birth(enum fuzz_who who, int fd)
{
	struct shunt_engine *engine = fuzz_world.engine[who];
	struct shunt_stream *stream = fd < 0 ? NULL : (struct shunt_stream *)shunt_file(engine, fd);
	struct iovec iov = { buffer, some_bytes() };
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

	if (fd < 0)
		return;
	if (stream && !shunt_stream_is_plain(stream) && fuzz_below(in, 2))
		fuzz_check(error_is_fair(
			shunt_stream_send(engine, fd, stream, &iov, 1, flags)));
	fuzz_world_turn();
	if (stream && !shunt_stream_is_plain(stream))
		fuzz_check(error_is_fair(
			shunt_stream_recv(engine, fd, stream, &iov, 1, MSG_DONTWAIT)));
	shunt_file_closing(engine, fd);
	sim_fd_close(fd);
}

static void be_born(void)
{
	enum fuzz_who who = fuzz_below(in, 2);

	if (fuzz_below(in, 2))
		use_birth(who, fuzz_world_born_connect(who, !who));
	else
		use_birth(who, fuzz_world_born_accept(who));
}

static void step(void)
{
	struct shunt_link *link = fuzz_world_link(FUZZ_HOSTILE);
	unsigned int what = fuzz_below(in, 32);

	if (link && !fuzz_world_qp(link)->peer)
		link = NULL;
	switch (what) {
	case 0 ... 4:
		use(hostile_conn(), FUZZ_VICTIM);
		break;
	case 5 ... 8:
		use(hostile_conn(), FUZZ_HOSTILE);
		break;
	case 9:
		ask(hostile_conn());
		break;
	case 10:
		end_some(FUZZ_VICTIM);
		break;
	case 11:
		end_some(FUZZ_HOSTILE);
		break;
	case 12:
		use_tcp();
		break;
	case 13:
		sim_tcp_deliver(&hostile_conn()->sock[fuzz_below(in, 2)], some_bytes());
		break;
	case 14:
		sim_clock += 1000000ull << fuzz_below(in, 12);
		break;
	case 15:
		open_some(fuzz_below(in, 2));
		break;
	case 16:
		fuzz_world_turn();
		if (fuzz_world.born)
			be_born();
		break;
	case 17: case 18:
		shunt_service_step(fuzz_world.engine[fuzz_below(in, 2)], 0);
		break;
	case 19: case 20:
		shunt_group_poll(&fuzz_world.engine[fuzz_below(in, 2)]->group);
		break;
	case 21:
		hostile_changes_messages();
		break;
	case 22:
		hostile_changes_wrs();
		break;
	case 23:
		fuzz_world_honest(1 + fuzz_byte(in) * 2);
		break;
	case 24:
		if (link)
			soft_qp_fault(link->lanes[0].qp, fuzz_below(in, 4));
		break;
	case 25: case 26:
		if (link)
			hostile_message(link, traced);
		break;
	case 27:
		if (link && traced && fuzz_below(in, 2))
			hostile_record();
		else if (link)
			hostile_scribble(link, false);
		break;
	case 28:
		if (link)
			hostile_scribble(link, true);
		break;
	default:
		if (link)
			hostile_arrival(link);
	}
}

/* The victim's link to the honest peer keeps what it was lent the first time. */
static void set_rules(const char *rules)
{
	static bool lent;
	char error[SHUNT_QOS_ERROR];

	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++)
		fuzz_check(!shunt_qos_set(fuzz_world.engine[who]->service, rules, error,
					  sizeof(error)));
	if (*rules && !lent)
		fuzz_world_grows();
	lent |= *rules != 0;
}

/* Sends are followed, or not; links that are up are asked then. */
static void set_trace(bool on)
{
	static bool followed;

	traced = on;
	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++) {
		struct shunt_engine *engine = fuzz_world.engine[who];

		engine->config.trace = on;
		shunt_traced_config(engine);
		shunt_loop_post(&engine->loop, &engine->loop.requests.trace);
	}
	if (on && !followed)
		fuzz_world_grows();
	followed |= on;
}

/* Modes that a link has from its making: how connections are proved, and others. */
static uint8_t choose_modes(void)
{
	uint8_t modes = fuzz_byte(in);

	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++) {
		struct shunt_config *config = &fuzz_world.engine[who]->config;

		config->proof = modes & 1;
		config->retain = (modes & 2) != 0 || config->proof;
		config->inline_bytes = modes & 4 ? 64 : 1 << 20;
		config->mr_threshold = modes & 8 ? 8192 : 0;
		config->flip_bytes = modes & 16 && who == FUZZ_VICTIM ? 100 : 0;
		config->batch = modes >> 5 & 3;
	}
	/* The second says nothing more where there is a proof. */
	set_rules((modes & 3) == 3 ? RULES : "");
	set_trace((modes & 12) == 12);
	return modes;
}

/* Both ends have agreed to carry the first connection, unless the script wants something else. */
static void get_linked(void)
{
	static const uint16_t before[] = { 30, 300, 5000, 50000 };
	uint8_t how = fuzz_byte(in);

	fuzz_world.start = sim_start(how >> 4 & 3, before[how >> 6]);
	fuzz_world.born = (how >> 4 & 3) == 3;	/* which begins at 0 */
	for (enum fuzz_who who = FUZZ_VICTIM; who <= FUZZ_HOSTILE; who++)
		fuzz_world.engine[who]->config.born = fuzz_world.born;
	open_some(how & 1);
	if (how & 2)
		open_some(how & 1);
	for (int i = 0; i < (how >> 2 & 3) + 2; i++) {
		for (int c = 0; c < fuzz_world.conns; c++) {
			fuzz_world_send(&fuzz_world.conn[c], 0, buffer, 10, 0);
			fuzz_world_send(&fuzz_world.conn[c], 1, buffer, 10, 0);
		}
		fuzz_world_turn();
	}
}

/* Both programs read all that the first connection has brought, and close it: it rests. */
static void get_spare(void)
{
	struct fuzz_conn *conn = &fuzz_world.conn[0];
	int first = (int)fuzz_below(in, 2);

	for (int i = 0; i < 10; i++)
		for (int side = 0; side < 2; side++) {
			fuzz_world_send(conn, side, buffer, 10, 0);
			fuzz_world_turn();
			while (fuzz_world_receive(conn, !side, buffer, sizeof(buffer), 0) > 0)
				;
		}
	for (int i = 0; i < 2; i++) {
		fuzz_world_close(conn, first ^ i);
		for (int n = 0; n < 4; n++)
			fuzz_world_turn();
	}
}

/*
 * Of what the victim sends: as if the link had carried 4 GiB by now. True: done for a stream, whose
 * upgrade has been passed.
 */
static bool age(void)
{
	bool some = false;

	for (int c = 0; c < fuzz_world.conns; c++) {
		struct shunt_stream *stream = fuzz_world_stream(&fuzz_world.conn[c], FUZZ_VICTIM);
		uint64_t from = stream ? stream_offset(stream, STREAM_UPGRADED) : 0;

		if (!stream || !stream_age(stream, 1ull << 32))
			continue;
		if (stream_offset(stream, STREAM_PEER_READ) < from)
			stream_peer_has_read(stream, from);
		some = true;
	}
	return some;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };
	uint8_t modes;

	in = &input;
	hostile_begin(in);
	modes = choose_modes();
	get_linked();
	if (fuzz_world.born)
		get_spare();
	for (int i = 0; i < STEPS && fuzz_more(in); i++) {
		if (modes & 128 && age())
			modes = 0;
		step();
	}
	hostile_is_honest();
	set_rules("");
	set_trace(false);
	fuzz_world_end();
	return 0;
}
