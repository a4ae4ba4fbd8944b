/* SPDX-License-Identifier: MIT */
/*
 * Connections that change hands. A plain program: it knows nothing of Shunt.
 *
 *	hands server standard|pass|exec|keep|hide|fork COMMAND...
 *		says "port N", accepts one connection, and lets COMMAND echo what comes: with the connection as standard
 *		input and output; passed by SCM_RIGHTS to COMMAND, whose last words are "passed FD"; or itself, and
 *		executes itself again after some megabytes. With keep it holds a copy until its standard input ends. With
 *		hide the copy lies in the queue of a Unix socket until then, and is written to. With fork the process
 *		that echoes makes a child, which holds a copy for a while, after each megabyte.
 *	hands echo [FD]		hands stdio		hands passed FD
 *		echo: by read and write (FD: on that alone), by stdio, or on a connection that comes over FD
 *	hands client PORT [exec]
 *		sends and checks what comes back until its standard input ends, then says "checked N" or how it ended.
 *		exec: executes itself again after some megabytes
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE 65536
#define WINDOW (1 << 20)	/* bytes that are under way at most */
#define STEP (1 << 20)
#define IMAGE (32 << 20)	/* bytes that are carried before a process executes itself again */

static const char *self;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

#define MUST(call)                                                                                 \
	({                                                                                         \
		__typeof__(call) result_ = (call);                                                 \
		if (result_ < 0)                                                                   \
			fail(#call);                                                               \
		result_;                                                                           \
	})

static char *text(uint64_t number)
{
	char *made = malloc(24);

	snprintf(made, 24, "%llu", (unsigned long long)number);
	return made;
}

/* --- who serves --- */

static void put_all(int fd, const char *from, size_t bytes)
{
	while (bytes) {
		ssize_t sent = write(fd, from, bytes);

		if (sent < 0 && errno == EAGAIN) {
			struct pollfd room = { .fd = fd, .events = POLLOUT };

			poll(&room, 1, -1);
			continue;
		}
		if (sent <= 0)
			exit(2);
		from += sent;
		bytes -= (size_t)sent;
	}
}

/* Until so many bytes have come. False: the end has. */
static bool echo(int in, int out, uint64_t most)
{
	static char piece[PIECE];
	ssize_t got = 0;

	for (uint64_t all = 0; all < most; all += (uint64_t)got) {
		got = read(in, piece, sizeof(piece));
		if (got <= 0)
			return false;
		put_all(out, piece, (size_t)got);
	}
	return true;
}

static int echo_by_stdio(void)
{
	static char piece[1000];
	size_t got;

	while ((got = fread(piece, 1, sizeof(piece), stdin)) > 0)
		if (fwrite(piece, 1, got, stdout) != got || (got == 1000 ? 0 : fflush(stdout)))
			return 2;
	return ferror(stdin) != 0; /* what is still in stdout is written at exit */
}

static int echo_and_exec(int fd)
{
	if (echo(fd, fd, IMAGE))
		execl(self, self, "again", text((uint64_t)fd), NULL);
	return 0;
}

/* Each child holds the connection while the next megabyte is carried. */
static int echo_and_fork(int fd)
{
	pid_t child = 0;

	for (bool more = true; more;) {
		int hold[2];

		MUST(pipe(hold));
		child = MUST(fork());
		if (!child) {
			char c;

			close(hold[1]);
			(void)!read(hold[0], &c, 1);
			_exit(0);
		}
		close(hold[0]);
		more = echo(fd, fd, STEP);
		close(hold[1]);
		waitpid(child, NULL, 0);
		more = more && echo(fd, fd, STEP);
	}
	return 0;
}

static void pass(int through, int fd)
{
	char c = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &c, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	MUST(sendmsg(through, &message, 0));
}

static int passed(int through)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &c, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	int fd;

	MUST(recvmsg(through, &message, 0));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void await_end(int fd)
{
	char c;

	while (read(fd, &c, 1) > 0)
		;
}

static int listens(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	MUST(bind(fd, (struct sockaddr *)&at, sizeof(at)));
	MUST(listen(fd, 8));
	MUST(getsockname(fd, (struct sockaddr *)&at, &length));
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static pid_t serve_standard(int fd, char **command)
{
	pid_t child = MUST(fork());

	if (child)
		return child;
	dup2(fd, 0);
	dup2(fd, 1);
	close(fd);
	execvp(command[0], command);
	fail(command[0]);
	return 0;
}

/* The child is there before the connection. */
static pid_t serve_passed(int *through, char **command, int count)
{
	char *words[16];
	int pair[2];
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = MUST(fork());
	if (!child) {
		close(pair[0]);
		memcpy(words, command, sizeof(*words) * (size_t)count);
		words[count] = "passed";
		words[count + 1] = text((uint64_t)pair[1]);
		words[count + 2] = NULL;
		execvp(words[0], words);
		fail(words[0]);
	}
	close(pair[1]);
	*through = pair[0];
	return child;
}

static int server(const char *mode, char **command, int count)
{
	int listener = listens(), fd, through = -1, hidden[2];
	pid_t child = 0;

	if (!strcmp(mode, "pass"))
		child = serve_passed(&through, command, count);
	fd = MUST(accept(listener, NULL, NULL));
	if (strcmp(mode, "fork") && strcmp(mode, "exec"))
		close(listener);
	if (!strcmp(mode, "exec"))
		return echo_and_exec(fd);
	if (!strcmp(mode, "fork"))
		return echo_and_fork(fd);
	if (child)
		pass(through, fd);
	else
		child = serve_standard(fd, command);
	if (!strcmp(mode, "hide")) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hidden));
		pass(hidden[0], fd);
	}
	if (!strcmp(mode, "keep"))
		await_end(0);
	close(fd);
	if (!strcmp(mode, "hide")) {
		await_end(0);
		fd = passed(hidden[1]);
		(void)!send(fd, "WRONG", 5, MSG_NOSIGNAL);
		close(fd);
	}
	waitpid(child, NULL, 0);
	return 0;
}

/* --- who asks --- */

static char byte_at(uint64_t at)
{
	return (char)((at * 0x9e3779b97f4a7c15ull) >> 56);
}

struct client {
	int fd;
	uint64_t sent, got;
	bool execs, ends;
	int error;	/* the last */
};

/* False: the connection has ended. */
static bool check(struct client *client)
{
	static char piece[PIECE];
	ssize_t got = recv(client->fd, piece, sizeof(piece), 0);

	if (got < 0 && errno == EAGAIN)
		return true;
	if (got <= 0) {
		if (got < 0)
			client->error = errno;
		return false;
	}
	for (ssize_t i = 0; i < got; i++)
		if (piece[i] != byte_at(client->got + (uint64_t)i)) {
			printf("wrong at %llu\n", (unsigned long long)client->got + (uint64_t)i);
			exit(3);
		}
	client->got += (uint64_t)got;
	return true;
}

static void fill(struct client *client)
{
	static char piece[PIECE];
	ssize_t sent;

	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = byte_at(client->sent + i);
	sent = send(client->fd, piece, sizeof(piece), MSG_NOSIGNAL);
	if (sent > 0)
		client->sent += (uint64_t)sent;
	else if (errno != EAGAIN)
		client->error = errno;
}

static void go_on_anew(const struct client *client)
{
	execl(self, self, "go", text((uint64_t)client->fd), text(client->sent), text(client->got),
	      NULL);
	fail(self);
}

static int converse(struct client *client)
{
	uint64_t until = client->sent + IMAGE;
	bool more = true;

	while (more) {
		struct pollfd fds[2] = { { .fd = client->ends ? -1 : 0, .events = POLLIN }, { .fd = client->fd, .events = POLLIN } };
		char c;

		if (!client->ends && client->sent - client->got < WINDOW)
			fds[1].events |= POLLOUT;
		poll(fds, 2, -1);
		if (fds[0].revents && read(0, &c, 1) <= 0) {
			client->ends = true;
			shutdown(client->fd, SHUT_WR);
		}
		if (fds[1].revents & POLLOUT && !client->ends)
			fill(client);
		if (fds[1].revents & ~POLLOUT)
			more = check(client);
		if (client->execs && !client->ends && client->sent >= until)
			go_on_anew(client);
	}
	if (client->ends && client->got == client->sent)
		printf("checked %llu\n", (unsigned long long)client->got);
	else
		printf("ended early: %s\n", strerror(client->error));
	return client->ends && client->got == client->sent ? 0 : 4;
}

static int client_begin(const char *port, bool execs)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)atoi(port)) };
	int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
	struct client client = { .fd = fd, .execs = execs };

	MUST(connect(client.fd, (struct sockaddr *)&to, sizeof(to)));
	MUST(fcntl(client.fd, F_SETFL, O_NONBLOCK));
	return converse(&client);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	self = argv[0];
	if (!strcmp(what, "server") && argc > 2)
		return server(argv[2], argv + 3, argc - 3);
	if (!strcmp(what, "echo"))
		return echo(argc > 2 ? atoi(argv[2]) : 0, argc > 2 ? atoi(argv[2]) : 1, UINT64_MAX);
	if (!strcmp(what, "stdio"))
		return echo_by_stdio();
	if (!strcmp(what, "again") && argc > 2)
		return echo_and_exec(atoi(argv[2]));
	if (!strcmp(what, "passed") && argc > 2) {
		int fd = passed(atoi(argv[2]));

		return echo(fd, fd, UINT64_MAX);
	}
	if (!strcmp(what, "go") && argc > 4) {
		struct client client = { .fd = atoi(argv[2]), .sent = strtoull(argv[3], NULL, 10), .got = strtoull(argv[4], NULL, 10), .execs = true };

		return converse(&client);
	}
	if (!strcmp(what, "client") && argc > 2)
		return client_begin(argv[2], argc > 3);
	fputs("usage: see the source\n", stderr);
	return 2;
}
