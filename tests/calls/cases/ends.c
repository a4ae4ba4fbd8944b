/* SPDX-License-Identifier: MIT */
/* Ends that come together with something else: an exit with bytes unread, a kill behind a half-close, a stopped peer. */
#include "cases.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define ALL (POLLIN | POLLOUT | POLLRDHUP)

/* The connection is reset: what is seen of that, once. */
static void torn_off(struct end *e)
{
	ended(e, e->fd, POLLHUP);
	ended(e, e->fd, POLLRDHUP);	/* which the kernel says an instant later: who spins sees the one without the other */
	bits(e, "poll", polled(e->fd, ALL, 0));
	so_error(e, e->fd);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
}

/* --- how a process ends, with what it has left --- */

/* The peer has unread bytes when it ends: a reset. */
static void left_unread(struct end *e)
{
	put(e, e->fd, "unread");
	meet(e);
	ended(e, e->fd, POLLHUP);
	bits(e, "poll", polled(e->fd, ALL, 0));
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	TRY(e, shutdown(e->fd, SHUT_RDWR));
}

static void exit_unread_peer(struct end *e)
{
	put(e, e->fd, "last");
	meet(e);
	arrived(e, e->fd, 6);
	exit(0);
}

static void abrupt_unread_peer(struct end *e)
{
	put(e, e->fd, "last");
	meet(e);
	arrived(e, e->fd, 6);
	_exit(0);
}

static void killed_after_some_peer(struct end *e)
{
	put(e, e->fd, "last");
	meet(e);
	arrived(e, e->fd, 6);
	show(e, e->fd, 3, 0);
	kill(getpid(), SIGKILL);
}

/* Nothing is unread, but it had asked for a reset at its close. */
static void left_lingering(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	tell(e);
	torn_off(e);
}

static void exit_lingering_peer(struct end *e)
{
	reset_on_close(e, e->fd);
	put(e, e->fd, "last");
	await(e);
	exit(0);
}

static void killed_lingering_peer(struct end *e)
{
	reset_on_close(e, e->fd);
	put(e, e->fd, "last");
	await(e);
	kill(getpid(), SIGKILL);
}

/* It has ended its direction in order before it is killed: that end counts. */
static void half_then_killed(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 10, 0);
	bits(e, "poll", polled(e->fd, ALL, 0));
	tell(e);
	ended(e, e->fd, POLLRDHUP);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	ended(e, e->fd, POLLHUP);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	show(e, e->fd, 10, 0);
}

static void half_then_killed_peer(struct end *e)
{
	put(e, e->fd, "last");
	TRY(e, shutdown(e->fd, SHUT_WR));
	await(e);
	kill(getpid(), SIGKILL);
}

/* Behind the end comes a reset: who has seen the end is told EPIPE. */
static void reset_behind_end(struct end *e)
{
	put(e, e->fd, "unread");
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 10, 0);
	meet(e);
	torn_off(e);
}

static void reset_behind_end_peer(struct end *e)
{
	put(e, e->fd, "last");
	arrived(e, e->fd, 6);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	TRY(e, close(e->fd));
}

/* --- an administrator ends it: ss -K --- */

static void destroy(struct end *e)
{
	struct { struct nlmsghdr head; struct inet_diag_req_v2 wanted; } ask = {
		.head = { sizeof(ask), SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
		.wanted = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u },
	};
	struct { struct nlmsghdr head; struct nlmsgerr error; struct nlmsghdr rest; } answer = { .error.error = -ENODATA };
	struct sockaddr_in ours, theirs;
	socklen_t length = sizeof(ours);
	int fd = MUST(e, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));

	MUST(e, getsockname(e->fd, (struct sockaddr *)&ours, &length));
	MUST(e, getpeername(e->fd, (struct sockaddr *)&theirs, &length));
	ask.wanted.id.idiag_sport = ours.sin_port;
	ask.wanted.id.idiag_dport = theirs.sin_port;
	ask.wanted.id.idiag_src[0] = ours.sin_addr.s_addr;
	ask.wanted.id.idiag_dst[0] = theirs.sin_addr.s_addr;
	ask.wanted.id.idiag_cookie[0] = ask.wanted.id.idiag_cookie[1] = ~0u;
	MUST(e, send(fd, &ask, sizeof(ask), 0));
	MUST(e, recv(fd, &answer, sizeof(answer), 0));
	close(fd);
	errno = -answer.error.error;
	if (!errno)
		return;
	say(e, "not here: %s", strerrorname_np(errno));	/* a right of root's in its network, and an option of the kernel */
	reset_on_close(e, e->fd);
	exit(0);
}

/* Both ends see it. Only the first call is told of the error, so cases differ in which that is. */
static void destroyed(struct end *e)
{
	ended(e, e->fd, POLLHUP);
	bits(e, "poll", polled(e->fd, ALL, 0));
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	so_error(e, e->fd);
	show(e, e->fd, 10, 0);
	bits(e, "poll", polled(e->fd, ALL, 0));
}

static void destroyed_idle(struct end *e)
{
	destroy(e);
	destroyed(e);
}

static void destroyed_unread(struct end *e)
{
	arrived(e, e->fd, 4);
	destroy(e);
	ended(e, e->fd, POLLHUP);
	show(e, e->fd, 2, 0);
	destroyed(e);
}

static void destroyed_unread_peer(struct end *e)
{
	put(e, e->fd, "last");
	destroyed(e);
}

static void destroyed_send(struct end *e)
{
	destroy(e);
	ended(e, e->fd, POLLHUP);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	destroyed(e);
}

static void destroyed_error(struct end *e)
{
	destroy(e);
	ended(e, e->fd, POLLHUP);
	so_error(e, e->fd);
	destroyed(e);
}

static void destroyed_under(struct end *e, void (*work)(struct job *j), int fd)
{
	struct job j;

	job_sleeps(e, &j, work, fd);
	destroy(e);
	job_report(e, "told", &j);
	destroyed(e);
}

static void destroyed_recv(struct end *e)
{
	destroyed_under(e, job_recv, e->fd);
}

static void destroyed_poll(struct end *e)
{
	destroyed_under(e, job_poll, e->fd);
}

static void destroyed_epoll(struct end *e)
{
	destroyed_under(e, job_epoll, e->fd);
}

static void destroyed_sender(struct end *e)
{
	destroyed_under(e, job_send, e->fd);
}

/* Its peer does not read, so bytes are left unread. */
static void destroyed_sender_peer(struct end *e)
{
	ended(e, e->fd, POLLHUP);
	so_error(e, e->fd);
}

/* --- what runs at the end of a process, and uses the connection --- */

static struct end *leaving;

static void goodbye(void)
{
	if (!leaving)
		return;
	TRY(leaving, send(leaving->fd, "echo", 4, MSG_NOSIGNAL));
	show(leaving, leaving->fd, 4, MSG_WAITALL);
	TRY(leaving, shutdown(leaving->fd, SHUT_WR));
	show(leaving, leaving->fd, 4, 0);
}

/* Handlers run in reverse order, so constructors register those that run last. */
__attribute__((constructor)) static void early(void)
{
	if (at_quick_exit(goodbye))
		abort();
}

static void quick_handler(struct end *e)
{
	ask(e, e->fd);
	leaving = e;
	quick_exit(0);
}

static void exit_handler(struct end *e)
{
	ask(e, e->fd);
	leaving = e;
	MUST(e, atexit(goodbye));
	exit(0);
}

/* A library's destructor runs behind those of all that were loaded before it. */
static void exit_destructor(struct end *e)
{
	char path[PATH_MAX];
	void (**hook)(void);
	void *library;
	ssize_t length = MUST(e, readlink("/proc/self/exe", path, sizeof(path) - 32));

	path[length] = 0;
	strcpy(strrchr(path, '/'), "/../.libs/late.so");
	library = dlopen(path, RTLD_NOW);
	hook = library ? dlsym(library, "late_goodbye") : NULL;
	say(e, "library loaded: %d", hook != NULL);
	ask(e, e->fd);
	leaving = e;
	if (hook)
		*hook = goodbye;
	exit(0);
}

/* --- while threads wait --- */

static void killed_under_send(struct end *e)
{
	struct job j;

	job_start(e, &j, job_send, e->fd);
	asleep(e, j.tid);
	tell(e);
	job_report(e, "send in the end", &j);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	show(e, e->fd, 10, 0);
}

static void killed_peer(struct end *e)
{
	await(e);
	kill(getpid(), SIGKILL);
}

/* A reader and a writer wait: one of them is told. */
static void killed_under_both(struct end *e)
{
	struct job reader, writer;

	job_start(e, &reader, job_recv, e->fd);
	asleep(e, reader.tid);
	job_start(e, &writer, job_send, e->fd);
	asleep(e, writer.tid);
	tell(e);
	job_join(e, &reader);
	job_join(e, &writer);
	say(e, "told of the reset: %d", (reader.result < 0 && reader.err == ECONNRESET) +
	    (writer.result < 0 && writer.err == ECONNRESET));
	bits(e, "poll", polled(e->fd, ALL, 0));
	show(e, e->fd, 10, 0);
}

static void job_told(struct job *j)
{
	struct epoll_event event;

	j->result = epoll_wait(j->fd, &event, 1, -1);
	j->err = errno;
	if (j->result > 0)
		snprintf(j->buf, sizeof(j->buf), "%x", event.events);
}

/* Nobody asked for anything but errors. */
static void killed_in_set(struct end *e)
{
	int ep = set_of(e, e->fd, 0);
	struct job j;

	put(e, e->fd, "unread");
	meet(e);
	job_start(e, &j, job_told, ep);
	asleep(e, j.tid);
	tell(e);
	job_join(e, &j);
	say(e, "epoll_wait = %ld, %s", j.result, j.buf);
	so_error(e, e->fd);
	show(e, e->fd, 10, 0);
}

static void killed_in_set_peer(struct end *e)
{
	meet(e);
	arrived(e, e->fd, 6);
	await(e);
	kill(getpid(), SIGKILL);
}

/*
 * tcp_reset() wakes who waits twice, as the state changes and then for the error: with a poll between the two there are
 * two edges. It holds the socket, and so does what comes here.
 */
static void reset_is_over(struct end *e)
{
	ended(e, e->fd, POLLHUP);
	MUST(e, setsockopt(e->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){0}, sizeof(int)));
}

/* Each edge once: the bytes, and the reset behind them. */
static void reset_edges(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLRDHUP | EPOLLET);

	meet(e);
	arrived(e, e->fd, 4);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	meet(e);
	reset_is_over(e);
	last_edge(e, ep);
}

static void reset_edges_peer(struct end *e)
{
	put(e, e->fd, "data");
	meet(e);
	meet(e);
	reset_on_close(e, e->fd);
	TRY(e, close(e->fd));
}

/* close does not end a send that is blocked in another thread. */
static void close_under_send(struct end *e)
{
	struct job j;

	job_start(e, &j, job_send, e->fd);
	asleep(e, j.tid);
	TRY(e, close(e->fd));
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	tell(e);
	job_report(e, "send in the end", &j);
	await(e);
}

static void close_under_send_peer(struct end *e)
{
	static char buf[1 << 16];

	await(e);
	while (MUST(e, recv(e->fd, buf, sizeof(buf), 0)) > 0)
		;
	bits(e, "poll", polled(e->fd, POLLIN | POLLRDHUP, 0));
	tell(e);
}

/* --- numbers --- */

/* Of two numbers one is closed with bytes unread: nothing happens before the other is. */
static void unread_twin(struct end *e)
{
	int twin = MUST(e, dup(e->fd));

	arrived(e, e->fd, 6);
	TRY(e, close(e->fd));
	put(e, twin, "still");
	meet(e);
	TRY(e, close(twin));
	meet(e);
}

static void unread_twin_peer(struct end *e)
{
	put(e, e->fd, "unread");
	show(e, e->fd, 5, MSG_WAITALL);
	bits(e, "poll", polled(e->fd, ALL, 0));
	meet(e);
	ended(e, e->fd, POLLHUP);
	bits(e, "poll", polled(e->fd, ALL, 0));
	show(e, e->fd, 10, 0);
	meet(e);
}

/* Its owner is killed, but a child has the connection, too: it lives. */
static void owner_killed(struct end *e)
{
	int over[2];
	pid_t pid;
	char c;

	ask(e, e->fd);
	MUST(e, pipe(over));
	pid = MUST(e, fork());
	if (!pid) {
		MUST(e, close(over[1]));
		MUST(e, read(over[0], &c, 1));	/* until the parent is dead */
		become(e, "child");
		ask(e, e->fd);
		TRY(e, shutdown(e->fd, SHUT_WR));
		show(e, e->fd, 10, 0);
		_exit(0);
	}
	kill(getpid(), SIGKILL);
}

/* --- SIGPIPE --- */

static void sigpipe_kills(struct end *e)
{
	pid_t pid;

	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, send(e->fd, "x", 1, 0));
	ended(e, e->fd, POLLHUP);
	pid = MUST(e, fork());
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		write(e->fd, "x", 1);
		_exit(0);
	}
	reap(e, pid);
}

static void close_peer(struct end *e)
{
	TRY(e, close(e->fd));
	meet(e);
}

/* Every call that sends, once the connection is over. */
static void sigpipe_calls(struct end *e)
{
	struct iovec iov = {"x", 1};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	struct mmsghdr messages = {.msg_hdr = message};
	int file = MUST(e, open("/proc/self/exe", O_RDONLY));

	count_sigpipe(e);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, send(e->fd, "x", 1, 0));
	ended(e, e->fd, POLLHUP);
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, write(e->fd, "x", 1));
	TRY(e, writev(e->fd, &iov, 1));
	TRY(e, sendto(e->fd, "x", 1, 0, NULL, 0));
	TRY(e, sendmsg(e->fd, &message, 0));
	TRY(e, sendmmsg(e->fd, &messages, 1, 0));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, sendfile(e->fd, file, NULL, 1));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, sendto(e->fd, "x", 1, MSG_NOSIGNAL, NULL, 0));
	TRY(e, sendmsg(e->fd, &message, MSG_NOSIGNAL));
	TRY(e, sendmmsg(e->fd, &messages, 1, MSG_NOSIGNAL));
	TRY(e, send(e->fd, "", 0, 0));
	say(e, "%d SIGPIPE", sigpipes());
	close(file);
}

static void sigpipe_after_shut(struct end *e)
{
	count_sigpipe(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, send(e->fd, "x", 1, 0));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
	TRY(e, write(e->fd, "x", 1));
	say(e, "%d SIGPIPE", sigpipes());
	meet(e);
	show(e, e->fd, 4, MSG_WAITALL);
}

static void sigpipe_after_shut_peer(struct end *e)
{
	show(e, e->fd, 4, 0);
	put(e, e->fd, "fine");
	meet(e);
}

/* --- a stopped process --- */

/* It is not dead: what is sent to it waits, and it goes on where it was. So much any socket takes whose reader has read all. */
#define WAITING 16000

static void stopped(struct end *e)
{
	pid_t pid;

	take(e, &pid, sizeof(pid));
	MUST(e, kill(pid, SIGSTOP));
	bits(e, "poll", polled(e->fd, POLLRDHUP, settle()));
	send_pattern(e, e->fd, 0, WAITING, 1000);
	bits(e, "poll", polled(e->fd, POLLIN | POLLRDHUP, 20 * settle()));
	so_error(e, e->fd);
	MUST(e, kill(pid, SIGCONT));
	recv_pattern(e, e->fd, 0, WAITING, 999);
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 10, 0);
}

static void stopped_peer(struct end *e)
{
	pid_t pid = getpid();

	setpgid(0, 0);	/* a group with a stopped process in it may be hung up (setpgid(2)) */
	pass(e, &pid, sizeof(pid));
	recv_pattern(e, e->fd, 0, WAITING, 1000);
	send_pattern(e, e->fd, 0, WAITING, 1000);
	show(e, e->fd, 10, 0);
}

/* Killed while it is stopped, with bytes that it has not read. */
static void stopped_and_killed(struct end *e)
{
	pid_t pid;

	take(e, &pid, sizeof(pid));
	show(e, e->fd, 4, MSG_WAITALL);
	MUST(e, kill(pid, SIGSTOP));
	put(e, e->fd, "unread");
	bits(e, "poll", polled(e->fd, POLLIN | POLLRDHUP, settle()));
	MUST(e, kill(pid, SIGKILL));
	ended(e, e->fd, POLLHUP);
	bits(e, "poll", polled(e->fd, ALL, 0));
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
}

static void stopped_and_killed_peer(struct end *e)
{
	pid_t pid = getpid();

	setpgid(0, 0);	/* a group with a stopped process in it may be hung up (setpgid(2)) */
	pass(e, &pid, sizeof(pid));
	put(e, e->fd, "last");
	for (;;)
		pause();
}

const struct test cases_ends[] = {
	{"ends_exit_unread", PROCS, left_unread, exit_unread_peer},
	{"ends_abrupt_unread", PROCS, left_unread, abrupt_unread_peer},
	{"ends_killed_after_some", PROCS, left_unread, killed_after_some_peer},
	{"ends_exit_lingering", PROCS, left_lingering, exit_lingering_peer},
	{"ends_killed_lingering", PROCS, left_lingering, killed_lingering_peer},
	{"ends_destroyed_idle", 0, destroyed_idle, destroyed},
	{"ends_destroyed_unread", 0, destroyed_unread, destroyed_unread_peer},
	{"ends_destroyed_send", 0, destroyed_send, destroyed},
	{"ends_destroyed_error", 0, destroyed_error, destroyed},
	{"ends_destroyed_recv", 0, destroyed_recv, destroyed},
	{"ends_destroyed_poll", 0, destroyed_poll, destroyed},
	{"ends_destroyed_epoll", 0, destroyed_epoll, destroyed},
	{"ends_destroyed_sender", 0, destroyed_sender, destroyed_sender_peer},
	{"ends_quick_handler", PROCS, quick_handler, echo_peer},
	{"ends_exit_handler", PROCS, exit_handler, echo_peer},
	{"ends_exit_destructor", PROCS, exit_destructor, echo_peer},
	{"ends_half_then_killed", PROCS, half_then_killed, half_then_killed_peer},
	{"ends_reset_behind_end", 0, reset_behind_end, reset_behind_end_peer},
	{"ends_killed_under_send", PROCS, killed_under_send, killed_peer},
	{"ends_killed_under_both", PROCS, killed_under_both, killed_peer},
	{"ends_killed_in_set", PROCS, killed_in_set, killed_in_set_peer},
	{"ends_reset_edges", 0, reset_edges, reset_edges_peer},
	{"ends_close_under_send", 0, close_under_send, close_under_send_peer},
	{"ends_unread_twin", 0, unread_twin, unread_twin_peer},
	{"ends_owner_killed", PROCS, owner_killed, echo_peer},
	{"ends_sigpipe_kills", PROCS, sigpipe_kills, close_peer},
	{"ends_sigpipe_calls", 0, sigpipe_calls, close_peer},
	{"ends_sigpipe_after_shut", 0, sigpipe_after_shut, sigpipe_after_shut_peer},
	{"ends_stopped", PROCS, stopped, stopped_peer},
	{"ends_stopped_and_killed", PROCS, stopped_and_killed, stopped_and_killed_peer},
	{NULL, 0, NULL, NULL},
};
