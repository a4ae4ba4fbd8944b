/* SPDX-License-Identifier: MIT */
/*
 * A move of a stream must lose no event. While the kernel is being asked, its epoll registration is
 * between the program's epfd and the link. A wait of 0 ms must find it in one of the two, and so
 * must poll(). And a receive must not end at a switch when there is more behind it.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "core/poll/sleeper.h"
#include "core/service.h"
#include "core/stream/retire.h"
#include "core/stream/track.h"
#include "core/wait/epset.h"
#include "core/wait/watch.h"
#include <sys/socket.h>

static struct shunt_sys passing;
static int pipes[2];
static int watched = -1;
static void (*meanwhile)(struct shunt_stream *stream);	/* once */

/* False: it has happened. */
static bool happens(void)
{
	void (*move)(struct shunt_stream *stream) = meanwhile;

	meanwhile = NULL;
	if (move)
		move(stream_of(&bed.pair[0].side[0]));
	return move != NULL;
}

/* The kernel has looked, and finds nothing; before anybody looks elsewhere the stream moves. */
static int look_too_early(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	return epfd == watched && happens() ? 0 : epoll_pwait(epfd, events, max, timeout_ms, mask);
}

static void until_state(struct shunt_stream *stream, uint8_t state)
{
	for (int n = 0; stream_state(stream) != state; n++) {
		assert_true(n < 100000);
		turn();
	}
}

static void to_the_link(struct shunt_stream *stream)
{
	until_state(stream, SHUNT_LINKED);
}

static void to_the_kernel(struct shunt_stream *stream)
{
	shunt_retire_begin(engines[0], stream, SHUNT_CAUSE_SPLICE);
	until_state(stream, SHUNT_PLAIN);
}

/* An epoll set of the engine that connects, whose calls are ours to change. */
static void make_set(void)
{
	passing = *engines[0]->sys;
	shunt_engine_surround(engines[0], &passing);
	watched = epoll_create1(EPOLL_CLOEXEC);
	shunt_file_epoll(engines[0], watched);
}

/* It waits for room in the only pair's stream; what happens while it is asked. */
static void watch_pair(void (*move)(struct shunt_stream *stream))
{
	struct epoll_event event = { .events = EPOLLOUT };

	make_set();
	passing.epoll_pwait = look_too_early;
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	assert_int_equal(reported(watched), EPOLLOUT);
	meanwhile = move;
}

static void close_pair(void)
{
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	shunt_file_closing(engines[0], watched);
	close(watched);
	leave_closed_bed();
}

void a_move_to_the_link_is_seen(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	put(0, 0, 1, 0);	/* from now on both ends would like a link */
	put(0, 1, 1, 0);
	watch_pair(to_the_link);
	assert_int_equal(reported(watched), EPOLLOUT);
	assert_null(meanwhile);
	close_pair();
}

void a_move_to_the_kernel_is_seen(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	drain();
	watch_pair(to_the_kernel);
	while (meanwhile)	/* not every call asks the kernel first */
		assert_int_equal(reported(watched), EPOLLOUT);
	assert_int_equal(reported(watched), EPOLLOUT);
	close_pair();
}

/* The kernel has looked at its part. */
static int poll_too_early(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	int n = ppoll(fds, count, timeout, mask);

	happens();
	return n;
}

/* Somebody looks at the kernel's part, and before or after that the stream moves. */
static int move_before(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	if (epfd == watched)
		happens();
	return epoll_pwait(epfd, events, max, timeout_ms, mask);
}

static int move_behind(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	int n = epoll_pwait(epfd, events, max, timeout_ms, mask);

	if (epfd == watched)
		happens();
	return n;
}

/* The streams are looked at first, and one that is ready becomes the kernel's before that is asked. */
void a_move_is_told_once(void **state)
{
	struct epoll_event events[4] = { { .events = EPOLLIN, .data.u64 = 7 }, { .events = EPOLLIN, .data.u64 = 8 } };
	struct shunt_config config = small_config(HYBRID);
	const struct timespec now = { 0, 0 };

	(void)state;
	make_bed(&config, 2);
	drain();
	make_set();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[i].side[0].fd, &events[i]), 0);
		put(i, 1, 10, 0);
	}
	stream_of(&bed.pair[0].side[0])->watches->set->streams_first = true;
	passing.epoll_pwait = move_before;
	meanwhile = to_the_kernel;
	assert_int_equal(shunt_epset_wait(engines[0], watched, events, 4, &now, NULL), 2);
	assert_null(meanwhile);
	assert_int_equal(events[0].data.u64 + events[1].data.u64, 15);
	assert_int_equal(events[0].events | events[1].events, EPOLLIN);
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	close_pair();
}

static int told_to_forget;

static int count_forgotten(int epfd, int op, int fd, struct epoll_event *event)
{
	told_to_forget += epfd == watched && op == EPOLL_CTL_DEL;
	return epoll_ctl(epfd, op, fd, event);
}

/* The service thread is asking the kernel for the addresses while the program closes: the file stays until it has them. */
void a_held_stream_is_forgotten(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	for (int held = 0; held < 2; held++) {
		struct epoll_event event = { .events = EPOLLIN };
		struct shunt_stream *stream;

		make_bed(&config, 0);
		connect_pair(&bed.pair[0]);
		stream = stream_of(&bed.pair[0].side[1]);
		assert_int_equal(stream->holds, 0);
		passing = *engines[1]->sys;
		passing.epoll_ctl = count_forgotten;
		shunt_engine_surround(engines[1], &passing);
		watched = epoll_create1(EPOLL_CLOEXEC);
		shunt_file_epoll(engines[1], watched);
		assert_int_equal(shunt_epset_ctl(engines[1], watched, EPOLL_CTL_ADD, bed.pair[0].side[1].fd, &event), 0);
		told_to_forget = 0;
		if (held)
			shunt_streams_hold(stream);
		close_side(&bed.pair[0].side[1]);
		assert_int_equal(told_to_forget, held);
		if (held)
			shunt_streams_unhold(stream);
		close_side(&bed.pair[0].side[0]);
		shunt_file_closing(engines[1], watched);
		close(watched);
		turn();
		bed.pairs = 0;
	}
}

/* The program's other thread sends, so that what is waited for is the link's to say. */
static void to_the_link_alone(struct shunt_stream *stream)
{
	to_the_link(stream);
	while (stream->watches->home != SHUNT_HOME_NONE) {
		for (int side = 0; side < 2; side++) {
			put(0, side, 1, 0);
			get(0, side, BUFFER);
		}
		turn();
	}
}

/* The kernel has told of it, and then it moves, and moves again. */
void two_moves_are_told_once(void **state)
{
	struct epoll_event events[4] = { { .events = EPOLLOUT } };
	struct shunt_config config = small_config(HYBRID);
	const struct timespec now = { 0, 0 };

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	put(0, 0, 1, 0);
	put(0, 1, 1, 0);
	make_set();
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, events), 0);
	shunt_epset_prepare(engines[0], stream_of(&bed.pair[0].side[0]));
	passing.epoll_pwait = move_behind;
	meanwhile = to_the_link_alone;
	assert_int_equal(shunt_epset_wait(engines[0], watched, events, 4, &now, NULL), 1);
	assert_null(meanwhile);
	close_pair();
}

/* It moves, and then the kernel tells of another descriptor. */
void a_move_is_seen_beside_others(void **state)
{
	struct epoll_event events[4] = { { .events = EPOLLIN, .data.u64 = 77 }, { .events = EPOLLOUT, .data.u64 = 78 } };
	struct shunt_config config = small_config(HYBRID);
	const struct timespec now = { 0, 0 };

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	put(0, 0, 1, 0);
	put(0, 1, 1, 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "", 1), 1);
	make_set();
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, pipes[0], &events[0]),
			 0);
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[0].side[0].fd,
					 &events[1]),
			 0);
	shunt_epset_prepare(engines[0], stream_of(&bed.pair[0].side[0]));
	passing.epoll_pwait = move_before;
	meanwhile = to_the_link;
	assert_int_equal(shunt_epset_wait(engines[0], watched, events, 4, &now, NULL), 2);
	assert_null(meanwhile);
	assert_int_equal(events[0].data.u64 + events[1].data.u64, 155);
	close(pipes[0]);
	close(pipes[1]);
	close_pair();
}

void a_move_is_seen_by_poll(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	const struct timespec now = { 0, 0 };
	struct pollfd fds[2];

	(void)state;
	make_bed(&config, 1);
	drain();
	assert_int_equal(pipe(pipes), 0);
	fds[0] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };	/* the kernel's part */
	fds[1] = (struct pollfd){ .fd = bed.pair[0].side[0].fd, .events = POLLOUT };
	make_set();
	passing.ppoll = poll_too_early;
	assert_int_equal(shunt_wait_poll(engines[0], fds, 2, &now, NULL), 1);
	meanwhile = to_the_kernel;
	assert_int_equal(shunt_wait_poll(engines[0], fds, 2, &now, NULL), 1);
	assert_int_equal(fds[1].revents, POLLOUT);
	assert_null(meanwhile);
	close(pipes[0]);
	close(pipes[1]);
	close_pair();
}

/* --- and the kernel's error --- */

static int poll_too_late(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	happens();
	return ppoll(fds, count, timeout, mask);
}

/* The other end sends so many bytes more and resets the connection, which never had a link. */
static void ends_at_once(const char *more, size_t bytes)
{
	const struct linger at_once = { .l_onoff = 1 };
	struct side *side = &bed.pair[0].side[1];

	assert_int_equal(send_some(side, more, bytes, 0), bytes);
	assert_int_equal(setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close_side(side);
}

static void is_refused(struct shunt_stream *stream)
{
	shunt_streams_plain(engines[0], stream, SHUNT_CAUSE_SPLICE);
	ends_at_once("z", 1);
}

static void leave_reader(void)
{
	ssize_t got;
	char byte;

	got = receive_some(&bed.pair[0].side[0], &byte, 1, MSG_DONTWAIT);
	assert_int_equal(got == -1 ? -errno : got, -ECONNRESET);	/* the kernel says -1 */
	assert_int_equal(receive_some(&bed.pair[0].side[0], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&bed.pair[0].side[0]);
	turn();
	bed.pairs = 0;
}

/* A receive has got bytes and the kernel's error behind them, which the next one reports: also if the link is refused meanwhile. */
void an_error_is_kept_from_the_kernel(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	char bytes[10];

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	ends_at_once("xy", 2);
	assert_int_equal(receive_some(&bed.pair[0].side[0], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_WAITALL), 2);
	shunt_streams_plain(engines[0], stream_of(&bed.pair[0].side[0]), SHUNT_CAUSE_SPLICE);
	leave_reader();
}

/* The link is refused while a receive waits for the rest. */
void an_error_is_left_to_the_kernel(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	char bytes[10];

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	assert_int_equal(send_some(&bed.pair[0].side[1], "xy", 2, 0), 2);
	passing = *engines[0]->sys;
	passing.ppoll = poll_too_late;
	shunt_engine_surround(engines[0], &passing);
	meanwhile = is_refused;
	assert_int_equal(receive_some(&bed.pair[0].side[0], bytes, sizeof(bytes), MSG_WAITALL), 3);
	assert_null(meanwhile);
	leave_reader();
}

/*
 * One end has sent much over TCP that has not all arrived, perhaps more on the link, and resets. The link tells of
 * its end and, as something arrives, of a reset. So does its kernel, earlier or later. A send notices when it has
 * done a part, and the next receive must not take it for an orderly end.
 */
static void notice_reset(bool kernel_first, bool goes_back)
{
	static char bytes[1 << 20];
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	int small = 4096;
	ssize_t got;

	make_bed(&config, 1);
	stream_want_link(stream_of(&side[1]), false);
	put(0, 1, 1, 0);
	drain();
	assert_false(stream_sends_on_link(stream_of(&side[1])));
	while (send_some(&side[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(side[0].fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	if (goes_back) {
		stream_want_link(stream_of(&side[1]), true);
		assert_int_equal(send_some(&side[1], bytes, 1, 0), 1);
		assert_true(stream_sends_on_link(stream_of(&side[1])));
	}
	assert_int_equal(shunt_stream_shutdown(engines[1], side[1].fd, stream_of(&side[1]), SHUT_RDWR), 0);
	assert_int_equal(send_some(&side[0], bytes, 10, 0), 10);
	shunt_group_poll_fully(&engines[1]->group);
	shunt_service_step(engines[1], 0);
	if (kernel_first)
		shunt_streams_reset_tcp(engines[1]->sys, side[1].fd);
	assert_in_range(send_some(&side[0], bytes, sizeof(bytes), 0), 1, sizeof(bytes) - 1);
	if (!kernel_first)
		shunt_streams_reset_tcp(engines[1]->sys, side[1].fd);
	while ((got = receive_some(&side[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		;
	assert_int_equal(got, -ECONNRESET);
	close_side(&side[0]);
	close_side(&side[1]);
	leave_closed_bed();
}

void a_reset_that_a_send_has_noticed(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++)
		notice_reset(how & 1, how & 2);
}

/* Of two streams the first that something has come for is told of first, also if its registration moves meanwhile. */
void a_move_keeps_its_turn(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	const struct timespec now = { 0, 0 };
	struct shunt_stream *reader, *sender;
	struct epoll_event events[2];
	int set = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	make_bed(&config, 2);
	reader = stream_of(&bed.pair[0].side[0]);
	sender = stream_of(&bed.pair[0].side[1]);
	stream_want_link(sender, false);
	put(0, 1, 10, 0);
	while (bed.received[0][1] != bed.sent[0][1])
		drain();
	shunt_file_epoll(engines[0], set);
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };

		assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, bed.pair[i].side[0].fd, &event), 0);
	}
	assert_int_equal(reader->watches->home, SHUNT_HOME_COMPANION);
	stream_want_link(sender, true);
	for (int i = 0; i < 2; i++) {
		put(i, 1, 10, 0);
		shunt_group_poll_fully(&engines[0]->group);
	}
	shunt_lock_take(stream_reader_lock(reader));
	shunt_track_settle(reader);
	shunt_lock_leave(stream_reader_lock(reader));
	assert_int_equal(reader->watches->home, SHUNT_HOME_NONE);
	assert_int_equal(shunt_epset_wait(engines[0], set, events, 2, &now, NULL), 2);
	assert_int_equal(events[0].data.u64, 0);
	shunt_file_closing(engines[0], set);
	close(set);
	end_bed();
}

/* The stream is the kernel's, and its registration is not there yet. */
void between_the_two_it_is_seen(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	drain();
	watch_pair(NULL);
	stream = stream_of(&bed.pair[0].side[0]);
	stream_set_state(stream, SHUNT_PLAIN);
	assert_int_equal(reported(watched), EPOLLOUT);
	stream_set_state(stream, SHUNT_LINKED);
	close_pair();
}

/* One to the link and one back at the same byte: the reader is on TCP before and behind it. */
void two_switches_do_not_end_a_receive(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *sender;
	int on = 1;

	(void)state;
	make_bed(&config, 1);
	sender = stream_of(&bed.pair[0].side[0]);
	setsockopt(bed.pair[0].side[0].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	stream_want_link(sender, false);
	put(0, 0, 1, 0);
	all_arrived();
	assert_int_equal(put(0, 0, 100, 0), 100);
	stream_turn(sender, true);
	to_the_kernel(sender);
	assert_int_equal(stream_offset(sender, STREAM_UPGRADED),
			 stream_offset(sender, STREAM_HANDED_BACK));
	assert_int_equal(put(0, 0, 50, 0), 50);
	assert_int_equal(get(0, 0, BUFFER), 150);
	end_bed();
}

/* The next put() of this side is carried by TCP. */
static void choose_tcp(int side)
{
	stream_want_link(stream_of(&bed.pair[0].side[side]), false);
	assert_int_equal(put(0, side, 1, 0), 1);
	all_arrived();
}

static unsigned int unacknowledged(int side)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	assert_int_equal(getsockopt(bed.pair[0].side[side].fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	return info.tcpi_unacked;
}

/*
 * The kernel delays an acknowledgement for a segment that takes it along. A direction that moves to the link sends no
 * more segments. Nagle's rule would keep the other direction's next bytes back for as long as the kernel delays.
 */
void an_upgrade_acknowledges(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *sender;

	(void)state;
	make_bed(&config, 1);
	sender = stream_of(&bed.pair[0].side[0]);
	choose_tcp(0);
	choose_tcp(1);
	for (int i = 0; i < 20; i++)	/* the kernel sees that answers come, and delays */
		for (int side = 0; side < 2; side++) {
			assert_int_equal(put(0, side, 10, 0), 10);
			assert_int_equal(get(0, side, BUFFER), 10);
		}
	stream_turn(sender, true);
	assert_int_equal(unacknowledged(1), 0);
	end_bed();
}

/*
 * A close says two things: how the stream ends, and that it will be named no more. The second, which comes a moment later
 * here, is no news for the program.
 */
static void closes_with_one_edge(uint32_t events, const struct linger *linger, uint32_t seen)
{
	struct epoll_event event = { .events = events | EPOLLET };
	struct shunt_config config = small_config(HYBRID);
	struct side *closer = &bed.pair[0].side[1];
	uint64_t allowed;

	make_bed(&config, 1);
	drain();
	setsockopt(closer->fd, SOL_SOCKET, SO_LINGER, linger, sizeof(*linger));
	watched = epoll_create1(EPOLL_CLOEXEC);
	shunt_file_epoll(engines[0], watched);
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	assert_int_equal(reported(watched), events & EPOLLOUT);
	allowed = atomic_exchange(&bed.lane[1]->allowed, bed.lane[1]->sent + bed.lane[1]->reserve + 1);	/* one message */
	close_side(closer);
	assert_int_equal(reported(watched), seen);
	assert_int_equal(reported(watched), 0);
	assert_false(stream_is_released(stream_of(&bed.pair[0].side[0])));
	atomic_store(&bed.lane[1]->allowed, allowed);
	shunt_lane_kick(bed.lane[1]);
	for (int i = 0; i < 10; i++) {
		turn();
		assert_int_equal(reported(watched), 0);
	}
	assert_true(stream_is_released(stream_of(&bed.pair[0].side[0])));
	close_side(&bed.pair[0].side[0]);
	shunt_file_closing(engines[0], watched);
	close(watched);
	leave_closed_bed();
}

void a_close_is_one_edge(void **state)
{
	const struct linger zero = { 1, 0 }, none = { 0 };

	(void)state;
	closes_with_one_edge(EPOLLIN | EPOLLRDHUP, &none, EPOLLIN | EPOLLRDHUP);
	closes_with_one_edge(EPOLLIN | EPOLLRDHUP, &zero, EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	closes_with_one_edge(EPOLLIN | EPOLLOUT | EPOLLRDHUP, &zero,
			     EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
}

static void set_rate(struct side *side, uint64_t rate)
{
	assert_int_equal(shunt_stream_set_pacing(stream_of(side), side->fd, &rate, sizeof(rate)),
			 0);
}

static bool by_link(int side)
{
	return stream_sends_on_link(stream_of(&bed.pair[0].side[side]));
}

/* Traffic both ways, until the direction of `side` is where it should be. */
static void until_sent(int side, bool link)
{
	for (int n = 0; by_link(side) != link; n++) {
		assert_true(n < 1000);
		put(0, 0, 100, 0);
		put(0, 1, 100, 0);
		turn();
		drain();
	}
}

/* A rate that the program has set, as long as it has, and in that direction only. */
void a_rate_is_the_kernels_to_keep(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	set_rate(&bed.pair[0].side[0], 50000000);
	until_sent(0, false);
	assert_true(by_link(1));
	assert_int_equal(stream_held(stream_of(&bed.pair[0].side[0])), SHUNT_HELD_PACED);
	assert_int_equal(counted(0, "SO_MAX_PACING_RATE"), 1);
	set_rate(&bed.pair[0].side[0], UINT64_MAX);
	until_sent(0, true);
	set_rate(&bed.pair[0].side[0], 200000000000ull);	/* none that could be kept back by it */
	until_sent(0, true);
	assert_int_equal(counted(0, "SO_MAX_PACING_RATE"), 1);
	end_bed();
}

/* The socket has one before the stream comes to a link, from its listener or from before an exec. */
void a_former_rate_is_kept(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint32_t rate = 50000000;

	(void)state;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	assert_int_equal(setsockopt(bed.pair[0].side[1].fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate,
				    sizeof(rate)),
			 0);
	until_sent(0, true);
	assert_int_equal(stream_held(stream_of(&bed.pair[0].side[1])), SHUNT_HELD_PACED);
	assert_false(by_link(1));
	set_rate(&bed.pair[0].side[1], UINT64_MAX);
	until_sent(1, true);
	all_arrived();
	leave_bed();
}

/* Taken back with the bytes before it, which wait for a receive, and the channel is the slower one. */
void a_handback_goes_with_its_bytes(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *sender;
	uint64_t allowed;

	(void)state;
	make_bed(&config, 1);
	sender = stream_of(&bed.pair[0].side[1]);
	allowed = atomic_exchange(&bed.lane[1]->allowed, 0);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	stream_turn(sender, false);
	assert_false(stream_sends_on_link(sender));
	shunt_retire_begin(engines[0], stream_of(&bed.pair[0].side[0]), SHUNT_CAUSE_SPLICE);
	turn();
	assert_int_equal(stream_asked(sender), SHUNT_GIVEN);
	atomic_store(&bed.lane[1]->allowed, allowed);
	shunt_lane_kick(bed.lane[1]);
	end_bed();
}

/* It is woken to lead, and at the same time by an edge of the kernel's, which is told once only. */
static int sleep_and_be_kicked(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
			       const sigset_t *mask)
{
	struct shunt_group *group = &engines[0]->group;
	int n;

	if (epfd == watched)
		assert_int_equal(write(pipes[1], "", 1), 1);
	n = epoll_pwait2(epfd, events, max, timeout, mask);
	shunt_lock_take(&group->lock);
	if (group->sleepers)
		shunt_sleeper_kick(&engines[0]->group, group->sleepers);
	shunt_lock_leave(&group->lock);
	return n;
}

void who_is_kicked_keeps_an_edge(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 77 };
	const struct timespec now = { 0, 0 }, patience = { 0, 200000000 };
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	drain();
	assert_int_equal(pipe(pipes), 0);
	make_set();
	passing.epoll_pwait2 = sleep_and_be_kicked;
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, pipes[0], &event), 0);
	event = (struct epoll_event){ .events = EPOLLIN };
	assert_int_equal(shunt_epset_ctl(engines[0], watched, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	shunt_epset_wait(engines[0], watched, &event, 1, &now, NULL);
	assert_int_equal(shunt_epset_wait(engines[0], watched, &event, 1, &patience, NULL), 1);
	assert_int_equal(event.data.u64, 77);
	close(pipes[0]);
	close(pipes[1]);
	close_pair();
}
