/* Connections, threads and byte patterns for the cases. */
#include "cases.h"

#include <signal.h>
#include <sys/syscall.h>

int make_listener(struct end *e, int flags)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int family = flags & (DUAL | IPV6) ? AF_INET6 : AF_INET;
	int fd = MUST(e, socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int zero = 0;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (family == AF_INET) {
		MUST(e, bind(fd, (struct sockaddr *)&v4, sizeof(v4)));
	} else {
		if (flags & DUAL)
			v6.sin6_addr = in6addr_any;
		MUST(e, setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)));
		MUST(e, bind(fd, (struct sockaddr *)&v6, sizeof(v6)));
	}
	MUST(e, listen(fd, 512));
	e->addrlen = sizeof(e->addr);
	MUST(e, getsockname(fd, (struct sockaddr *)&e->addr, &e->addrlen));
	if (flags & DUAL) {
		v4.sin_port = ((struct sockaddr_in6 *)&e->addr)->sin6_port;
		memcpy(&e->addr, &v4, sizeof(v4));
		e->addrlen = sizeof(v4);
	}
	return fd;
}

int dial(struct end *e)
{
	int fd = MUST(e, socket(e->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));

	MUST(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	return fd;
}

int pick_up(struct end *e)
{
	return MUST(e, accept4(e->lfd, NULL, NULL, SOCK_CLOEXEC));
}

/* The client asks and the server answers until the client has had enough and says so. */
void warm(struct end *e, int fd)
{
	const char *ms = getenv("TEST_WARM");
	double until = now() + (ms ? atoi(ms) : 0) / 1e3;
	char c = 0;

	if (!ms || atoi(ms) <= 0)
		return;
	while (c != 'd') {
		if (e->client) {
			c = now() < until ? 'w' : 'd';
			MUST(e, send(fd, &c, 1, 0) - 1);
		}
		get(e, fd, &c, 1);
		if (!e->client)
			MUST(e, send(fd, &c, 1, 0) - 1);
	}
}

void put(struct end *e, int fd, const char *s)
{
	size_t len = strlen(s);

	for (size_t n = 0; n < len;)
		n += MUST(e, send(fd, s + n, len - n, MSG_NOSIGNAL));
}

void get(struct end *e, int fd, void *buf, size_t len)
{
	for (size_t n = 0; n < len;) {
		ssize_t r = MUST(e, recv(fd, (char *)buf + n, len - n, 0));

		if (!r) {
			say(e, "FAILED: the stream ended %zu bytes early", len - n);
			exit(3);
		}
		n += r;
	}
}

void show(struct end *e, int fd, size_t len, int flags)
{
	char buf[4096];
	char what[40];

	snprintf(what, sizeof(what), "recv %zu%s%s%s", len, flags & MSG_PEEK ? " PEEK" : "",
		 flags & MSG_WAITALL ? " WAITALL" : "", flags & MSG_DONTWAIT ? " DONTWAIT" : "");
	text(e, what, buf, recv(fd, buf, len, flags));
}

void drain(struct end *e, int fd)
{
	char buf[4096];
	size_t sum = 0;
	ssize_t r;

	while ((r = recv(fd, buf, sizeof(buf), 0)) > 0)
		sum += r;
	say(e, "drained %zu bytes", sum);
	result(e, "then recv", r);
}

void nonblock(struct end *e, int fd, int on)
{
	int flags = MUST(e, fcntl(fd, F_GETFL));

	MUST(e, fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void reset_on_close(struct end *e, int fd)
{
	struct linger l = {.l_onoff = 1, .l_linger = 0};

	MUST(e, setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

static __thread volatile sig_atomic_t pipes;

static void on_sigpipe(int sig)
{
	(void)sig;
	pipes++;
}

void count_sigpipe(struct end *e)
{
	struct sigaction sa = {.sa_handler = on_sigpipe};

	pipes = 0;
	MUST(e, sigaction(SIGPIPE, &sa, NULL));
}

int sigpipes(void)
{
	int n = pipes;

	pipes = 0;
	return n;
}

static void *job_main(void *arg)
{
	struct job *j = arg;

	j->tid = syscall(SYS_gettid);
	j->work(j);
	__atomic_store_n(&j->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

void job_start(struct end *e, struct job *j, void (*work)(struct job *j), int fd)
{
	memset(j, 0, sizeof(*j));
	j->e = e;
	j->work = work;
	j->fd = fd;
	errno = pthread_create(&j->thread, NULL, job_main, j);
	MUST(e, errno ? -1 : 0);
	while (!j->tid)
		usleep(100);
}

void job_join(struct end *e, struct job *j)
{
	errno = pthread_join(j->thread, NULL);
	MUST(e, errno ? -1 : 0);
}

void job_recv(struct job *j)
{
	j->result = recv(j->fd, j->buf, sizeof(j->buf), 0);
	j->err = errno;
}

void job_report(struct end *e, const char *what, struct job *j)
{
	job_join(e, j);
	errno = j->err;
	text(e, what, j->buf, j->result);
}

/* A different byte at every place of any long stretch: the top of a mixed 64-bit position. */
static unsigned char byte_at(uint64_t at)
{
	at = (at + 1) * 0x9e3779b97f4a7c15ull;
	return (at ^ at >> 29) * 0xbf58476d1ce4e5b9ull >> 56;
}

void pattern(unsigned char *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(at + i);
}

size_t mismatch(const unsigned char *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != byte_at(at + i))
			return i;
	return len;
}

void send_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk)
{
	unsigned char *buf = malloc(chunk);

	while (len) {
		size_t want = len < chunk ? len : chunk;
		ssize_t r;

		pattern(buf, want, at);
		r = MUST(e, send(fd, buf, want, MSG_NOSIGNAL));
		at += r;
		len -= r;
	}
	free(buf);
}

void recv_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk)
{
	unsigned char *buf = malloc(chunk);
	size_t sum = 0;

	while (sum < len) {
		size_t want = len - sum < chunk ? len - sum : chunk;
		ssize_t r = MUST(e, recv(fd, buf, want, 0));
		size_t ok = mismatch(buf, r, at);

		if (!r || ok < (size_t)r) {
			say(e, "FAILED: %s at %llu", r ? "wrong byte" : "early end",
			    (unsigned long long)(at + ok));
			exit(3);
		}
		at += r;
		sum += r;
	}
	say(e, "received %zu bytes, all right", sum);
	free(buf);
}
