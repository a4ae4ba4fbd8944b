/*
 * The differential cases: small programs of two ends that write down what every call of theirs
 * returned. Nothing here knows of Shunt. A case is right when its transcript is the same bare and
 * shunted, so a transcript never holds times, ports, process ids, or anything else that may differ
 * between two bare runs.
 *
 * The tested end does the interesting calls and the peer supplies what it needs. They agree about
 * the order of things over a Unix socket of their own (tell, await, meet), never by sleeping.
 */
#ifndef TESTS_CALLS_CASES_H
#define TESTS_CALLS_CASES_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>

struct end {
	const char *name;	/* "tested" or "peer" */
	int fd;			/* the connection, unless the case makes its own */
	int lfd;		/* the listener, in the end that accepts */
	int ctl;		/* to the other end */
	int out;		/* the transcript of this end */
	int client;		/* this end connects, the other one listens */
	struct sockaddr_storage addr;	/* of the listener */
	socklen_t addrlen;
};

enum {
	RAW = 1,	/* the case connects by itself; the tested end is the client */
	PROCS = 2,	/* two processes only: kills, execs or closes everything */
	ALONE = 4,	/* only the tested end, no peer */
	DUAL = 8,	/* an IPv6 listener that takes IPv4, and an IPv4 client */
	IPV6 = 16,	/* both over IPv6 */
	NOWARM = 32,	/* no warming up even when asked */
	NOFLIP = 64,	/* not with SHUNT_FLIP: the kernel's own counters are looked at */
};

struct test {
	const char *name;
	int flags;
	void (*tested)(struct end *e);
	void (*peer)(struct end *e);
};

#define FILES(X) X(connect) X(accept) X(stream) X(receive) X(timeouts) X(shut) X(reset) X(epoll) \
	X(epoll_modes) X(epoll_sets) X(poll) X(signals) X(vectors) X(files) X(fds) X(close) \
	X(options) X(processes) X(threads) X(many) X(pointers) X(flags) X(pipes) X(messages) X(stdio) \
	X(lengths) X(async) X(halves) X(select) X(interrupts) X(epoll_more) X(raw) X(share) X(tuning)
#define X(file) extern const struct test cases_##file[];
FILES(X)
#undef X

/* The transcript. */
void say(struct end *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
long result(struct end *e, const char *what, long r);	/* r, or -1 and the name of errno */
void text(struct end *e, const char *what, const char *buf, long r);	/* result and the bytes */
void bits(struct end *e, const char *what, unsigned events);	/* POLL… or EPOLL… bits */
#define TRY(e, call) result(e, #call, (long)(call))
#define MUST(e, call) must(e, #call, (long)(call))
long must(struct end *e, const char *what, long r);	/* silent unless it fails; then exits */

/* Handshakes. */
void tell(struct end *e);
void await(struct end *e);
void meet(struct end *e);
void pass(struct end *e, const void *buf, size_t len);	/* a value for the other end */
void take(struct end *e, void *buf, size_t len);
void arrived(struct end *e, int fd, int n);	/* until n bytes can be read */
void ended(struct end *e, int fd, short event);	/* until poll reports event */
void asleep(struct end *e, pid_t tid);		/* until that thread of this process sleeps */
double now(void);				/* seconds */
int settle(void);				/* a short while in ms, for waits that must not end */
long hidden(long n);				/* n, unknown to the compiler: for wrong arguments */

/* Connections. */
int dial(struct end *e);		/* another connection to the listener */
int pick_up(struct end *e);		/* accepts one */
int make_listener(struct end *e, int flags);
void warm(struct end *e, int fd);	/* both ends: traffic for TEST_WARM milliseconds */
void put(struct end *e, int fd, const char *s);
void get(struct end *e, int fd, void *buf, size_t len);	/* exactly len, or exits */
void nonblock(struct end *e, int fd, int on);
void show(struct end *e, int fd, size_t len, int flags);	/* recv and text */
void drain(struct end *e, int fd);	/* until the end of the stream, counted */
short polled(int fd, short events, int timeout);	/* revents, or 0 */
void reset_on_close(struct end *e, int fd);

/* What many cases do. */
void ask(struct end *e, int fd);	/* sends "echo" and shows what comes back */
void echo_peer(struct end *e);		/* a peer: sends back what comes, until the end */
void meet_only(struct end *e);		/* a peer that does nothing but meet */
void nothing(struct end *e);		/* one that does not even that */
void so_error(struct end *e, int fd);
void set_int(struct end *e, int fd, int level, int name, const char *what, int v);
void get_int(struct end *e, int fd, int level, int name, const char *what);
#define SET(fd, level, name, v) set_int(e, fd, level, name, "set " #name, v)
#define GET(fd, level, name) get_int(e, fd, level, name, #name)

/* epoll. */
int set_of(struct end *e, int fd, unsigned events);	/* a set with one member */
void add(struct end *e, int ep, int fd, unsigned events, uint64_t data);
void modify(struct end *e, int ep, int fd, unsigned events);
void wait_on(struct end *e, int ep, int timeout);	/* epoll_wait and the events, data not shown */

/* Processes. */
void become(struct end *e, const char *name);	/* another name in the transcript */
void reap(struct end *e, pid_t pid);		/* waits, and says how it ended */
void send_fd(struct end *e, int over, int fd);
int recv_fd(struct end *e, int over);

/* SIGPIPE, counted per thread. */
void count_sigpipe(struct end *e);
int sigpipes(void);	/* since the last call */

/* Threads of a case. */
struct job {
	struct end *e;
	void (*work)(struct job *j);
	int fd;
	long result;
	int err;
	volatile pid_t tid;
	volatile int done;
	char buf[64];
	pthread_t thread;
};
void job_start(struct end *e, struct job *j, void (*work)(struct job *j), int fd);
void job_join(struct end *e, struct job *j);
void job_recv(struct job *j);	/* work: recv(fd, buf, sizeof(buf)) */
void job_report(struct end *e, const char *what, struct job *j);

/* Bytes that depend on their position. */
void pattern(unsigned char *buf, size_t len, uint64_t at);
size_t mismatch(const unsigned char *buf, size_t len, uint64_t at);	/* len if all are right */
void send_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk);
void recv_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk);

/* What an exec'ed program does with a connection it inherited. */
int cases_exec(int fd);

int run_end(const struct test *t, struct end *e);

#endif
