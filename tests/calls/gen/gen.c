/*
 * gen SEED CALLS [KEEP...]: a random sequence of calls, and what each returned.
 *
 * Two processes hold the two ends of some TCP connections. The first knows the sequence and a model of every
 * connection; one call is made at a time, here or in the other process, in the main thread or in a second one. The
 * model lets only such calls be made whose result does not depend on time, so the transcript of a seed is always the
 * same. Call number i depends on SEED and i alone: with KEEP, only calls with these numbers are made, for those who
 * look for the shortest sequence that shows something.
 *
 * GEN_CAREFUL: no descriptor is shared while it has unread bytes, for streams that move all the time.
 * GEN_WRAP is put before the command of the other process. Nothing here knows of Shunt.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNS 4
#define SETS 2
#define MOST 12000	/* unread bytes of a direction: no send ever waits */

enum kind {
	SEND, WRITE, WRITEV, SENDMSG, SENDMMSG, SENDFILE, SEND_MORE, SEND_CORKED, SEND_FAULT, SEND_NOTHING, SEND_CHILD,
	RECV, READ, READV, RECVMSG, RECVFROM, RECVMMSG, PEEK, TRUNC, WAITALL, DONTWAIT, RECV_FAULT, RECV_NOTHING,
	POLL, PPOLL, SELECT, FIONREAD_, SO_ERROR_, NODELAY, NONBLOCK, FIONBIO_, RCVLOWAT,
	EP_ADD, EP_MOD, EP_DEL, EP_WAIT, EP_PWAIT,
	SHUT_R, SHUT_W, DUP, DUP2, CLOSE_DUP, PASS,
	RECONNECT, WAIT_POLL, WAIT_SELECT, WAIT_EPOLL, WAIT_RECV, NAMES, KINDS,
	/* not part of a sequence */
	LISTEN, CONNECT, ACCEPT, CLOSE, ARRIVED, ENDED, JOIN, QUIT,
};

static const char *const names[] = {
	"send", "write", "writev", "sendmsg", "sendmmsg", "sendfile", "send MORE", "send corked", "send fault",
	"send nothing", "send in a child", "recv", "read", "readv", "recvmsg", "recvfrom", "recvmmsg", "recv PEEK",
	"recv TRUNC", "recv WAITALL", "recv DONTWAIT", "recv fault", "recv nothing", "poll", "ppoll", "select", "FIONREAD",
	"SO_ERROR", "NODELAY", "O_NONBLOCK", "FIONBIO", "SO_RCVLOWAT", "epoll add", "epoll mod", "epoll del", "epoll_wait",
	"epoll_pwait", "shutdown RD", "shutdown WR", "dup", "dup2", "close dup", "pass", "reconnect", "waiting poll",
	"waiting select", "waiting epoll_wait", "waiting recv", "names",
};

struct cmd {
	int kind, conn, n, thread, dup, set, start;
	unsigned events;
	uint64_t at;		/* of the stream */
	struct sockaddr_in addr;
};

struct reply {
	int r, err;
	char text[120];
	struct sockaddr_in addr;
};

/* --- both processes: making calls --- */

static int fds[CONNS][2], listener = -1, sets[SETS];
static char bytes[3 * MOST];

static unsigned char byte_at(int conn, uint64_t at)
{
	at = (at + 1 + conn * 1000003ull) * 0x9e3779b97f4a7c15ull;
	return (at ^ at >> 29) * 0xbf58476d1ce4e5b9ull >> 56;
}

static void fill(const struct cmd *c)
{
	for (int i = 0; i < c->n; i++)
		bytes[i] = byte_at(c->conn, c->at + i);
}

static void check(const struct cmd *c, struct reply *r, const char *from)
{
	for (int i = 0; i < r->r; i++)
		if ((unsigned char)from[i] != byte_at(c->conn, c->at + i)) {
			snprintf(r->text, sizeof(r->text), "WRONG at %d", i);
			return;
		}
}

static void bits(struct reply *r, unsigned events)
{
	snprintf(r->text, sizeof(r->text), "%s%s%s%s%s%s", events & POLLIN ? "IN " : "", events & POLLOUT ? "OUT " : "",
		 events & POLLRDHUP ? "RDHUP " : "", events & POLLHUP ? "HUP " : "", events & POLLERR ? "ERR " : "",
		 events & POLLNVAL ? "NVAL " : "");
}

static int by_select(int fd, struct reply *r, struct timeval *t)
{
	fd_set in, out, pri;
	int n;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	out = pri = in;
	n = select(fd + 1, &in, t ? &out : NULL, &pri, t);
	snprintf(r->text, sizeof(r->text), "%d %d %d", FD_ISSET(fd, &in) != 0, t && FD_ISSET(fd, &out), FD_ISSET(fd, &pri) != 0);
	return n;
}

static int by_epoll(int ep, struct reply *r, int ms, int masked)
{
	struct epoll_event ev[CONNS * 2];
	int n, at = 0;

	/* What has become ready a moment ago may be told of by the next wait. */
	if (!ms) {
		epoll_wait(ep, ev, CONNS * 2, 0);
		usleep(100);
	}
	n = masked ? epoll_pwait(ep, ev, CONNS * 2, ms, &(sigset_t){0}) : epoll_wait(ep, ev, CONNS * 2, ms);
	if (ms)		/* who else is ready by now is a matter of time */
		return n > 0;
	for (unsigned k = 0; k < CONNS; k++)
		for (int i = 0; i < n; i++)
			if (ev[i].data.u32 == k && at < (int)sizeof(r->text) - 20)
				at += sprintf(r->text + at, "%u:%x ", k, ev[i].events);
	return n;
}

static int in_child(int fd, const struct cmd *c)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(send(fd, bytes, c->n, MSG_NOSIGNAL) == c->n ? 7 : 1);
	waitpid(pid, &status, 0);
	return status == 7 << 8 ? c->n : -1;
}

static int by_file(int fd, const struct cmd *c)
{
	char name[] = "/tmp/gen.XXXXXX";
	int file = mkstemp(name), r;

	unlink(name);
	if (write(file, bytes, c->n) != c->n)
		_exit(3);
	lseek(file, 0, SEEK_SET);
	r = sendfile(fd, file, NULL, c->n);
	close(file);
	return r;
}

/* Through a socketpair to ourselves, in place of the number it had. */
static int passed(int fd)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0}, x = 0;
	struct iovec v = {&x, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int sv[2], got;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) || sendmsg(sv[0], &m, 0) != 1 || recvmsg(sv[1], &m, 0) != 1)
		return -1;
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(got));
	close(sv[0]);
	close(sv[1]);
	fcntl(got, F_SETFD, FD_CLOEXEC);
	return got;
}

static int on_off(int fd, int level, int name, int v)
{
	return setsockopt(fd, level, name, &v, sizeof(v));
}

static int several(int fd, const struct cmd *c, int sends)
{
	struct iovec v[2] = {{bytes, c->n / 2}, {bytes + c->n / 2, c->n - c->n / 2}};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
	int r = sends ? sendmmsg(fd, m, 2, MSG_NOSIGNAL) : recvmmsg(fd, m, 2, MSG_DONTWAIT, NULL);

	return r < 0 ? r : (int)(m[0].msg_len + (r > 1 ? m[1].msg_len : 0));
}

static void sends(const struct cmd *c, struct reply *r, int fd)
{
	struct iovec v[3] = {{bytes, c->n / 3}, {bytes + c->n / 3, 0}, {bytes + c->n / 3, c->n - c->n / 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};

	fill(c);
	switch (c->kind) {
	case SEND: r->r = send(fd, bytes, c->n, MSG_NOSIGNAL); break;
	case WRITE: r->r = write(fd, bytes, c->n); break;
	case WRITEV: r->r = writev(fd, v, 3); break;
	case SENDMSG: r->r = sendmsg(fd, &m, MSG_NOSIGNAL); break;
	case SENDMMSG: r->r = several(fd, c, 1); break;
	case SENDFILE: r->r = by_file(fd, c); break;
	case SEND_CHILD: r->r = in_child(fd, c); break;
	case SEND_FAULT: r->r = send(fd, (void *)4096, c->n, MSG_NOSIGNAL); break;
	case SEND_NOTHING: r->r = send(fd, bytes, 0, MSG_NOSIGNAL); break;
	case SEND_MORE:
		r->r = send(fd, bytes, c->n / 2, MSG_MORE | MSG_NOSIGNAL);
		r->r += send(fd, bytes + c->n / 2, c->n - c->n / 2, MSG_NOSIGNAL);
		break;
	case SEND_CORKED:
		on_off(fd, IPPROTO_TCP, TCP_CORK, 1);
		r->r = send(fd, bytes, c->n / 2, MSG_NOSIGNAL);
		r->r += send(fd, bytes + c->n / 2, c->n - c->n / 2, MSG_NOSIGNAL);
		on_off(fd, IPPROTO_TCP, TCP_CORK, 0);
		break;
	}
}

static void receives(const struct cmd *c, struct reply *r, int fd)
{
	struct iovec v[3] = {{bytes, c->n / 3}, {bytes + c->n / 3, 0}, {bytes + c->n / 3, c->n - c->n / 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};

	memset(bytes, 0, c->n);
	switch (c->kind) {
	case RECV: r->r = recv(fd, bytes, c->n, 0); break;
	case READ: r->r = read(fd, bytes, c->n); break;
	case READV: r->r = readv(fd, v, 3); break;
	case RECVMSG: r->r = recvmsg(fd, &m, 0); break;
	case RECVFROM: r->r = recvfrom(fd, bytes, c->n, 0, NULL, NULL); break;
	case RECVMMSG: r->r = several(fd, c, 0); break;
	case PEEK: r->r = recv(fd, bytes, c->n, MSG_PEEK); break;
	case TRUNC: r->r = recv(fd, NULL, c->n, MSG_TRUNC); return;
	case WAITALL: case WAIT_RECV: r->r = recv(fd, bytes, c->n, MSG_WAITALL); break;
	case DONTWAIT: r->r = recv(fd, bytes, c->n, MSG_DONTWAIT); break;
	case RECV_FAULT: r->r = recv(fd, (void *)4096, c->n, MSG_DONTWAIT); return;
	case RECV_NOTHING: r->r = recv(fd, bytes, 0, MSG_DONTWAIT); return;
	}
	if (r->r > 0 && c->kind != RECVMMSG)
		check(c, r, bytes);
}

static void asks(const struct cmd *c, struct reply *r, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
	struct epoll_event ev = {.events = c->events, .data.u64 = c->conn};
	struct sockaddr_in a, b;
	socklen_t len = sizeof(int);
	int v = -1;

	switch (c->kind) {
	case POLL: r->r = poll(&p, 1, 0); bits(r, p.revents); break;
	case PPOLL: r->r = ppoll(&p, 1, &(struct timespec){0}, NULL); bits(r, p.revents); break;
	case SELECT: r->r = by_select(fd, r, &(struct timeval){0}); break;
	case FIONREAD_: r->r = ioctl(fd, FIONREAD, &v); sprintf(r->text, "%d", v); break;
	case SO_ERROR_: r->r = getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len); sprintf(r->text, "%d", v); break;
	case NODELAY: r->r = on_off(fd, IPPROTO_TCP, TCP_NODELAY, c->n & 1); break;
	case RCVLOWAT: r->r = on_off(fd, SOL_SOCKET, SO_RCVLOWAT, 1); break;
	case NONBLOCK: r->r = fcntl(fd, F_SETFL, c->n & 1 ? O_NONBLOCK : 0); break;
	case FIONBIO_: v = c->n & 1; r->r = ioctl(fd, FIONBIO, &v); break;
	case EP_ADD: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_ADD, fds[c->conn][0], &ev); break;
	case EP_MOD: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_MOD, fds[c->conn][0], &ev); break;
	case EP_DEL: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_DEL, fds[c->conn][0], NULL); break;
	case EP_WAIT: r->r = by_epoll(sets[c->set], r, 0, 0); break;
	case EP_PWAIT: r->r = by_epoll(sets[c->set], r, 0, 1); break;
	case SHUT_R: r->r = shutdown(fd, SHUT_RD); break;
	case SHUT_W: r->r = shutdown(fd, SHUT_WR); break;
	case DUP: r->r = (fds[c->conn][1] = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0 ? -1 : 0; break;
	case DUP2: r->r = dup2(fds[c->conn][0], fds[c->conn][1]) < 0 ? -1 : 0; break;
	case CLOSE_DUP: r->r = close(fds[c->conn][1]); break;
	case PASS: r->r = close(fds[c->conn][1]); fds[c->conn][1] = passed(fds[c->conn][0]); break;
	case WAIT_POLL: p.events = POLLIN; r->r = poll(&p, 1, -1); bits(r, p.revents); break;
	case WAIT_SELECT: r->r = by_select(fd, r, NULL); break;
	case WAIT_EPOLL: r->r = by_epoll(sets[c->set], r, -1, 0); break;
	case NAMES:
		len = sizeof(a);
		r->r = getsockname(fd, (struct sockaddr *)&a, &len);
		r->r |= getpeername(fd, (struct sockaddr *)&b, &len);
		sprintf(r->text, "%u %d %d", len, a.sin_family == AF_INET, a.sin_port != b.sin_port);
		break;
	}
}

static void set_up(const struct cmd *c, struct reply *r)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = fds[c->conn][0], n = 0;

	switch (c->kind) {
	case LISTEN:
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r->r = bind(listener, (struct sockaddr *)&a, len) | listen(listener, 10);
		getsockname(listener, (struct sockaddr *)&r->addr, &len);
		for (int i = 0; i < SETS; i++)
			sets[i] = epoll_create1(EPOLL_CLOEXEC);
		break;
	case CONNECT:
		fd = fds[c->conn][0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r->r = connect(fd, (struct sockaddr *)&c->addr, sizeof(c->addr));
		on_off(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		break;
	case ACCEPT:
		fd = fds[c->conn][0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		r->r = fd < 0 ? -1 : 0;
		on_off(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		break;
	case CLOSE:
		if (c->dup)
			close(fds[c->conn][1]);
		r->r = close(fd);
		break;
	case ARRIVED:
		for (int i = 0; i < 8000 && !(r->r = ioctl(fd, FIONREAD, &n)) && n != c->n; i++)
			i > 50 ? usleep(100) : (void)sched_yield();
		if (n != c->n)
			sprintf(r->text, "LOST: %d of %d", n, c->n);
		break;
	case ENDED:
		for (int i = 0; i < 8000; i++) {
			struct pollfd p = {.fd = fd, .events = POLLRDHUP};

			if (poll(&p, 1, 0) == 1 && p.revents & c->events)
				return;
			i > 50 ? usleep(100) : (void)sched_yield();
		}
		sprintf(r->text, "NO END");
		break;
	}
}

static void perform(const struct cmd *c, struct reply *r)
{
	int fd = fds[c->conn][c->dup];

	memset(r, 0, sizeof(*r));
	errno = 0;
	if (c->kind <= SEND_CHILD)
		sends(c, r, fd);
	else if (c->kind <= RECV_NOTHING || c->kind == WAIT_RECV)
		receives(c, r, fd);
	else if (c->kind < KINDS)
		asks(c, r, fd);
	else
		set_up(c, r);
	r->err = r->r < 0 ? errno : 0;
}

/* The second thread of each process. */
static struct cmd job;
static struct reply job_reply;
static int job_state;	/* 1 to do, 2 done */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void state(int from, int to)
{
	pthread_mutex_lock(&lock);
	while (job_state != from)
		pthread_cond_wait(&changed, &lock);
	job_state = to;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *second(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (job_state != 1)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		perform(&job, &job_reply);
		state(1, 2);
	}
	return arg;
}

/* start: without waiting for the result, which JOIN fetches. */
static void here(const struct cmd *c, struct reply *r)
{
	if (!c->thread && c->kind != JOIN) {
		perform(c, r);
		return;
	}
	if (c->kind != JOIN) {
		job = *c;
		state(0, 1);
	}
	memset(r, 0, sizeof(*r));
	if (c->start)
		return;
	state(2, 0);
	*r = job_reply;
}

static void all(int fd, void *what, size_t len, int out)
{
	if ((out ? send(fd, what, len, MSG_NOSIGNAL) : recv(fd, what, len, MSG_WAITALL)) != (ssize_t)len)
		_exit(3);
}

static int other(void)
{
	struct cmd c;
	struct reply r;
	pthread_t t;

	pthread_create(&t, NULL, second, NULL);
	for (;;) {
		all(0, &c, sizeof(c), 0);
		if (c.kind == QUIT)
			return 0;
		here(&c, &r);
		all(0, &r, sizeof(r), 1);
	}
}

/* --- the first process: the model --- */

struct half {
	int unread;		/* bytes that have arrived and are unread */
	uint64_t sent, got;
	int ended;		/* the other's end has come */
	int shut_r, shut_w, nonblocking, dup, events[SETS];
};

static struct half model[CONNS][2];
static int to_other, made;
static struct sockaddr_in address[2];

static void on_side(int side, struct cmd *c, struct reply *r)
{
	if (!side) {
		here(c, r);
		return;
	}
	all(to_other, c, sizeof(*c), 1);
	all(to_other, r, sizeof(*r), 0);
}

static void plain(int side, int kind, int conn, int n, unsigned events)
{
	struct cmd c = {.kind = kind, .conn = conn, .n = n, .events = events, .addr = address[!side],
			.dup = kind == CLOSE && model[conn][side].dup};
	struct reply r;

	on_side(side, &c, &r);
	if (kind == LISTEN)
		address[side] = r.addr;
	if (r.r < 0 || *r.text)
		printf("  then on %d.%d: %d %s %s\n", conn, side, r.r, r.err ? strerrorname_np(r.err) : "", r.text);
}

static void settle(int conn, int side)
{
	struct half *h = &model[conn][side];

	plain(side, ARRIVED, conn, h->unread, 0);
	if (h->ended)
		plain(side, ENDED, conn, 0, h->shut_w ? POLLHUP : POLLRDHUP);
}

static void reconnect(int conn, int first)
{
	int side = conn & 1;

	if (!first) {
		for (int s = 0; s < 2; s++)	/* nobody closes over unread bytes: that would be a reset */
			if (model[conn][s].unread) {
				struct cmd c = {.kind = RECV, .conn = conn, .n = model[conn][s].unread, .at = model[conn][s].got};
				struct reply r;

				on_side(s, &c, &r);
			}
		plain(0, CLOSE, conn, 0, 0);
		plain(1, CLOSE, conn, 0, 0);
	}
	memset(model[conn], 0, sizeof(model[conn]));
	model[conn][0].sent = model[conn][1].sent = 0;
	plain(side, CONNECT, conn, 0, 0);
	plain(!side, ACCEPT, conn, 0, 0);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static int is_send(int kind)
{
	return kind <= SEND_CHILD && kind != SEND_FAULT && kind != SEND_NOTHING;
}

static int is_wait(int kind)
{
	return kind >= WAIT_POLL && kind <= WAIT_RECV;
}

/* Is the outcome certain? May change what is asked for so that it is. */
static int certain(struct cmd *c, const struct half *h, const struct half *peer)
{
	if (is_wait(c->kind))	/* ended by a send of the other side */
		return !h->unread && !h->ended && !h->shut_r && !peer->shut_w && !h->nonblocking &&
		       (c->kind != WAIT_EPOLL || (h->events[c->set] & EPOLLIN && !(h->events[c->set] & (EPOLLOUT | EPOLLONESHOT))));
	/* Bytes that a peer cannot send again stay with the process (docs/COMPATIBILITY.md). */
	if ((c->kind == SEND_CHILD || c->kind == PASS) && h->unread && (h->ended || getenv("GEN_CAREFUL")))
		return 0;
	if (is_send(c->kind)) {
		if (peer->shut_r && peer->shut_w)
			return 0;	/* answered by a reset */
		if (h->shut_w)
			return c->kind == SEND || c->kind == SENDMSG;	/* EPIPE */
		return peer->unread + c->n <= MOST;
	}
	switch (c->kind) {
	case RECV: case READ: case READV: case RECVMSG: case RECVFROM: case PEEK: case TRUNC:
		return h->unread || h->ended || h->shut_r || h->nonblocking;
	case WAITALL:
		return h->unread >= c->n || h->ended || h->shut_r || h->nonblocking;
	case SEND_NOTHING: case SEND_FAULT:
		return !h->shut_w;
	case EP_ADD: case EP_MOD: case EP_DEL:
		return 1;
	case SHUT_W:
		return !h->shut_w && !(h->shut_r && peer->unread + 1);
	case SHUT_R:
		return !h->shut_r && !h->shut_w && !peer->shut_w;
	case DUP:
		return !h->dup;
	case DUP2: case CLOSE_DUP: case PASS:
		return h->dup;
	}
	return 1;
}

static void account(const struct cmd *c, const struct reply *r, struct half *h, struct half *peer)
{
	if (is_send(c->kind) && r->r > 0) {
		h->sent += r->r;
		peer->unread += r->r;
	}
	if (((c->kind >= RECV && c->kind <= DONTWAIT && c->kind != PEEK) || c->kind == WAIT_RECV) && r->r > 0) {
		h->unread -= r->r;
		h->got += r->r;
	}
	switch (c->kind) {
	case SHUT_W: h->shut_w = 1; peer->ended = 1; break;
	case SHUT_R: h->shut_r = 1; break;
	case NONBLOCK: case FIONBIO_: h->nonblocking = c->n & 1; break;
	case DUP: h->dup = 1; break;
	case CLOSE_DUP: h->dup = 0; break;
	case EP_ADD: if (!r->r) h->events[c->set] = c->events; break;
	case EP_MOD: if (!r->r) h->events[c->set] = c->events; break;
	case EP_DEL: h->events[c->set] = 0; break;
	}
}

static void say(int i, const struct cmd *c, int side, const struct reply *r)
{
	printf("%d: %s %d.%d%s%s", i, names[c->kind], c->conn, side, c->dup ? " dup" : "", c->thread ? " thread" : "");
	if (c->kind <= RECV_NOTHING || c->kind == WAIT_RECV)
		printf(" %d", c->n);
	if (c->kind >= EP_ADD && c->kind <= EP_PWAIT)
		printf(" set %d %x", c->set, c->events);
	printf(" = %d%s%s%s%s\n", r->r, r->err ? " " : "", r->err ? strerrorname_np(r->err) : "", *r->text ? " " : "", r->text);
}

/* A thread waits, and the other side sends what it waits for. */
static void wait_and_send(int i, struct cmd *c, int side)
{
	struct half *h = &model[c->conn][side], *peer = &model[c->conn][!side];
	struct cmd s = {.kind = SEND, .conn = c->conn, .n = c->n, .at = peer->sent}, join = {.kind = JOIN};
	struct reply r;

	c->thread = c->start = 1;
	on_side(side, c, &r);
	if (i & 1)
		usleep(1000);	/* asleep, or on its way to sleep */
	on_side(!side, &s, &r);
	account(&s, &r, peer, h);
	on_side(side, &join, &r);
	account(c, &r, h, peer);
	say(i, c, side, &r);
	settle(c->conn, side);
	made += 2;
}

static void one(uint64_t seed, int i)
{
	uint64_t x = mix(mix(seed) + i), y = mix(x);
	int side = x >> 8 & 1, rare = (x >> 40) % 16;
	struct cmd c = {.kind = (x >> 16) % KINDS, .conn = (x >> 10) % CONNS, .n = 1 + (y & 15 ? y >> 8 & 255 : (y >> 8) % 5000),
			.thread = (y >> 30 & 3) == 0, .set = y >> 33 & 1};
	static const unsigned asked[] = {EPOLLIN, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP, EPOLLOUT, 0};
	struct half *h = &model[c.conn][side], *peer = &model[c.conn][!side];
	struct reply r;

	c.events = asked[(y >> 34) % 5];
	if ((c.kind == SHUT_R || c.kind == SHUT_W || c.kind == SEND_CHILD || c.kind == PASS || c.kind == SENDFILE) && rare)
		return;
	if (c.kind == RECONNECT) {
		if (rare > 3)
			return;
		reconnect(c.conn, 0);
		printf("%d: reconnect %d\n", i, c.conn);
		made += 4;
		return;
	}
	c.dup = h->dup && y >> 32 & 1;
	c.at = is_send(c.kind) ? h->sent : h->got;
	if (!certain(&c, h, peer))
		return;
	if (is_wait(c.kind)) {
		wait_and_send(i, &c, side);
		return;
	}
	if (c.kind == SEND_CHILD)
		c.thread = 0;
	on_side(side, &c, &r);
	account(&c, &r, h, peer);
	say(i, &c, side, &r);
	made++;
	if (is_send(c.kind) || c.kind == SHUT_W)
		settle(c.conn, !side);
	if (c.kind == SHUT_W && h->ended)
		settle(c.conn, side);
}

static void start_other(void)
{
	char self[500] = "", *wrap = getenv("GEN_WRAP"), line[800];
	int sv[2];

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		exit(3);
	to_other = sv[0];
	if (fork())
		return;
	dup2(sv[1], 0);
	snprintf(line, sizeof(line), "exec %s %s other", wrap ? wrap : "", self);
	execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	_exit(3);
}

int main(int argc, char **argv)
{
	struct cmd quit = {.kind = QUIT};
	pthread_t t;

	alarm(getenv("GEN_LIMIT") ? atoi(getenv("GEN_LIMIT")) : 300);
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && !strcmp(argv[1], "other"))
		return other();
	if (argc < 3) {
		fprintf(stderr, "usage: gen SEED CALLS [KEEP...]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	start_other();
	pthread_create(&t, NULL, second, NULL);
	plain(0, LISTEN, 0, 0, 0);
	plain(1, LISTEN, 0, 0, 0);
	for (int i = 0; i < CONNS; i++)
		reconnect(i, 1);
	if (argc > 3)
		for (int i = 3; i < argc; i++)
			one(strtoull(argv[1], NULL, 10), atoi(argv[i]));
	else
		for (int i = 0; made < atoi(argv[2]); i++)
			one(strtoull(argv[1], NULL, 10), i);
	all(to_other, &quit, sizeof(quit), 1);
	wait(NULL);
	printf("end\n");
	return 0;
}
