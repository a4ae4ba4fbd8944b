/* SPDX-License-Identifier: MIT */
/* A call that is asked for, what it returned, and who does what with it. gen.c says what this is for. */
#ifndef TESTS_CALLS_GEN_H
#define TESTS_CALLS_GEN_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define CONNS 4
#define SETS 2
#define MOST 12000	/* unread bytes of a direction: no send ever waits */

enum kind {
	SEND,
	WRITE,
	WRITEV,
	SENDMSG,
	SENDMMSG,
	SENDFILE,
	SEND_MORE,
	SEND_CORKED,
	SEND_FAULT,
	SEND_NOTHING,
	SEND_CHILD,
	RECV,
	READ,
	READV,
	RECVMSG,
	RECVFROM,
	RECVMMSG,
	PEEK,
	TRUNC,
	WAITALL,
	DONTWAIT,
	RECV_FAULT,
	RECV_NOTHING,
	POLL,
	PPOLL,
	SELECT,
	FIONREAD_,
	SO_ERROR_,
	NODELAY,
	NONBLOCK,
	FIONBIO_,
	RCVLOWAT,
	EP_ADD,
	EP_MOD,
	EP_DEL,
	EP_WAIT,
	EP_PWAIT,
	SHUT_R,
	SHUT_W,
	DUP,
	DUP2,
	CLOSE_DUP,
	PASS,
	RECONNECT,
	WAIT_POLL,
	WAIT_SELECT,
	WAIT_EPOLL,
	WAIT_RECV,
	NAMES,
	EXEC,
	KINDS,
	/* not part of a sequence */
	LISTEN, CONNECT, ACCEPT, CLOSE, ARRIVED, ENDED, JOIN, QUIT,
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

/* --- in both processes --- */

extern int fds[CONNS][2], listener, sets[SETS];	/* the number of a connection, and a second one */

/* The calls: those that move bytes, those that ask and change, and those before and behind a sequence. */
void move(const struct cmd *c, struct reply *r, int fd);
void ask(const struct cmd *c, struct reply *r, int fd);
void arrange(const struct cmd *c, struct reply *r);
int set_option(int fd, int level, int name, int v);

/* Makes a call in this process. start: without waiting for the result, which JOIN fetches. */
void here(const struct cmd *c, struct reply *r);
void start_second(void);	/* the thread that it may be made in */
int other(char **kept);	/* does as told until the end; `kept`: numbers of descriptors it has from before an exec */
/* All of it over a socket, or the end of this process. */
void all(int fd, void *what, size_t len, int out);

/* --- in the first process: the model --- */

struct half {
	int unread;		/* bytes that have arrived and are unread */
	uint64_t sent, got;
	int ended;		/* the other's end has come */
	int shut_r, shut_w, nonblocking, dup, events[SETS];
	int given;		/* a child or a passed descriptor may use it, too: it stays on TCP */
};

extern struct half model[CONNS][2];

int is_send(int kind);
int is_wait(int kind);
/* It has unread bytes, which another process may not get. */
int is_kept_back(const struct half *h, const struct half *peer);
/* Is the outcome certain? May change what is asked for so that it is. */
int certain(struct cmd *c, const struct half *h, const struct half *peer);
/* Applies a call's changes to the model. */
void account(const struct cmd *c, const struct reply *r, struct half *h, struct half *peer);

#endif
