/* How much a connection takes that nobody reads. Amounts differ, so the transcript has none. */
#include "cases.h"

#define ROUND 3000000	/* bytes: less than tcp_wmem lets a socket's send buffer take */

/* Blocking: everything goes in. */
static void send_all(struct end *e, size_t bytes)
{
	static char buf[1 << 16];
	ssize_t got = 1;

	while (bytes && got > 0) {
		got = send(e->fd, buf, bytes < sizeof(buf) ? bytes : sizeof(buf), MSG_NOSIGNAL);
		bytes -= got > 0 ? (size_t)got : 0;
	}
	say(e, "%zu bytes left: %s", bytes, got > 0 ? "all sent" : strerror(errno));
}

static void read_all(struct end *e, size_t bytes)
{
	static char buf[1 << 16];
	ssize_t got = 1;

	while (bytes && got > 0) {
		got = recv(e->fd, buf, bytes < sizeof(buf) ? bytes : sizeof(buf), 0);
		bytes -= got > 0 ? (size_t)got : 0;
	}
	say(e, "%zu bytes left: %s", bytes, got > 0 ? "all read" : got ? strerror(errno) : "end");
}

/* Both send before they read, three times. */
static void both_first(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		send_all(e, ROUND);
		read_all(e, ROUND);
	}
	meet(e);
}

/* The peer reads nothing before everything has been sent, and the end behind it. */
static void unread(struct end *e)
{
	meet(e);
	send_all(e, ROUND);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	show(e, e->fd, 10, 0);
}

static void unread_peer(struct end *e)
{
	meet(e);
	meet(e);
	read_all(e, ROUND);
	show(e, e->fd, 10, 0);
	put(e, e->fd, "read");
}

/* The same, and the sender has closed its end and is gone. */
static void left(struct end *e)
{
	meet(e);
	send_all(e, ROUND);
	TRY(e, close(e->fd));
	meet(e);
}

static void left_peer(struct end *e)
{
	meet(e);
	meet(e);
	read_all(e, ROUND);
	show(e, e->fd, 10, 0);
}

const struct test cases_room[] = {
	{"room_both_first", 0, both_first, both_first},
	{"room_unread", 0, unread, unread_peer},
	{"room_left", PROCS, left, left_peer},
	{NULL, 0, NULL, NULL},
};
