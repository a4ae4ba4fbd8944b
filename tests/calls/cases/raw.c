/* SPDX-License-Identifier: MIT */
/* System calls without libc's names: syscall() and io_uring. */
#include "cases.h"

#include <dirent.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static void transfers(struct end *e)
{
	struct iovec v = {.iov_base = "vect", .iov_len = 4};
	char buf[10] = "";
	struct iovec in = {.iov_base = buf, .iov_len = 10};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}, n = {.msg_iov = &in, .msg_iovlen = 1};

	TRY(e, syscall(SYS_write, e->fd, "writ", 4));
	arrived(e, e->fd, 4);
	text(e, "read", buf, syscall(SYS_read, e->fd, buf, 10));
	TRY(e, syscall(SYS_sendto, e->fd, "send", 4, MSG_NOSIGNAL, NULL, 0));
	arrived(e, e->fd, 4);
	text(e, "recvfrom", buf, syscall(SYS_recvfrom, e->fd, buf, 10, 0, NULL, NULL));
	TRY(e, syscall(SYS_writev, e->fd, &v, 1));
	arrived(e, e->fd, 4);
	text(e, "readv", buf, syscall(SYS_readv, e->fd, &in, 1));
	TRY(e, syscall(SYS_sendmsg, e->fd, &m, 0));
	arrived(e, e->fd, 4);
	text(e, "recvmsg", buf, syscall(SYS_recvmsg, e->fd, &n, 0));
	TRY(e, syscall(SYS_recvfrom, e->fd, buf, 10, MSG_DONTWAIT, NULL, NULL));
	shutdown(e->fd, SHUT_WR);
	text(e, "read", buf, syscall(SYS_read, e->fd, buf, 10));
}

static void several(struct end *e)
{
	char buf[2][4];
	struct iovec out[2] = {{.iov_base = "abcd", .iov_len = 4}, {.iov_base = "efgh", .iov_len = 4}};
	struct iovec in[2] = {{.iov_base = buf[0], .iov_len = 4}, {.iov_base = buf[1], .iov_len = 4}};
	struct mmsghdr m[2];

	a_piece_each(m, 2, out, 1);
	TRY(e, syscall(SYS_sendmmsg, e->fd, m, 2, 0));
	a_piece_each(m, 2, in, 1);
	arrived(e, e->fd, 8);
	TRY(e, syscall(SYS_recvmmsg, e->fd, m, 2, 0, NULL));
	say(e, "%.4s %.4s", buf[0], buf[1]);
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* --- calls that younger architectures have in their later form alone --- */

static long raw_poll(struct pollfd *p, int ms)
{
#ifdef SYS_poll
	return syscall(SYS_poll, p, 1, ms);
#else
	struct timespec none = {0};

	return syscall(SYS_ppoll, p, 1, ms < 0 ? NULL : &none, NULL, 8);
#endif
}

/* Without waiting. */
static long raw_select(int count, fd_set *in)
{
#ifdef SYS_select
	struct timeval none = {0};

	return syscall(SYS_select, count, in, NULL, NULL, &none);
#else
	struct timespec none = {0};

	return syscall(SYS_pselect6, count, in, NULL, NULL, &none, NULL);
#endif
}

static long raw_epoll_wait(int ep, struct epoll_event *event, int ms)
{
#ifdef SYS_epoll_wait
	return syscall(SYS_epoll_wait, ep, event, 1, ms);
#else
	return syscall(SYS_epoll_pwait, ep, event, 1, ms, NULL, 8);
#endif
}

static long raw_dup2(int from, int to)
{
#ifdef SYS_dup2
	return syscall(SYS_dup2, from, to);
#else
	return syscall(SYS_dup3, from, to, 0);
#endif
}

static void waits(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct timespec none = {0};
	fd_set r;

	have(e, 3);
	TRY(e, raw_poll(&p, -1));
	bits(e, "revents", p.revents);
	TRY(e, syscall(SYS_ppoll, &p, 1, &none, NULL, 8));
	FD_ZERO(&r);
	FD_SET(e->fd, &r);
	TRY(e, raw_select(e->fd + 1, &r));
	TRY(e, syscall(SYS_pselect6, e->fd + 1, &r, NULL, NULL, NULL, NULL));
	show(e, e->fd, 3, 0);
	TRY(e, raw_poll(&p, 0));
	meet(e);
}

static void sets(struct end *e)
{
	int ep = MUST(e, syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 7};

	TRY(e, syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, e->fd, &ev));
	have(e, 3);
	memset(&ev, 0, sizeof(ev));
	TRY(e, raw_epoll_wait(ep, &ev, -1));
	say(e, "%x %d", ev.events, (int)ev.data.u64);
	TRY(e, syscall(SYS_epoll_pwait, ep, &ev, 1, -1, NULL, 8));
	show(e, e->fd, 3, 0);
	TRY(e, raw_epoll_wait(ep, &ev, 0));
	TRY(e, syscall(SYS_close, ep));
	meet(e);
}

static void numbers(struct end *e)
{
	int other = MUST(e, syscall(SYS_dup, e->fd)), third = MUST(e, syscall(SYS_fcntl, e->fd, F_DUPFD, 100));
	int have = -1;

	say(e, "from 100: %d", third >= 100);
	ask(e, other);
	TRY(e, syscall(SYS_close, other));
	ask(e, third);
	TRY(e, raw_dup2(third, other) == other);
	TRY(e, syscall(SYS_close, third));
	ask(e, other);
	TRY(e, syscall(SYS_ioctl, e->fd, FIONREAD, &have));
	say(e, "%d", have);
	TRY(e, syscall(SYS_shutdown, other, SHUT_WR));
	show(e, e->fd, 1, 0);
	TRY(e, syscall(SYS_close, e->fd));
	TRY(e, syscall(SYS_close, e->fd));
	TRY(e, syscall(SYS_close, other));
}

static void options(struct end *e)
{
	int v = -1, one = 1;
	socklen_t len = sizeof(v);
	struct sockaddr_in a;
	socklen_t alen = sizeof(a);

	TRY(e, syscall(SYS_setsockopt, e->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	TRY(e, syscall(SYS_getsockopt, e->fd, IPPROTO_TCP, TCP_NODELAY, &v, &len));
	say(e, "%d %u", v, len);
	TRY(e, syscall(SYS_getsockopt, e->fd, SOL_SOCKET, SO_ERROR, &v, &len));
	say(e, "%d %u", v, len);
	TRY(e, syscall(SYS_getpeername, e->fd, &a, &alen));
	TRY(e, syscall(SYS_getsockname, e->fd, &a, &alen));
	one = SO_OOBINLINE;
	TRY(e, syscall(SYS_setsockopt, e->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)));
	one = 1;
	TRY(e, syscall(SYS_setsockopt, e->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)));
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* Whole connections without libc. */
static void connections(struct end *e)
{
	int l = MUST(e, syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)), a, b;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	char buf[10];

	TRY(e, syscall(SYS_bind, l, &at, sizeof(at)));
	TRY(e, syscall(SYS_listen, l, 5));
	MUST(e, syscall(SYS_getsockname, l, &at, &len));
	a = MUST(e, syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	TRY(e, syscall(SYS_connect, a, &at, sizeof(at)));
	b = MUST(e, syscall(SYS_accept, l, NULL, NULL));
	for (int i = 0; i < 50; i++) {
		MUST(e, syscall(SYS_write, a, "ping", 4) - 4);
		MUST(e, syscall(SYS_read, b, buf, 10) - 4);
		MUST(e, syscall(SYS_write, b, "pong", 4) - 4);
		MUST(e, syscall(SYS_read, a, buf, 10) - 4);
	}
	text(e, "last", buf, 4);
	TRY(e, syscall(SYS_close, a));
	TRY(e, syscall(SYS_read, b, buf, 10));
	TRY(e, syscall(SYS_close, b));
	TRY(e, syscall(SYS_close, l));
}

/* pread and lseek on what has no position; copy_file_range and fallocate on what is no file. */
static void not_for_sockets(struct end *e)
{
	char buf[4];
	loff_t off = 0;
	int file = MUST(e, open("/dev/zero", O_RDWR | O_CLOEXEC));

	TRY(e, syscall(SYS_pread64, e->fd, buf, 4, 0));
	TRY(e, syscall(SYS_pwrite64, e->fd, buf, 4, 0));
	TRY(e, syscall(SYS_lseek, e->fd, 0, SEEK_END));
	TRY(e, syscall(SYS_ftruncate, e->fd, 0));
	TRY(e, syscall(SYS_fsync, e->fd));
	TRY(e, syscall(SYS_copy_file_range, e->fd, NULL, file, &off, 4, 0));
	close(file);
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* A small ring of its own, as liburing would make it. */
struct uring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static int uring_make(struct end *e, struct uring *u)
{
	struct io_uring_params p = {0};
	char *ring;

	u->fd = syscall(SYS_io_uring_setup, 8, &p);
	if (u->fd < 0) {
		result(e, "io_uring_setup", u->fd);
		return 0;
	}
	ring = mmap(NULL, p.sq_off.array + p.sq_entries * 4 + p.cq_off.cqes + p.cq_entries * 16,
		    PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, p.sq_entries * sizeof(*u->sqes), PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
		       IORING_OFF_SQES);
	u->sq_tail = (unsigned *)(ring + p.sq_off.tail);
	u->sq_mask = (unsigned *)(ring + p.sq_off.ring_mask);
	u->sq_array = (unsigned *)(ring + p.sq_off.array);
	u->cq_head = (unsigned *)(ring + p.cq_off.head);
	u->cq_tail = (unsigned *)(ring + p.cq_off.tail);
	u->cq_mask = (unsigned *)(ring + p.cq_off.ring_mask);
	u->cqes = (struct io_uring_cqe *)(ring + p.cq_off.cqes);
	return 1;
}

static int uring_do(struct end *e, struct uring *u, int op, int fd, const void *buf, unsigned len, int flags)
{
	unsigned tail = *u->sq_tail, i = tail & *u->sq_mask;
	int res;

	u->sqes[i] = (struct io_uring_sqe){.opcode = op, .fd = fd, .addr = (uintptr_t)buf, .len = len,
					   .msg_flags = flags};
	u->sq_array[i] = i;
	__atomic_store_n(u->sq_tail, tail + 1, __ATOMIC_RELEASE);
	while (syscall(SYS_io_uring_enter, u->fd, 1, 0, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		MUST(e, errno == EINTR ? 0 : -1);
	for (i = 0; __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE) == *u->cq_head; i++) {
		if (i > 10000)
			return -ETIME;
		usleep(100);
	}
	res = u->cqes[*u->cq_head & *u->cq_mask].res;
	__atomic_store_n(u->cq_head, *u->cq_head + 1, __ATOMIC_RELEASE);
	return res;
}

static void uring(struct end *e)
{
	struct uring u;
	char buf[20];

	if (!uring_make(e, &u)) {
		ask(e, e->fd);
		shutdown(e->fd, SHUT_WR);
		return;
	}
	for (int i = 0; i < 3; i++) {
		say(e, "send %d", uring_do(e, &u, IORING_OP_SEND, e->fd, "uring", 5, 0));
		if (!polled(e->fd, POLLIN, 1000))
			break;
		arrived(e, e->fd, 5);
		text(e, "recv", buf, uring_do(e, &u, IORING_OP_RECV, e->fd, buf, 20, 0));
	}
	shutdown(e->fd, SHUT_WR);
	say(e, "recv %d", uring_do(e, &u, IORING_OP_RECV, e->fd, buf, 20, 0));
	close(u.fd);
}

/* How many there are. */
static void count_descriptors(struct end *e)
{
	DIR *fds = opendir("/proc/self/fd");
	int count = 0;

	while (fds && readdir(fds))
		count++;
	if (fds)
		closedir(fds);
	say(e, "%d descriptors", count);
}

/* It has what its parent has, and nothing more; and the connection goes on. */
static void forked(struct end *e, long (*call)(void))
{
	pid_t pid;

	ask(e, e->fd);
	pid = (pid_t)MUST(e, call());
	if (!pid) {
		become(e, "child");
		count_descriptors(e);
		_exit(0);
	}
	reap(e, pid);
	ask(e, e->fd);
	close(e->fd);
}

static long by_fork(void)
{
#ifdef SYS_fork
	return syscall(SYS_fork);
#else
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
#endif
}

static long by_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static long by_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	return syscall(SYS_clone3, &args, sizeof(args));
}

static void raw_fork(struct end *e)
{
	forked(e, by_fork);
}

static void raw_clone(struct end *e)
{
	forked(e, by_clone);
}

static void raw_clone3(struct end *e)
{
	forked(e, by_clone3);
}

static int run_clone(void *arg)
{
	become(arg, "child");
	count_descriptors(arg);
	return 0;
}

/* The same by libc's call, on a stack of its own. */
static void clone_runs(struct end *e)
{
	static _Alignas(64) char stack[1 << 16];

	ask(e, e->fd);
	reap(e, MUST(e, clone(run_clone, stack + sizeof(stack), SIGCHLD, e)));
	ask(e, e->fd);
	close(e->fd);
}

const struct test cases_raw[] = {
	{"raw_transfers", 0, transfers, echo_peer},
	{"raw_several", 0, several, echo_peer},
	{"raw_waits", 0, waits, abc_peer},
	{"raw_sets", 0, sets, abc_peer},
	{"raw_numbers", 0, numbers, echo_peer},
	{"raw_options", 0, options, echo_peer},
	{"raw_connections", ALONE, connections, NULL},
	{"raw_not_for_sockets", 0, not_for_sockets, echo_peer},
	{"raw_uring", 0, uring, echo_peer},
	{"raw_fork", PROCS, raw_fork, echo_peer},
	{"raw_clone", PROCS, raw_clone, echo_peer},
	{"raw_clone3", PROCS, raw_clone3, echo_peer},
	{"raw_clone_runs", PROCS, clone_runs, echo_peer},
	{NULL, 0, NULL, NULL},
};
