/* SPDX-License-Identifier: MIT */
/*
 * A connection whose ends are two processes. Both make it and use it by the names of calls, until it is on the link.
 * Then one end goes another road: ways ROAD CALL [PLUGIN [FILE]]. Roads are handle, deep and space. "raw" is an instruction
 * of the program's own, which nobody sees. The other end says in FILE what has come of it.
 */
#include "tests/calls/ways/ways.h"
#include "tests/kernel_call.h"
#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define SOME 1000
#define ROUNDS 400 /* exchanges that give it time to reach the link */

static struct ways_calls calls;
static unsigned char bytes[3 * SOME];

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- roads --- */

static void *symbol(void *from, const char *name)
{
	void *found = dlsym(from, name);

	if (!found)
		fail(name);
	return found;
}

static void by_handle(void)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY);

#define X(type, name, parameters) calls.name = symbol(libc, #name);
	WAYS_CALLS(X)
#undef X
}

static void by_plugin(void *plugin)
{
	void (*fill)(struct ways_calls *);

	if (!plugin) {
		puts(dlerror());
		exit(1);
	}
	fill = symbol(plugin, "ways_calls");
	fill(&calls);
}

static void take_road(const char *road, const char *plugin)
{
	if (!strcmp(road, "deep"))
		by_plugin(dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND));
	else if (!strcmp(road, "space"))
		by_plugin(dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW));
	else
		by_handle();
}

/* --- the ends --- */

static int listener(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in) { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)address, &length))
		fail("listener");
	return fd;
}

static void at_once(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static bool moves(int fd, bool sends, size_t count)
{
	unsigned char into[3 * SOME];

	for (size_t done = 0; done < count;) {
		ssize_t n = sends ? send(fd, bytes + done, count - done, MSG_NOSIGNAL) :
				    recv(fd, into, count - done, 0);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static int (*ask_track)(int fd);

/* Until both directions are on the link, where there is one. Both ends make the same exchanges: the first decides. */
static void warm(int fd, bool first)
{
	char go = 1;

	for (int i = 0; i < ROUNDS && go; i++) {
		if (first && (ask_track ? ask_track(fd) == 3 : i > 8))
			go = 0;
		if (first ? send(fd, &go, 1, 0) != 1 : recv(fd, &go, 1, 0) != 1)
			fail("exchange");
		if (first ? !moves(fd, true, SOME) || !moves(fd, false, SOME) :
			    !moves(fd, false, SOME) || !moves(fd, true, SOME))
			fail("exchange");
		poll(NULL, 0, 1);
	}
	if (first && ask_track)
		fprintf(stderr, "tracks %d\n", ask_track(fd));
}

/* --- calls --- */

static void say(const char *what, long result)
{
	printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

/* Bytes of the peer's are to be what they should. */
static void say_bytes(const char *what, ssize_t result, const void *got, size_t from)
{
	say(what, result);
	if (result > 0)
		puts(memcmp(got, bytes + from, (size_t)result) ? "other bytes" : "the bytes");
}

static long raw(long number, long a, long b, long c, long d)
{
	long result = kernel_call(number, a, b, c, d);

	errno = result < 0 ? (int)-result : errno;
	return result < 0 ? -1 : result;
}

static long raw_send(int fd, const void *at)
{
	return raw(SYS_sendto, fd, (long)at, SOME, MSG_NOSIGNAL);
}

static long sends(const char *call, int fd, unsigned char *at)
{
	struct iovec piece = { at, SOME };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &piece, .msg_iovlen = 1 } };

	if (!strcmp(call, "write"))
		return calls.write(fd, at, SOME);
	if (!strcmp(call, "writev"))
		return calls.writev(fd, &piece, 1);
	if (!strcmp(call, "pwritev2"))
		return calls.pwritev2(fd, &piece, 1, -1, 0);
	if (!strcmp(call, "send"))
		return calls.send(fd, at, SOME, 0);
	if (!strcmp(call, "sendto"))
		return calls.sendto(fd, at, SOME, 0, NULL, 0);
	if (!strcmp(call, "sendmsg"))
		return calls.sendmsg(fd, &message.msg_hdr, 0);
	if (!strcmp(call, "sendmmsg"))
		return calls.sendmmsg(fd, &message, 1, 0);
	return calls.syscall(SYS_sendto, fd, at, SOME, 0, NULL, 0);
}

static ssize_t receives(const char *call, int fd, unsigned char *into)
{
	struct iovec piece = { into, SOME };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &piece, .msg_iovlen = 1 } };
	int count;

	if (!strcmp(call, "read"))
		return calls.read(fd, into, SOME);
	if (!strcmp(call, "readv"))
		return calls.readv(fd, &piece, 1);
	if (!strcmp(call, "preadv2"))
		return calls.preadv2(fd, &piece, 1, -1, 0);
	if (!strcmp(call, "recv"))
		return calls.recv(fd, into, SOME, 0);
	if (!strcmp(call, "recvfrom"))
		return calls.recvfrom(fd, into, SOME, 0, NULL, NULL);
	if (!strcmp(call, "recvmsg"))
		return calls.recvmsg(fd, &message.msg_hdr, 0);
	if (!strcmp(call, "recvmmsg")) {
		count = calls.recvmmsg(fd, &message, 1, 0, NULL);
		return count == 1 ? (ssize_t)message.msg_len : -1;
	}
	return calls.syscall(SYS_recvfrom, fd, into, SOME, 0, NULL, NULL);
}

static bool is_one_of(const char *call, const char *all)
{
	const char *found = strstr(all, call);
	size_t length = strlen(call);

	return found && (found == all || found[-1] == ' ') &&
	       (!found[length] || found[length] == ' ');
}

/* The peer waits, sends SOME, and this end's wait is to hear of it. */
static void waits(const char *call, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 };
	struct timespec spec = { 20, 0 };
	struct timeval time = { 20, 0 };
	fd_set set;
	int epfd;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (!strcmp(call, "poll"))
		say(call, calls.poll(&pfd, 1, 20000));
	else if (!strcmp(call, "ppoll"))
		say(call, calls.ppoll(&pfd, 1, &spec, NULL));
	else if (!strcmp(call, "pselect"))
		say(call, calls.pselect(fd + 1, &set, NULL, NULL, &spec, NULL));
	else if (!strcmp(call, "select")) {
		say(call, calls.select(fd + 1, &set, NULL, NULL, &time));
		say("time went", time.tv_sec < 20);
	} else {
		epfd = calls.epoll_create1(0);
		say("epoll_ctl", calls.epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
		event.data.u64 = 0;
		say(call, !strcmp(call, "epoll_wait") ?
				  calls.epoll_wait(epfd, &event, 1, 20000) :
				  calls.epoll_pwait(epfd, &event, 1, 20000, NULL));
		say("data", (long)event.data.u64);
		say("close", calls.close(epfd));
	}
}

static void by_aio(const char *call, int fd, unsigned char *at)
{
	struct aiocb block = { .aio_fildes = fd, .aio_buf = at, .aio_nbytes = SOME };
	const struct aiocb *list[1] = { &block };
	struct timespec time = { 20, 0 };
	bool writes = !strcmp(call, "aio_write");

	say("submit", writes ? aio_write(&block) : aio_read(&block));
	say("suspend", aio_suspend(list, 1, &time));
	if (writes)
		say(call, aio_return(&block));
	else
		say_bytes(call, aio_return(&block), at, 0);
}

/* A number that closes, is shared, or is another's. */
static void numbers(int fd)
{
	unsigned char into[SOME];
	socklen_t length = sizeof(int);
	int other = calls.dup(fd), value = -1;

	say("dup", other >= 0);
	say("send by it", send(other, bytes, SOME, 0));
	say("close", calls.close(fd));
	say("and it is closed", send(fd, bytes, 1, MSG_NOSIGNAL));
	say("dup2", calls.dup2(other, fd) == fd);
	say("close", calls.close(other));
	say("F_GETFL", calls.fcntl(fd, F_GETFL));
	say("non-blocking", calls.fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
	say("recv", recv(fd, into, 1, 0));
	say("blocking", calls.fcntl(fd, F_SETFL, O_RDWR));
	say("SO_ERROR", calls.getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length));
	say("value", value);
	say("send", send(fd, bytes + SOME, SOME, 0));
	say_bytes("recv", recv(fd, into, SOME, MSG_WAITALL), into, 0);
	say("FIONREAD", calls.ioctl(fd, FIONREAD, &value));
	say("value", value);
	say("send", send(fd, bytes + 2 * SOME, SOME, 0));
	say("shutdown", calls.shutdown(fd, SHUT_WR));
	say("recv", recv(fd, into, SOME, 0));
}

static bool is_send(const char *call)
{
	return is_one_of(
		call,
		"write writev pwritev2 send sendto sendmsg sendmmsg syscall_send aio_write dprintf raw");
}

static void first_end(int fd, const char *road, const char *call)
{
	unsigned char into[SOME];

	if (!strcmp(call, "numbers")) {
		numbers(fd);
	} else if (is_send(call)) {
		say("send", send(fd, bytes, SOME, 0));
		if (!strcmp(road, "raw"))
			say(call, raw_send(fd, bytes + SOME));
		else if (!strcmp(call, "dprintf"))
			say(call, dprintf(fd, "%.*s", SOME, (char *)bytes + SOME));
		else if (!strcmp(call, "aio_write"))
			by_aio(call, fd, bytes + SOME);
		else
			say(call, sends(call, fd, bytes + SOME));
		say("send", send(fd, bytes + 2 * SOME, SOME, MSG_NOSIGNAL));
		say("recv", recv(fd, into, 1, 0));
	} else if (is_one_of(call, "poll ppoll select pselect epoll_wait epoll_pwait")) {
		say("send", send(fd, bytes, 1, 0));
		waits(call, fd);
		say_bytes("recv", recv(fd, into, SOME, MSG_WAITALL), into, 0);
	} else {
		say("send", send(fd, bytes, 1, 0));
		if (!strcmp(call, "aio_read"))
			by_aio(call, fd, into);
		else
			say_bytes(call, receives(call, fd, into), into, 0);
	}
	close(fd);
}

static void other_end(int fd, const char *call)
{
	unsigned char into[3 * SOME];
	ssize_t got;

	if (!strcmp(call, "numbers")) {
		say("there: send", recv(fd, into, 2 * SOME, MSG_WAITALL));
		say("there: send", send(fd, bytes, SOME, 0));
		say("there: recv", recv(fd, into, SOME, MSG_WAITALL));
		say("there: end", recv(fd, into, 1, 0));
	} else if (is_send(call)) {
		got = recv(fd, into, 3 * SOME, MSG_WAITALL);
		say_bytes("there: recv", got, into, 0);
		if (got == 3 * SOME)
			say("there: send", send(fd, bytes, 1, MSG_NOSIGNAL));
		else
			say("there: recv", recv(fd, into, 1, 0));
	} else {
		say("there: recv", recv(fd, into, 1, 0));
		say("there: send", send(fd, bytes, SOME, 0));
		say("there: end", recv(fd, into, 1, 0));
	}
	close(fd);
}

/* The process has been seen to go past: this one is the kernel's. */
static void another(void)
{
	struct sockaddr_in address;
	int from = listener(&address), fd = socket(AF_INET, SOCK_STREAM, 0);

	say("another", connect(fd, (struct sockaddr *)&address, sizeof(address)));
	close(fd);
	close(from);
}

int main(int count, char **words)
{
	struct sockaddr_in address;
	int fd, from, status = 0, told[2], through[2];
	pid_t child;

	if (count < 3)
		return 2;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)('a' + (i * 31 + i / 97) % 26);
	ask_track = (int (*)(int))dlsym(RTLD_DEFAULT, "shunt_api_track");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(told) || pipe(through))
		fail("pipe");
	child = fork();
	if (!child) {
		from = listener(&address);
		if (write(told[1], &address, sizeof(address)) != sizeof(address))
			fail("pipe");
		fd = accept(from, NULL, NULL);
		at_once(fd);
		close(from);
		warm(fd, false);
		fflush(stdout);
		if (!freopen(count > 4 ? words[4] : "/dev/null", "w", stdout))
			_exit(1);
		other_end(fd, words[2]);
		fflush(stdout);
		close(through[1]);	/* this process is there until the first end is through: a link's end is another error */
		if (read(through[0], &status, 1))
			fail("pipe");
		_exit(0);
	}
	if (read(told[0], &address, sizeof(address)) != sizeof(address))
		fail("pipe");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("connect");
	at_once(fd);
	take_road(words[1], count > 3 ? words[3] : "");
	warm(fd, true);
	first_end(fd, words[1], words[2]);
	close(through[1]);
	if (!strcmp(words[1], "raw"))
		another();
	waitpid(child, &status, 0);
	return status != 0;
}
