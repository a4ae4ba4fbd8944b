/* SPDX-License-Identifier: MIT */
/* Across hosts a nonce stands in the TCP stream for a moment: what another owner of the socket finds. */
#include "tests/sim/bed.h"
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
#include "core/fork/fork_handover.h"
#include "core/lane/roster.h"
#include "core/peer/link_end.h"
#include "core/service.h"

static void step(int i)
{
	shunt_service_step(engines[i], 0);
	shunt_group_poll_fully(engines[i]);
}

/* Until the accepting end has asked for the nonce, and the other has not heard of it. */
static struct shunt_stream *until_expected(void)
{
	for (int n = 0; n < 10000; n++) {
		struct shunt_stream *stream = stream_of(&bed.pair[0].side[1]);

		put(0, 0, 1, 0);
		step(0);
		get(0, 0, BUFFER);
		if (atomic_load(&stream->rx.proof) == SHUNT_EXPECTED)
			return stream;
		step(1);
		if (atomic_load(&stream->rx.proof) == SHUNT_EXPECTED)
			return stream;
	}
	fail_msg("the accepting end never expects a nonce");
	return NULL;
}

/* Until end `to` has heard where the link begins, and has not asked yet. */
static struct shunt_stream *until_announced(int to)
{
	for (int n = 0; n < 10000; n++) {
		struct shunt_stream *stream = stream_of(&bed.pair[0].side[to]);

		put(0, to, 1, 0);	/* both begin; the accepting end's direction waits for the other's proof */
		get(0, to, BUFFER);
		put(0, !to, 1, 0);
		step(!to);
		shunt_lock_take(&stream->rx.lock);	/* somebody is reading */
		shunt_group_poll_fully(engines[to]);
		shunt_lock_leave(&stream->rx.lock);
		if (atomic_load(&stream->rx.proof) == SHUNT_UNPROVEN && atomic_load(&stream->rx.boundary) != SHUNT_NEVER)
			return stream;
		get(0, !to, BUFFER);
		step(to);
	}
	fail_msg("end %d never hears of the link", to);
	return NULL;
}

/* Nothing is left to do for an engine whose process ends. */
static bool is_idle(int i)
{
	bool served;

	shunt_group_poll_fully(engines[i]);
	return shunt_roster_idle(engines[i], &served);
}

static bool is_answered(int fd)
{
	return poll(&(struct pollfd) { .fd = fd, .events = POLLIN }, 1, 0) > 0;
}

/*
 * A fork's child asks its parent for it just then: it is answered when the nonce has been read, not
 * before.
 */
void a_child_waits_for_the_nonce(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	int ends[2];

	(void)state;
	config.proof = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = until_expected();
	get(0, 0, BUFFER);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	shunt_streams_hold(stream);
	shunt_fork_handover_asked(engines[1], stream, ends[0]);
	for (int i = 0; i < 10; i++)
		step(1);
	assert_false(is_answered(ends[1]));
	for (int i = 0; i < 1000 && !is_answered(ends[1]); i++)
		turn();
	assert_true(is_answered(ends[1]));
	assert_int_equal(atomic_load(&stream->retiring), SHUNT_RETIRED);
	close(ends[1]);
	put(0, 0, 1000, 0);
	all_arrived();	/* and nothing else */
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	turn();
	turn();
}

/*
 * Until the connecting end, whose own direction is on the link, has asked for the nonce. It reads `part` bytes of two;
 * the other has not heard of it.
 */
static struct shunt_stream *until_connector_expects(size_t part)
{
	struct shunt_stream *stream = stream_of(&bed.pair[0].side[0]);

	for (int n = 0; n < 10000; n++) {
		put(0, 0, 1, 0);
		put(0, 1, 2, 0);
		step(1);
		step(0);
		get(0, 0, BUFFER);
		get(0, 1, part);
		if (atomic_load(&stream->rx.proof) == SHUNT_EXPECTED && stream->tx.track == SHUNT_LINK)
			return stream;
	}
	fail_msg("the connecting end never expects a nonce");
	return NULL;
}

/* The kernel's end waits for the nonce where the program has ended both directions; not if nobody will come to it. */
static void end_before_the_nonce(size_t part)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream;
	struct shunt_link *link;
	int kept;

	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = until_connector_expects(part);
	link = stream->link;
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, stream, SHUT_RDWR), 0);
	kept = stream->tx.end_fd;
	assert_true(kept >= 0);
	close_side(&side[0]);
	step(1);	/* the nonce is on its way */
	close_side(&side[1]);
	for (int i = 0; i < 10; i++) {	/* only the link is looked at */
		shunt_group_poll_fully(engines[0]);
		shunt_group_poll_fully(engines[1]);
		shunt_streams_reap(engines[0]);
	}
	assert_true(link->seated || fcntl(kept, F_GETFD) < 0);	/* who waits has its lane */
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(fcntl(kept, F_GETFD), -1);
	assert_int_equal(link->seated, 0);
}

void an_end_waits_for_the_nonce_that_will_be_read(void **state)
{
	(void)state;
	end_before_the_nonce(BUFFER);
	end_before_the_nonce(1);
}

/* The connecting end has announced its upgrade, and its kernel socket has no room for a nonce. */
static struct shunt_stream *until_announced_behind_full_socket(void)
{
	struct side *side = &bed.pair[0].side[0];
	struct shunt_stream *stream = stream_of(side);
	int bytes = 4096;

	assert_int_equal(setsockopt(side->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	while (put(0, 0, BUFFER, 0))
		;
	get(0, 0, 1);
	for (int n = 0; n < 10000 && stream->tx.track != SHUNT_LINK; n++) {
		step(0);
		step(1);
	}
	assert_int_equal(stream->tx.track, SHUNT_LINK);
	return stream;
}

static void until_asked(struct shunt_stream *stream)
{
	for (int n = 0; n < 10 && !stream->tx.resend; n++) {
		step(1);
		step(0);
	}
	assert_non_null(stream->tx.resend);
}

/* The program ends its direction while the nonce waits for room, or before it has been asked for; then the QP dies. */
static void end_and_die(bool asked_first)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream;
	int ours[2];
	char byte;

	config.proof = config.retain = 1;
	config.return_ms = 0;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = until_announced_behind_full_socket();
	if (asked_first)
		until_asked(stream);
	soft_qp_fault(stream->lane->qp, SOFT_FAULT_STALL);
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, stream, SHUT_WR), 0);
	until_asked(stream);
	ours[0] = stream->tx.end_fd;
	ours[1] = stream->resend_fd;
	soft_qp_fault(stream->lane->qp, SOFT_FAULT_KILL);
	for (int n = 0; n < 10 && !stream->tx.resend_fin; n++)	/* what the peer lacks comes behind the nonce */
		turn();
	assert_true(stream->tx.resend_fin);
	for (int n = 0; n < 1000 && bed.received[0][0] < bed.sent[0][0]; n++)
		drain();
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	for (int n = 0; n < 1000 && receive_some(&side[1], &byte, 1, MSG_DONTWAIT); n++)
		turn();
	assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), 0);
	for (int i = 0; i < 2; i++)
		assert_true(ours[i] >= 0 && fcntl(ours[i], F_GETFD) < 0);
	close_side(&side[0]);
	close_side(&side[1]);
	for (int i = 0; i < 10; i++)
		turn();
	assert_false(stream->in_use);
}

void an_end_behind_a_nonce_loses_nothing(void **state)
{
	(void)state;
	end_and_die(true);
	end_and_die(false);
}

/* It has said all on the link, and the nonce is to follow when it is asked for: without, none of it would count. */
void an_end_waits_for_the_question(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	until_expected();
	put(0, 0, 1000, 0);
	get(0, 1, BUFFER);
	close_side(&bed.pair[0].side[0]);
	assert_false(is_idle(0));
	step(0);
	assert_true(is_idle(0));
	for (int n = 0; bed.received[0][0] < bed.sent[0][0]; n++) {
		assert_true(n < 1000);
		step(1);
		get(0, 0, BUFFER);
	}
	close_side(&bed.pair[0].side[1]);
	turn();
	turn();
}

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
	engines[engine]->sys = &sys;
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
	assert_int_equal(pthread_create(&closer, NULL, close_it, engines[1]), 0);
	while (atomic_load(&named->rx.lock.word) != 2 && !atomic_load(&closed))	/* until it sleeps */
		sched_yield();
	assert_false(atomic_load(&closed));
	return true;
}

/* The service thread copies a connection's descriptor while the program closes it; it has another. */
void a_number_in_use_is_not_closed(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct stat copy, other;

	(void)state;
	config.proof = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	named = stream_of(&side[1]);
	closed_number = side[1].fd;
	closed = false;
	side[1].fd = dup(closed_number);
	shunt_file_duplicated(engines[1], closed_number, side[1].fd);
	hook_copies(1, close_meanwhile);
	until_expected();
	assert_int_equal(pthread_join(closer, NULL), 0);
	assert_true(closed);
	assert_int_equal(fstat(named->rx.proof_fd, &copy) | fstat(side[1].fd, &other), 0);
	assert_int_equal(copy.st_ino, other.st_ino);
	assert_int_equal(named->fd, side[1].fd);
	before_copy = NULL;
	put(0, 0, 1000, 0);
	all_arrived();
	close_side(&side[0]);
	close_side(&side[1]);
	turn();
	turn();
}

static int kernel_state(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	return info.tcpi_state;
}

/* The program has ended reading before there was a link, and says so again while the nonce is expected. */
void an_end_of_reading_is_said_twice(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream;
	char byte;

	(void)state;
	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = stream_of(&side[1]);
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, stream, SHUT_RD), 0);
	for (int n = 0; atomic_load(&stream->rx.proof) != SHUNT_EXPECTED; n++) {
		assert_true(n < 10000);
		receive_some(&side[0], &byte, 1, MSG_DONTWAIT);
		receive_some(&side[1], &byte, 1, MSG_DONTWAIT);
		step(0);
		if (atomic_load(&stream->rx.proof) != SHUNT_EXPECTED)
			step(1);
	}
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, stream, SHUT_RD), 0);
	close_side(&side[1]);
	assert_int_equal(kernel_state(stream->rx.proof_fd), TCP_ESTABLISHED);	/* ended in both directions it would reset */
	for (int i = 0; i < 10; i++)	/* the nonce is written now */
		turn();
	assert_int_equal(receive_some(&side[0], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[0]);
	for (int i = 0; i < 10; i++)
		turn();
}

static bool no_descriptor(int fd)
{
	(void)fd;
	return false;
}

/* The connecting end has said all on the link, was not asked for its nonce, and ends without a descriptor for later. */
static void end_without_descriptor(void)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;

	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	hook_copies(0, NULL);
	until_expected();
	put(0, 0, 1000, 0);
	get(0, 1, BUFFER);
	before_copy = no_descriptor;
	assert_int_equal(shunt_stream_shutdown(engines[0], side[0].fd, stream_of(&side[0]), SHUT_WR), 0);
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

/* As above, and the queue pair dies before the question has come: all has arrived, and none of it would count. */
void an_end_waits_for_the_question_of_a_dead_link(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *sender;
	struct shunt_link *link;
	uint8_t byte;

	(void)state;
	config.proof = config.retain = 1;
	config.return_ms = 0;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	until_announced(0);
	put(0, 1, 1000, 0);
	get(0, 0, BUFFER);
	sender = stream_of(&side[1]);
	link = sender->link;
	close_side(&side[1]);
	step(1);	/* all of it is complete */
	shunt_link_fail(link, "the test");
	step(1);
	for (int n = 0; bed.received[0][1] < bed.sent[0][1]; n++) {
		assert_true(n < 1000);
		step(1);
		get(0, 1, BUFFER);
		step(0);
	}
	for (int n = 0; n < 1000 && receive_some(&side[0], &byte, 1, MSG_DONTWAIT); n++)
		turn();
	assert_int_equal(receive_some(&side[0], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[0]);
	for (int i = 0; i < 10; i++)
		turn();
	assert_false(sender->in_use);
}

static bool no_room;	/* of TCP */

static ssize_t send_if_room(int fd, const struct msghdr *message, int flags)
{
	socklen_t length = sizeof(int);
	int domain;

	if (!no_room || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) || domain != AF_INET)
		return sendmsg(fd, message, flags);
	errno = EAGAIN;
	return -1;
}

/* It has ended reading, asked for the nonce, and closes; its queue pair dies, and the nonce comes after all that. */
void a_late_nonce_is_not_reset(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_sys passing;
	struct shunt_stream *reader;
	struct tcp_info info;
	socklen_t length = sizeof(info);

	(void)state;
	config.proof = config.retain = 1;
	config.return_ms = 0;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	passing = *engines[0]->sys;
	passing.sendmsg = send_if_room;
	engines[0]->sys = &passing;
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, stream_of(&side[1]), SHUT_RD), 0);
	reader = until_expected();
	get(0, 0, BUFFER);
	no_room = true;
	step(0);	/* hears the question */
	shunt_link_fail(reader->link, "the test");
	step(1);
	close_side(&side[1]);
	step(0);
	step(1);	/* the peer lacks nothing */
	no_room = false;
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(getsockopt(side[0].fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	assert_int_equal(info.tcpi_state, TCP_CLOSE_WAIT);
	assert_false(reader->in_use);
	close_side(&side[0]);
	turn();
	bed.pairs = 0;
}

/*
 * It asks for the nonce, and ends reading, before it asked or after, and writing. The peer never hears the question.
 * How long the kernel's end waits, in seconds.
 */
static int end_without_an_answer(bool before)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *reader;
	struct tcp_info info;
	socklen_t length = sizeof(info);
	int waited = 0;

	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	if (before)
		assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, stream_of(&side[1]), SHUT_RD), 0);
	reader = until_expected();
	get(0, 0, BUFFER);
	if (!before)
		assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, reader, SHUT_RD), 0);
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, reader, SHUT_WR), 0);
	for (;; waited += 10) {
		assert_int_equal(getsockopt(side[1].fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
		if (info.tcpi_state != TCP_ESTABLISHED || waited > 1000)
			break;
		pair_skew += 10000000000ull;
		step(1);
	}
	assert_int_equal(engines[1]->service->held_ends, 0);
	close_side(&side[1]);
	close_side(&side[0]);
	for (int i = 0; i < 10; i++)
		turn();
	assert_false(reader->in_use);
	bed.pairs = 0;
	return waited;
}

void an_end_does_not_wait_for_ever(void **state)
{
	(void)state;
	assert_int_equal(end_without_an_answer(false), 0);
	assert_int_equal(end_without_an_answer(true), 60);
}

/*
 * The link is gone with its bytes and without a nonce; TCP then brings `more`, and ends. What the reader is told.
 * `believed`: what the link had brought was.
 */
static ssize_t end_behind(const char *more, bool believed)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	char bytes[200];
	ssize_t got;

	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = believed ? until_expected() : until_announced(1);
	if (!believed)
		shunt_link_distrust(stream->link, "the test");
	put(0, 0, 100, 0);
	shunt_link_kill(stream->link, "the test");
	get(0, 0, BUFFER);
	assert_int_equal(send(bed.pair[0].side[0].fd, more, strlen(more), 0), strlen(more));
	shutdown(bed.pair[0].side[0].fd, SHUT_WR);
	if (*more)
		assert_int_equal(receive_some(&bed.pair[0].side[1], bytes, sizeof(bytes), MSG_DONTWAIT), strlen(more));
	got = receive_some(&bed.pair[0].side[1], bytes, sizeof(bytes), MSG_DONTWAIT);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	turn();
	turn();
	return got;
}

/*
 * It announces the link, ends there at the same byte and is gone, as a process whose last bytes TCP had: nobody is left who
 * could be asked for the nonce, and nothing was lost with it.
 */
void an_end_with_nothing_before_it(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream, *sender;
	const struct shunt_device_kind *near;
	struct shunt_device_kind far;
	struct shunt_device *device;
	char byte;

	(void)state;
	config.proof = config.retain = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = until_expected();
	sender = stream_of(&side[0]);
	assert_int_equal(sender->tx.track, SHUNT_LINK);
	assert_int_equal(sender->tx.offset, sender->tx.upgrade_at);
	get(0, 1, BUFFER);
	get(0, 0, BUFFER);
	close_side(&side[0]);
	assert_true(is_idle(0));
	shunt_group_poll_fully(engines[1]);
	assert_int_equal(atomic_load(&stream->rx.early_fin), sender->tx.offset);
	device = stream->link->device;
	near = device->kind;
	far = *near;
	far.peek = NULL;	/* another host's memory */
	device->kind = &far;
	shunt_link_kill(stream->link, "the test");
	device->kind = near;
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&side[1]);
	turn();
	turn();
}

/* A peer that is killed had more to say; a connection that somebody has claimed who has it not ends as ever. */
void an_end_without_the_nonce(void **state)
{
	(void)state;
	for (int believed = 0; believed < 2; believed++) {
		assert_int_equal(end_behind("", believed), -ECONNRESET);
		assert_int_equal(end_behind("as long as a nonce, and then some", believed), 0);
		assert_int_equal(end_behind("short", believed), 0);
	}
}

/*
 * Nothing has come by the link. TCP ends within what may be the nonce or the program's bytes: an
 * error, no orderly end without them. What cannot be the nonce is the program's.
 */
static ssize_t end_within(size_t bytes, uint8_t differs)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	uint8_t part[SHUNT_NONCE_BYTES];
	struct shunt_stream *stream;
	ssize_t got;

	config.proof = 1;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	stream = until_expected();
	get(0, 0, BUFFER);
	memcpy(part, stream->rx.nonce, sizeof(part));
	part[bytes - 1] ^= differs;
	assert_int_equal(send(side[0].fd, part, bytes, 0), bytes);
	assert_int_equal(shutdown(side[0].fd, SHUT_WR), 0);
	step(1);
	got = receive_some(&side[1], part, sizeof(part), MSG_DONTWAIT);
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
