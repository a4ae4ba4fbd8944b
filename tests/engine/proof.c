/* SPDX-License-Identifier: MIT */
/*
 * Between hosts each end shows a nonce in the TCP stream before the link carries a byte. Tested:
 * the order of the two proofs, streams that end under way, and peers that cheat.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/device/soft/soft.h"
#include "core/peer/fork_owner.h"
#include "core/lane/roster.h"
#include "core/peer/link_end.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/retire.h"

enum { CLAIMANT, ACCEPTOR };	/* sides, and engines */

static struct side *side_of(int i)
{
	return &bed.pair[0].side[i];
}

static void step(int i)
{
	shunt_service_step(engines[i], 0);
	shunt_group_poll_fully(&engines[i]->group);
}

static void make_pair(bool retain)
{
	struct shunt_config config = small_config(HYBRID);

	config.proof = 1;
	config.retain = retain;
	config.return_ms = 0;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
}

static uint8_t proof(int i)
{
	return stream_proof(stream_of(side_of(i)));
}

static uint8_t show(int i)
{
	return stream_show(stream_of(side_of(i)));
}

/* Both programs use the connection, so it is claimed: no byte is under way then. */
static void begin(void)
{
	put(0, 0, 10, 0);
	put(0, 1, 10, 0);
	get(0, 0, BUFFER);
	get(0, 1, BUFFER);
}

/* Until end `i` has asked for the peer's nonce, and the peer has not heard of it. */
static struct shunt_stream *until_expected(int i)
{
	begin();
	for (int n = 0; n < 1000; n++) {
		step(!i);
		step(i);
		if (proof(i) == SHUNT_EXPECTED)
			return stream_of(side_of(i));
	}
	fail_msg("end %d never expects a nonce", i);
	return NULL;
}

static int kernel_state(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	return info.tcpi_state;
}

static ssize_t read_byte(int i)
{
	char byte;

	return receive_some(side_of(i), &byte, 1, MSG_DONTWAIT);
}

/* --- the order --- */

static void assert_order(void)
{
	struct shunt_stream *stream[2] = { stream_of(side_of(0)), stream_of(side_of(1)) };
	bool complete = true;

	for (int i = 0; i < 2; i++)
		complete = complete && show(i) == SHUNT_SHOWN && proof(i) == SHUNT_PROVEN;
	if (stream[0]->seat->link && proof(CLAIMANT) == SHUNT_UNPROVEN)
		assert_true(show(CLAIMANT) == SHUNT_OWED &&
			    !stream_nonce_moved(stream[0], STREAM_SHOWS));
	for (int i = 0; i < 2; i++) {
		if (stream_switches_announced(stream[i]))
			assert_true(shunt_proof_is_complete(stream[i]));
		/* The peer of an end that is complete has read its nonce, and shown its own. */
		if (!complete && stream_switches_announced(stream[i]))
			assert_true(proof(!i) == SHUNT_PROVEN && show(!i) == SHUNT_WRITTEN);
	}
}

/* The acceptor shows first, and nothing goes to the link before both have; then both directions do, and nothing is lost. */
void nothing_goes_before_the_proof(void **state)
{
	bool order[2] = { false, false };

	(void)state;
	make_pair(true);
	for (int n = 0; n < 1000000 && !(on_link(side_of(0)) && on_link(side_of(1))); n++) {
		put(0, n % 2, 7, 0);
		get(0, 0, 5);
		get(0, 1, 6);
		assert_order();
		step(n / 2 % 2);
		assert_order();
		order[0] = order[0] ||
			   (proof(CLAIMANT) == SHUNT_PROVEN && show(CLAIMANT) == SHUNT_PLACED);
		order[1] = order[1] ||
			   (show(ACCEPTOR) == SHUNT_SHOWN && proof(ACCEPTOR) == SHUNT_EXPECTED);
	}
	assert_true(order[0] && order[1]);
	assert_true(on_link(side_of(0)) && on_link(side_of(1)));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(stream_nonce_moved(stream_of(side_of(i)), STREAM_SHOWS),
				 SHUNT_NONCE_BYTES);
		assert_int_equal(stream_nonce_moved(stream_of(side_of(i)), STREAM_READS),
				 SHUNT_NONCE_BYTES);
	}
	all_arrived();
	leave_bed();
}

/* From NONCE to EXPECT the sender's program waits, and goes on behind it though the nonce is not read. */
void a_sender_waits_for_the_question_only(void **state)
{
	int unsent = -1;

	(void)state;
	make_pair(true);
	until_expected(CLAIMANT);
	assert_int_equal(show(ACCEPTOR), SHUNT_PLACED);
	assert_int_equal(put(0, ACCEPTOR, 100, 0), 0);
	step(ACCEPTOR);
	assert_int_equal(show(ACCEPTOR), SHUNT_WRITTEN);
	assert_int_equal(put(0, ACCEPTOR, 100, 0), 100);
	unsent = shunt_stream_inq(engines[0], side_of(0)->fd, stream_of(side_of(0)));
	assert_int_equal(unsent, 100);	/* of the program's bytes, without the nonce */
	assert_int_equal(get(0, ACCEPTOR, BUFFER), 100);
	assert_int_equal(proof(CLAIMANT), SHUNT_PROVEN);
	all_arrived();
	leave_bed();
}

/* --- who else reads --- */

static bool is_answered(int fd)
{
	return poll(&(struct pollfd) { .fd = fd, .events = POLLIN }, 1, 0) > 0;
}

/* A fork's child asks its parent for it just then: it is answered when the nonce has been read, not before. */
void a_child_waits_for_the_nonce(void **state)
{
	struct shunt_stream *stream;
	int ends[2];

	(void)state;
	make_pair(false);
	stream = until_expected(CLAIMANT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	shunt_streams_hold(stream);
	shunt_fork_owner_asked(engines[0], stream, ends[0]);
	for (int i = 0; i < 10; i++)
		step(0);
	assert_false(is_answered(ends[1]));
	for (int i = 0; i < 1000 && !is_answered(ends[1]); i++)
		turn();
	assert_true(is_answered(ends[1]));
	assert_int_equal(stream_retiring(stream), SHUNT_RETIRED);
	close(ends[1]);
	put(0, 1, 1000, 0);
	all_arrived();	/* and nothing else */
	leave_bed();
}

/* The sender of a nonce that has not been written is handed on: the nonce never comes. */
void a_nonce_is_withdrawn(void **state)
{
	struct shunt_stream *stream;

	(void)state;
	make_pair(true);
	until_expected(CLAIMANT);
	stream = stream_of(side_of(1));
	shunt_retire_begin(engines[1], stream, SHUNT_CAUSE_SPLICE);
	assert_int_equal(show(ACCEPTOR), SHUNT_WITHDRAWN);
	for (int n = 0; n < 10 && stream_retiring(stream) == SHUNT_RETIRING; n++)
		turn();
	assert_int_equal(stream_retiring(stream), SHUNT_RETIRED);
	assert_int_equal(proof(CLAIMANT), SHUNT_DISPROVEN);
	put(0, 1, 1000, 0);
	put(0, 0, 1000, 0);
	all_arrived();
	assert_int_equal(stream_nonce_moved(stream, STREAM_SHOWS), 0);
	assert_int_equal(stream_nonce_moved(stream_of(side_of(0)), STREAM_SHOWS), 0);
	leave_bed();
}

/* --- ends --- */

/* The program of the sender ends its direction, or closes, when the place has been said: TCP ends there, in order. */
void an_end_before_the_question(void **state)
{
	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		make_pair(true);
		until_expected(CLAIMANT);
		if (closes)
			close_side(side_of(1));
		else
			assert_int_equal(shunt_stream_shutdown(engines[1], side_of(1)->fd,
							       stream_of(side_of(1)), SHUT_WR),
					 0);
		for (int i = 0; i < 10; i++)
			turn();
		assert_int_equal(proof(CLAIMANT), SHUNT_DISPROVEN);
		assert_int_equal(read_byte(0), 0);
		if (!closes) {
			put(0, 0, 1000, 0);
			all_arrived();
			close_side(side_of(1));
		}
		close_side(side_of(0));
		leave_closed_bed();
	}
}

static bool no_room;	/* of TCP */

static ssize_t send_if_room(int fd, const struct msghdr *message, int flags)
{
	socklen_t length = sizeof(int);
	int domain;

	if (!no_room || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) ||
	    domain != AF_INET)
		return sendmsg(fd, message, flags);
	errno = EAGAIN;
	return -1;
}

static void hook_sends(int i)
{
	static struct shunt_sys passing;

	passing = *engines[i]->sys;
	passing.sendmsg = send_if_room;
	shunt_engine_surround(engines[i], &passing);
	no_room = false;
}

/* The nonce waits for room, and the program ends its direction; the queue pair dies, too, or not. */
static void end_behind(bool dies)
{
	struct shunt_stream *stream;

	make_pair(true);
	hook_sends(1);
	until_expected(CLAIMANT);
	stream = stream_of(side_of(1));
	no_room = true;
	step(1);
	assert_int_equal(show(ACCEPTOR), SHUNT_WRITTEN);
	assert_true(stream_resends(stream));
	assert_int_equal(put(0, 1, 1000, 0), 0);
	assert_int_equal(shunt_stream_shutdown(engines[1], side_of(1)->fd, stream, SHUT_WR), 0);
	assert_int_equal(kernel_state(side_of(1)->fd), TCP_ESTABLISHED);
	if (dies)
		shunt_link_fail(stream_link(stream), "the test");
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(read_byte(0), -EAGAIN);
	no_room = false;
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(proof(CLAIMANT), SHUNT_PROVEN);
	assert_int_equal(read_byte(0), 0);
	put(0, 0, 1000, 0);
	all_arrived();
	leave_bed();
	assert_int_equal(stream_state(stream), SHUNT_UNUSED);
}

void an_end_behind_a_nonce_loses_nothing(void **state)
{
	(void)state;
	end_behind(false);
	end_behind(true);
}

/*
 * The reader's program ends both directions while the nonce is on its way, in one of three ways. The kernel would answer
 * it with a reset, and drop what the program has sent: its end of reading comes behind the nonce.
 */
static void end_before_the_nonce(int how)
{
	struct shunt_stream *reader;

	make_pair(true);
	reader = until_expected(CLAIMANT);
	put(0, 0, 5000, 0);
	if (how == 1)
		assert_int_equal(
			shunt_stream_shutdown(engines[0], side_of(0)->fd, reader, SHUT_RDWR), 0);
	for (int i = 0; how == 2 && i < 2; i++)	/* said twice */
		assert_int_equal(shunt_stream_shutdown(engines[0], side_of(0)->fd, reader, SHUT_RD),
				 0);
	close_side(side_of(0));
	assert_true(stream_proof_fd(reader) >= 0);
	step(1);	/* writes it */
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(stream_proof_fd(reader), -1);
	assert_int_equal(kernel_state(side_of(1)->fd), TCP_CLOSE_WAIT);
	while (get(0, 0, BUFFER))
		;
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	assert_int_equal(read_byte(1), 0);
	close_side(side_of(1));
	leave_closed_bed();
	assert_int_equal(stream_state(reader), SHUNT_UNUSED);
}

void a_late_nonce_is_not_reset(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++)
		end_before_the_nonce(how);
}

/* A reader that has ended takes no nonce out: the stream stays on TCP, and its sender does not wait. */
void who_does_not_read_asks_for_no_nonce(void **state)
{
	(void)state;
	make_pair(true);
	begin();
	assert_int_equal(
		shunt_stream_shutdown(engines[0], side_of(0)->fd, stream_of(side_of(0)), SHUT_RD),
		0);
	for (int n = 0; n < 1000 && show(ACCEPTOR) != SHUNT_WITHDRAWN; n++)
		turn();
	assert_int_equal(show(ACCEPTOR), SHUNT_WITHDRAWN);
	assert_int_equal(proof(CLAIMANT), SHUNT_DISPROVEN);
	put(0, 0, 1000, 0);
	assert_int_equal(put(0, 1, 10, 0), 10);
	for (int n = 0; n < 100; n++) {
		get(0, 0, BUFFER);
		turn();
	}
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	assert_int_equal(stream_switches_announced(stream_of(side_of(0))), 0);
	leave_bed();
}

/* TCP ends within what may be the nonce or the program's bytes: an error, no orderly end without them. */
static ssize_t end_within(size_t bytes, uint8_t differs)
{
	uint8_t part[SHUNT_NONCE_BYTES];
	struct shunt_stream *stream;
	ssize_t got;

	make_pair(false);
	stream = until_expected(CLAIMANT);
	memcpy(part, stream_nonce(stream, STREAM_READS), sizeof(part));
	part[bytes - 1] ^= differs;
	assert_int_equal(send(side_of(1)->fd, part, bytes, 0), bytes);
	assert_int_equal(shutdown(side_of(1)->fd, SHUT_WR), 0);
	step(0);
	got = receive_some(side_of(0), part, sizeof(part), MSG_DONTWAIT);
	if (got == (ssize_t)bytes)
		assert_int_equal(read_byte(0), 0);
	leave_bed();
	return got;
}

void an_end_within_the_nonce_is_an_error(void **state)
{
	(void)state;
	for (size_t bytes = 1; bytes < SHUNT_NONCE_BYTES; bytes += 7) {
		assert_int_equal(end_within(bytes, 0), -ECONNRESET);
		assert_int_equal(end_within(bytes, 1), bytes);
	}
}

/* --- links that die --- */

/* Whatever has been said and not: TCP goes on, and has everything. `steps`: how far the proofs have come. */
static void die_after(int steps, bool whole, int by)
{
	make_pair(true);
	begin();
	for (int n = 0; n < 1000 && !stream_link(stream_of(side_of(1))); n++)
		turn();
	for (int n = 0; n < steps; n++) {
		put(0, n / 2 % 2, 10, 0);
		step((n + by) % 2);
	}
	if (!stream_link(stream_of(side_of(by)))) {
		leave_bed();
		return;
	}
	if (whole)
		role_kill_link(stream_link(stream_of(side_of(by))), "the test");
	else
		shunt_link_fail(stream_link(stream_of(side_of(by))), "the test");
	for (int n = 0; n < 10; n++) {
		turn();
		get(0, 0, BUFFER);
		get(0, 1, BUFFER);
	}
	put(0, 0, 1000, 0);
	put(0, 1, 1000, 0);
	for (int n = 0; n < 100; n++) {
		turn();
		get(0, 0, BUFFER);
		get(0, 1, BUFFER);
	}
	for (int i = 0; i < 2 && !whole; i++)
		assert_int_equal(bed.received[0][i], bed.sent[0][i]);
	leave_bed();
}

void a_link_dies_at_each_step(void **state)
{
	(void)state;
	for (int steps = 0; steps < 16; steps++)
		die_after(steps, false, steps % 2);
	for (int steps = 0; steps < 6; steps++)	/* before anything is on the link, nothing is lost with it */
		die_after(steps, true, steps % 2);
}

/* The link is gone without a nonce, and TCP brings `more` at its place, and ends: that was all. */
static void end_without(const char *more)
{
	struct shunt_stream *stream;
	char bytes[200];

	make_pair(true);
	stream = until_expected(CLAIMANT);
	role_kill_link(stream_link(stream), "the test");
	assert_int_equal(send(side_of(1)->fd, more, strlen(more), 0), strlen(more));
	shutdown(side_of(1)->fd, SHUT_WR);
	if (*more)
		assert_int_equal(receive_some(side_of(0), bytes, sizeof(bytes), MSG_DONTWAIT),
				 strlen(more));
	assert_int_equal(receive_some(side_of(0), bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	assert_int_equal(proof(CLAIMANT), SHUNT_DISPROVEN);
	leave_bed();
}

void an_end_without_the_nonce(void **state)
{
	(void)state;
	end_without("");
	end_without("as long as a nonce, and then some");
	end_without("short");
}

/* --- cheats --- */

/* A peer that shows anything else, also the nonce that it is to read itself: the bytes are the program's. */
void a_reflected_nonce_proves_nothing(void **state)
{
	struct shunt_stream *stream;
	uint8_t bytes[SHUNT_NONCE_BYTES];

	(void)state;
	make_pair(true);
	stream = until_expected(CLAIMANT);
	assert_memory_not_equal(stream_nonce(stream, STREAM_SHOWS),
				stream_nonce(stream, STREAM_READS), sizeof(bytes));
	assert_memory_equal(stream_nonce(stream, STREAM_SHOWS),
			    stream_nonce(stream_of(side_of(1)), STREAM_READS), sizeof(bytes));
	assert_int_equal(send(side_of(1)->fd, stream_nonce(stream, STREAM_SHOWS), sizeof(bytes), 0),
			 sizeof(bytes));
	step(0);
	assert_int_equal(proof(CLAIMANT), SHUNT_DISPROVEN);
	assert_int_equal(receive_some(side_of(0), bytes, sizeof(bytes), MSG_DONTWAIT),
			 sizeof(bytes));
	assert_memory_equal(stream_nonce(stream, STREAM_SHOWS), bytes, sizeof(bytes));
	assert_int_equal(stream_nonce_moved(stream, STREAM_READS), 0);
	leave_bed();
}

/* No two claims have the same nonces, on one link or another: what has been seen is good for nothing. */
void no_nonce_comes_twice(void **state)
{
	uint8_t seen[3][2][SHUNT_NONCE_BYTES];

	(void)state;
	for (int n = 0; n < 3; n++) {
		struct shunt_stream *stream;

		make_pair(true);
		stream = until_expected(CLAIMANT);
		memcpy(seen[n][0], stream_nonce(stream, STREAM_READS), sizeof(seen[n][0]));
		memcpy(seen[n][1], stream_nonce(stream, STREAM_SHOWS), sizeof(seen[n][1]));
		leave_bed();
		for (int i = 0; i < n; i++)
			for (int k = 0; k < 4; k++)
				assert_memory_not_equal(seen[i][k / 2], seen[n][k % 2],
							SHUNT_NONCE_BYTES);
	}
}

/* Announcements of a peer that has not shown what it has to. */
static void cheat(void (*how)(struct shunt_stream *cheat), int by)
{
	make_pair(true);
	begin();
	for (int n = 0;
	     n < 1000 && !(stream_link(stream_of(side_of(0))) && show(ACCEPTOR) == SHUNT_PLACED);
	     n++)
		step(n % 2);
	assert_int_equal(atomic_load(&engines[!by]->links.distrusted), 0);
	how(stream_of(side_of(by)));
	for (int n = 0; n < 10; n++)
		turn();
	assert_int_equal(atomic_load(&engines[!by]->links.distrusted), 1);
	drain();
	for (int i = 0; i < 2; i++)
		assert_int_equal(bed.received[0][i], bed.sent[0][i]);
	leave_bed();
}

static void says_nonce(struct shunt_stream *cheat)
{
	struct shunt_message message = { .type = SHUNT_MSG_NONCE, .stream = cheat->seat->peer_id };

	message.nonce.offset = stream_offset(cheat, STREAM_SENT);
	shunt_link_send(stream_link(cheat), &message, NULL, 0);
}

static void says_proven(struct shunt_stream *cheat)
{
	struct shunt_message message = { .type = SHUNT_MSG_PROVEN, .stream = cheat->seat->peer_id };

	shunt_link_send(stream_link(cheat), &message, NULL, 0);
}

void who_has_not_shown_announces_nothing(void **state)
{
	(void)state;
	cheat(stream_announce_upgrade_only, CLAIMANT);
	cheat(stream_announce_end, CLAIMANT);
	cheat(says_nonce, CLAIMANT);	/* before it has read the acceptor's */
	cheat(says_proven, CLAIMANT);
	cheat(says_nonce, ACCEPTOR);	/* twice */
}

/* --- descriptors --- */

static bool (*before_copy)(int fd);	/* false: there is no descriptor for it */

static int hooked_fcntl(int fd, int command, ...)
{
	va_list args;
	int value;

	va_start(args, command);
	value = va_arg(args, int);
	va_end(args);
	if (command != F_DUPFD_CLOEXEC || !before_copy || before_copy(fd))
		return fcntl(fd, command, value);
	errno = EMFILE;
	return -1;
}

static void hook_copies(int engine, bool (*then)(int fd))
{
	static struct shunt_sys sys;

	sys = *engines[engine]->sys;
	sys.fcntl = hooked_fcntl;
	shunt_engine_surround(engines[engine], &sys);
	before_copy = then;
}

static struct shunt_stream *named;	/* by two numbers, of which one is closed meanwhile */
static int closed_number;
static _Atomic bool closed;
static pthread_t closer;

static void *close_it(void *engine)
{
	shunt_file_closing(engine, closed_number);
	close(closed_number);
	atomic_store(&closed, true);
	return NULL;
}

static bool close_meanwhile(int fd)
{
	if (fd != closed_number || atomic_load(&closed))
		return true;
	assert_int_equal(pthread_create(&closer, NULL, close_it, engines[0]), 0);
	while (atomic_load(&stream_reader_lock(named)->word) != 2 &&
	       !atomic_load(&closed)) /* until it sleeps */
		sched_yield();
	assert_false(atomic_load(&closed));
	return true;
}

/* The service thread copies a connection's descriptor while the program closes it; it has another. */
void a_number_in_use_is_not_closed(void **state)
{
	struct side *side = bed.pair[0].side;
	struct stat copy, other;

	(void)state;
	make_pair(false);
	named = stream_of(&side[0]);
	closed_number = side[0].fd;
	closed = false;
	side[0].fd = dup(closed_number);
	shunt_file_duplicated(engines[0], closed_number, side[0].fd);
	hook_copies(0, close_meanwhile);
	until_expected(CLAIMANT);
	assert_int_equal(pthread_join(closer, NULL), 0);
	assert_true(closed);
	assert_int_equal(fstat(stream_proof_fd(named), &copy) | fstat(side[0].fd, &other), 0);
	assert_int_equal(copy.st_ino, other.st_ino);
	assert_int_equal(named->fd, side[0].fd);
	before_copy = NULL;
	put(0, 1, 1000, 0);
	all_arrived();
	leave_bed();
}

static bool no_descriptor(int fd)
{
	(void)fd;
	return false;
}

/* Nothing to wait for the nonce with: the stream stays on TCP. */
void without_a_descriptor_no_nonce(void **state)
{
	(void)state;
	make_pair(true);
	hook_copies(0, NULL);
	begin();
	for (int n = 0; n < 1000 && !stream_link(stream_of(side_of(0))); n++)
		turn();
	before_copy = no_descriptor;
	for (int n = 0; n < 1000 && show(ACCEPTOR) != SHUNT_WITHDRAWN; n++)
		turn();
	assert_int_equal(show(ACCEPTOR), SHUNT_WITHDRAWN);
	before_copy = NULL;
	put(0, 0, 1000, 0);
	put(0, 1, 1000, 0);
	all_arrived();
	leave_bed();
}

/* The connecting end has said all on the link, which has not arrived, and ends without a descriptor for later. */
static void end_without_descriptor(void)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;

	config.retain = 1;
	make_bed(&config, 1);
	hook_copies(0, NULL);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	put(0, 0, 1000, 0);
	before_copy = no_descriptor;
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, stream_of(&side[0]), SHUT_WR), 0);
	assert_int_equal(kernel_state(side[0].fd), TCP_ESTABLISHED);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
	for (int n = 0; bed.received[0][0] < bed.sent[0][0]; n++) {
		assert_true(n < 1000);
		step(0);
		step(1);
		get(0, 0, BUFFER);
	}
	assert_int_equal(kernel_state(side[0].fd), TCP_ESTABLISHED);
}

/* It is said when there is one. */
void an_end_waits_for_a_descriptor(void **state)
{
	struct side *side = bed.pair[0].side;
	char byte;

	(void)state;
	end_without_descriptor();
	before_copy = NULL;
	pair_skew += 10000000;	/* so soon it is looked for again */
	for (int n = 0; n < 1000 && kernel_state(side[0].fd) == TCP_ESTABLISHED; n++)
		step(0);
	assert_int_not_equal(kernel_state(side[0].fd), TCP_ESTABLISHED);
	assert_int_equal(receive_some(&side[1], &byte, 1, 0), 0);
	leave_bed();
}

/* Or when the program closes; another process may have the socket, too, and keep it from ending by that. */
void an_end_waits_no_longer_than_the_program(void **state)
{
	struct side *side = bed.pair[0].side;
	int others;

	(void)state;
	end_without_descriptor();
	others = dup(side[0].fd);
	close_side(&side[0]);
	assert_int_not_equal(kernel_state(others), TCP_ESTABLISHED);
	close(others);
	before_copy = NULL;
	close_side(&side[1]);
	leave_closed_bed();
}
