/* SPDX-License-Identifier: MIT */
/*
 * The differential cases: small programs of two ends that write down what every call of theirs
 * returned. Nothing here knows of Shunt. A case is right when its transcript is the same bare and
 * shunted. So a transcript never holds times, ports, process ids, or anything else that may differ
 * between two bare runs.
 *
 * The tested end does the interesting calls and the peer supplies what it needs. They agree about
 * the order of things over a Unix socket of their own (tell, await, meet), never by sleeping.
 */
#ifndef TESTS_CALLS_CASES_H
#define TESTS_CALLS_CASES_H

#undef _FORTIFY_SOURCE	/* of a package's build: wrong arguments must reach the calls */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
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
#include <sys/uio.h>

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
	NOFLIP = 64,	/* not with `flip`: the kernel's own counters are looked at */
};

struct test {
	const char *name;
	int flags;
	void (*tested)(struct end *e);
	void (*peer)(struct end *e);
};

#define FILES(X) X(connect) X(accept) X(stream) X(receive) X(timeouts) X(shut) X(reset) X(epoll) \
	X(epoll_modes) X(epoll_sets) X(poll) X(signals) X(vectors) X(files) X(fds) X(close) \
	X(options) X(processes) X(threads) X(many) X(pointers) X(unmapped) X(flags) X(pipes) X(messages) X(stdio) \
	X(lengths) X(async) X(halves) X(select) X(interrupts) X(jumps) X(epoll_more) X(raw) X(share) X(tuning) X(user_timeout) X(ends) \
	X(owners) X(cancel) X(confine) X(room) X(faults) X(nested) X(locked) X(walk) X(given) \
	X(stopped) X(splice) X(variants)
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
int dial_warm(struct end *e);		/* both of these warmed up */
int pick_up_warm(struct end *e);
int make_listener(struct end *e, int flags);
void warm(struct end *e, int fd);	/* both ends: traffic for TEST_WARM milliseconds, or longer (main.c) */
void put(struct end *e, int fd, const char *s);
void get(struct end *e, int fd, void *buf, size_t len);	/* exactly len, or exits */
void nonblock(struct end *e, int fd, int on);
void show(struct end *e, int fd, size_t len, int flags);	/* recv and text */
void drain(struct end *e, int fd);	/* until the end of the stream, counted */
short polled(int fd, short events, int timeout);	/* revents, or 0 */
void reset_on_close(struct end *e, int fd);

/* Steps of many cases. */
void ask(struct end *e, int fd);	/* sends "echo" and shows what comes back */
void ask_often(struct end *e, int fd, int times);	/* the same without a word */
void finish(struct end *e, int fd);	/* no more from us, and the other end is shown */
void have(struct end *e, int n);	/* meets; n bytes can be read then */
void more(struct end *e, int n);	/* tells, awaits; then as well */
void supply(struct end *e, const char *s);	/* when told: sends it, and tells */
void offer(struct end *e, const char *s);	/* sends it, meets, and once more when it has been used */
void put_urgent(struct end *e);		/* "abc", "!" out of band, "def" */
void ready(struct end *e, const char *what, int fd);	/* poll for all three, at once */
void so_error(struct end *e, int fd);
void set_int(struct end *e, int fd, int level, int name, const char *what, int v);
void get_int(struct end *e, int fd, int level, int name, const char *what);
#define SET(fd, level, name, v) set_int(e, fd, level, name, "set " #name, v)
#define GET(fd, level, name) get_int(e, fd, level, name, #name)
void close_both(const int fd[2]);	/* of a pipe or a socketpair */
static inline struct iovec piece(const char *s, size_t len)
{
	return (struct iovec){.iov_base = (void *)s, .iov_len = len};
}
/* A message each for n pieces, each `step` behind the last: 0 is the same for all. */
void a_piece_each(struct mmsghdr *m, int n, struct iovec *v, int step);

/* Peers of many cases. */
void abc_peer(struct end *e);		/* offers "abc" */
void abc_later_peer(struct end *e);	/* sends it between two meetings */
void ten_peer(struct end *e);		/* offers "0123456789" */
/* Both ends have sent ten bytes that nobody has read. Later they are all still there, and there is nothing more. */
void tens(struct end *e);
void tens_peer(struct end *e);
void untouched(struct end *e);
void ten_later_peer(struct end *e);	/* after one more meeting */
void ten_only_peer(struct end *e);	/* and shows what has come, which should be nothing */
void one_byte_peer(struct end *e);	/* supplies "x" */
void parts_peer(struct end *e);		/* of job_in_parts: twelve bytes in three; then five, and the end */
void echo_peer(struct end *e);		/* sends back what comes, until the end */
void meet_only(struct end *e);		/* does nothing but meet */
void nothing(struct end *e);		/* not even that */

/* epoll. */
int set_of(struct end *e, int fd, unsigned events);	/* a set with one member */
void add(struct end *e, int ep, int fd, unsigned events, uint64_t data);
void modify(struct end *e, int ep, int fd, unsigned events);
void wait_on(struct end *e, int ep, int timeout);	/* epoll_wait and the events, data not shown */
void last_edge(struct end *e, int ep);	/* one more, and none behind it, also when what was unread is read */

/* Processes. */
void become(struct end *e, const char *name);	/* another name in the transcript */
void reap(struct end *e, pid_t pid);		/* waits, and says how it ended */
#define ROOM CMSG_SPACE(sizeof(int))
void attach_fd(struct msghdr *m, char *room, int fd);	/* room: ROOM bytes, aligned */
void send_fd(struct end *e, int over, int fd);
int recv_fd(struct end *e, int over);

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
void job_sleeps(struct end *e, struct job *j, void (*work)(struct job *j), int fd);	/* started, and now asleep */
void job_in_parts(struct end *e, struct job *j, int parts);	/* what it waits for comes in so many */
void job_join(struct end *e, struct job *j);
void job_report(struct end *e, const char *what, struct job *j);

/* Work: one call, its result and errno. */
#define JOB(name, call)				\
	void name(struct job *j)		\
	{					\
		j->result = (call);		\
		j->err = errno;			\
	}
void job_recv(struct job *j);	/* into buf */
void job_send(struct job *j);	/* until it fails */
void job_accept(struct job *j);	/* at the listener of its end */
void job_poll(struct job *j);	/* these wait for input */
void job_polled(struct job *j);	/* revents */
void job_select(struct job *j);
void job_epoll(struct job *j);	/* in a set of its own */
void job_wait(struct job *j);	/* fd is a set */

/* SIGPIPE, counted per thread. */
void count_sigpipe(struct end *e);
int sigpipes(void);	/* since the last call */

/* SIGUSR1, counted. */
extern volatile sig_atomic_t caught;
void on_signal(int sig);
void catch_signal(struct end *e, int flags);
void mask_signal(int how);
void block_signal(sigset_t *blocked, sigset_t *open);	/* the sets with it and without */
void hit(struct end *e, struct job *j);	/* when it sleeps */
void job_hit(struct end *e, struct job *j, void (*work)(struct job *j), int fd);	/* started, and hit */
void report_caught(struct end *e, const char *what, struct job *j);

/* Bytes that depend on their position. */
void pattern(unsigned char *buf, size_t len, uint64_t at);
size_t mismatch(const unsigned char *buf, size_t len, uint64_t at);	/* len if all are right */
int pattern_file(struct end *e, size_t len);
void send_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk);
void recv_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk);
void check_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk);	/* the same without a word */

/* The exec'ed program's part, with a connection it inherited. */
int cases_exec(int fd);

int run_end(const struct test *t, struct end *e);

#endif
