/* SPDX-License-Identifier: MIT */
/*
 * Two processes play echo over one connection. The client uses libc's calls. The server uses them, too, until the
 * connection has been in use for a while. From then on it does what its first word says by a ring of io_uring. It prints
 * the same bare and shunted, and knows nothing of Shunt.
 *
 *	rings WAY [SEED]
 *
 * Ways: see `ways` below; `mix` takes one of them for each message, by the seed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ring.h"

#define BEFORE 6000	/* messages by libc's calls, in which the connection comes to a link */
#define AFTER 300
#define LONGEST 3000	/* bytes of a message */
#define PATIENCE 20	/* s after which a process is taken to hang */

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static struct ring the_ring;

/* --- messages: a length of 2 bytes, and bytes that follow from it and a number --- */

static void message_make(unsigned char *bytes, uint32_t number, unsigned int length)
{
	bytes[0] = (unsigned char)length;
	bytes[1] = (unsigned char)(length >> 8);
	for (unsigned int i = 2; i < length; i++)
		bytes[i] = (unsigned char)(number * 31 + i);
}

static bool is_message(const unsigned char *bytes, uint32_t number, unsigned int length)
{
	unsigned char wanted[LONGEST];

	message_make(wanted, number, length);
	return !memcmp(bytes, wanted, length);
}

typedef int receiving(int fd, unsigned char *to, unsigned int bytes);
typedef int sending(int fd, const unsigned char *from, unsigned int bytes);

static void all(receiving *receive, int fd, unsigned char *to, unsigned int bytes)
{
	while (bytes) {
		int got = receive(fd, to, bytes);

		if (got <= 0) {
			errno = got < 0 ? -got : EPIPE;
			fail("receive");
		}
		to += got;
		bytes -= (unsigned int)got;
	}
}

static unsigned int message_get(receiving *receive, int fd, unsigned char *bytes)
{
	unsigned int length;

	all(receive, fd, bytes, 2);
	length = bytes[0] | (unsigned int)bytes[1] << 8;
	if (length > LONGEST || length < 2) {
		errno = EBADMSG;
		fail("message");
	}
	all(receive, fd, bytes + 2, length - 2);
	return length;
}

static void message_put(sending *send_some, int fd, const unsigned char *bytes, unsigned int length)
{
	while (length) {
		int put = send_some(fd, bytes, length);

		if (put <= 0) {
			errno = -put;
			fail("send");
		}
		bytes += put;
		length -= (unsigned int)put;
	}
}

/* --- ways to receive and send --- */

static int by_read(int fd, unsigned char *to, unsigned int bytes)
{
	ssize_t got = read(fd, to, bytes);

	return got < 0 ? -errno : (int)got;
}

static int by_write(int fd, const unsigned char *from, unsigned int bytes)
{
	ssize_t put = write(fd, from, bytes);

	return put < 0 ? -errno : (int)put;
}

static int ring_receive(int fd, unsigned char *to, unsigned int bytes)
{
	entry(&the_ring, IORING_OP_RECV, fd, to, bytes);
	return one(&the_ring);
}

static int ring_read(int fd, unsigned char *to, unsigned int bytes)
{
	entry(&the_ring, IORING_OP_READ, fd, to, bytes);
	return one(&the_ring);
}

static int ring_send(int fd, const unsigned char *from, unsigned int bytes)
{
	entry(&the_ring, IORING_OP_SEND, fd, from, bytes);
	return one(&the_ring);
}

static int ring_writev(int fd, const unsigned char *from, unsigned int bytes)
{
	struct iovec iov = { (void *)from, bytes };

	entry(&the_ring, IORING_OP_WRITEV, fd, &iov, 1);
	return one(&the_ring);
}

static int ring_sendmsg(int fd, const unsigned char *from, unsigned int bytes)
{
	struct iovec iov = { (void *)from, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	entry(&the_ring, IORING_OP_SENDMSG, fd, &message, 1);
	return one(&the_ring);
}

/* The ring says that there is something, libc's call reads it. */
static int ring_poll(int fd, unsigned char *to, unsigned int bytes)
{
	int result;

	entry(&the_ring, IORING_OP_POLL_ADD, fd, NULL, 0)->poll32_events = POLLIN;
	result = one(&the_ring);
	return result < 0 ? result : by_read(fd, to, bytes);
}

/* Two entries that are linked: the second begins when the first has ended. */
static int ring_chain(int fd, const unsigned char *from, unsigned int bytes)
{
	unsigned int half = bytes / 2;
	int results[2];

	if (!half)
		return ring_send(fd, from, bytes);
	entry(&the_ring, IORING_OP_SEND, fd, from, half)->flags = IOSQE_IO_LINK;
	entry(&the_ring, IORING_OP_SEND, fd, from + half, bytes - half);
	submit(&the_ring, results);
	if (results[0] < 0)
		return results[0];
	return results[1] < 0 ? results[0] : results[0] + results[1];
}

static bool fixed;

static void fix(int fd)
{
	if (!fixed && syscall(__NR_io_uring_register, the_ring.fd, IORING_REGISTER_FILES, &fd, 1))
		fail("IORING_REGISTER_FILES");
	fixed = true;
}

static int fixed_receive(int fd, unsigned char *to, unsigned int bytes)
{
	fix(fd);
	entry(&the_ring, IORING_OP_RECV, 0, to, bytes)->flags = IOSQE_FIXED_FILE;
	return one(&the_ring);
}

static int fixed_send(int fd, const unsigned char *from, unsigned int bytes)
{
	fix(fd);
	entry(&the_ring, IORING_OP_SEND, 0, from, bytes)->flags = IOSQE_FIXED_FILE;
	return one(&the_ring);
}

/* The number comes into the table of fixed files by an operation. */
static int updated_receive(int fd, unsigned char *to, unsigned int bytes)
{
	int none = -1;

	if (!fixed) {
		if (syscall(__NR_io_uring_register, the_ring.fd, IORING_REGISTER_FILES, &none, 1))
			fail("IORING_REGISTER_FILES");
		entry(&the_ring, IORING_OP_FILES_UPDATE, -1, &fd, 1);
		if (one(&the_ring) != 1)
			fail("IORING_OP_FILES_UPDATE");
		fixed = true;
	}
	return fixed_receive(fd, to, bytes);
}

static int spliced(int fd, unsigned char *to, unsigned int bytes)
{
	static int ends[2] = { -1, -1 };
	struct io_uring_sqe *sqe;
	int result;

	if (ends[0] < 0 && pipe(ends))
		fail("pipe");
	sqe = entry(&the_ring, IORING_OP_SPLICE, ends[1], NULL, bytes);
	sqe->splice_fd_in = fd;
	sqe->splice_off_in = sqe->off = (uint64_t)-1;
	result = one(&the_ring);
	return result <= 0 ? result : by_read(ends[0], to, (unsigned int)result);
}

static int aio(int operation, int fd, const void *at, unsigned int bytes)
{
	static aio_context_t context;
	struct iocb request = {
		.aio_lio_opcode = (uint16_t)operation, .aio_fildes = (uint32_t)fd,
		.aio_buf = (uintptr_t)at, .aio_nbytes = bytes,
	}, *list = &request;
	struct io_event event;

	if (!context && syscall(__NR_io_setup, 1, &context))
		fail("io_setup");
	if (syscall(__NR_io_submit, context, 1, &list) != 1 ||
	    syscall(__NR_io_getevents, context, 1, 1, &event, NULL) != 1)
		return -errno;
	return (int)event.res;
}

static int aio_read(int fd, unsigned char *to, unsigned int bytes)
{
	return aio(IOCB_CMD_PREAD, fd, to, bytes);
}

static int aio_write(int fd, const unsigned char *from, unsigned int bytes)
{
	return aio(IOCB_CMD_PWRITE, fd, from, bytes);
}

/* --- an epoll set whose members come by the ring, as libuv does it --- */

static int the_set = -1;
static struct epoll_event event_in = { .events = EPOLLIN };

static int control(int set, int operation, int fd, struct epoll_event *event)
{
	struct io_uring_sqe *sqe = entry(&the_ring, IORING_OP_EPOLL_CTL, set, event,
					 (unsigned int)operation),
			    before;
	struct io_uring_sqe *at = sqe;
	int result;

	sqe->off = (unsigned int)fd;
	before = *sqe;
	result = one(&the_ring);
	if (memcmp(at, &before, sizeof(before)))
		printf("the entry has changed\n");
	return result;
}

static int set_receive(int fd, unsigned char *to, unsigned int bytes)
{
	struct epoll_event event;

	if (the_set < 0) {
		the_set = epoll_create1(0);
		if (control(the_set, EPOLL_CTL_ADD, fd, &event_in))
			fail("EPOLL_CTL_ADD");
	}
	if (epoll_wait(the_set, &event, 1, PATIENCE * 1000) != 1)
		fail("epoll_wait");
	return by_read(fd, to, bytes);
}

/* All results that a caller may get, of a set with `fd` in it. */
static int set_results(int fd, unsigned char *to, unsigned int bytes)
{
	static bool done;
	struct epoll_event out = { .events = EPOLLOUT };
	int other, file;

	if (!done) {
		done = true;
		other = epoll_create1(0);
		file = open("/proc/self/exe", O_RDONLY);
		printf("add %d", control(other, EPOLL_CTL_ADD, fd, &event_in));
		printf(" again %d", control(other, EPOLL_CTL_ADD, fd, &event_in));
		printf(" modify %d", control(other, EPOLL_CTL_MOD, fd, &out));
		printf(" wait %d", epoll_wait(other, &out, 1, 0));
		printf(" delete %d", control(other, EPOLL_CTL_DEL, fd, NULL));
		printf(" again %d", control(other, EPOLL_CTL_DEL, fd, NULL));
		printf(" modify %d", control(other, EPOLL_CTL_MOD, fd, &out));
		printf(" file %d", control(other, EPOLL_CTL_ADD, file, &out));
		printf(" itself %d", control(other, EPOLL_CTL_ADD, other, &out));
		printf(" closed %d", control(other, EPOLL_CTL_ADD, 777, &out));
		printf(" fault %d", control(other, EPOLL_CTL_ADD, fd, (void *)16));
		printf(" nonsense %d\n", control(other, 17, fd, &out));
		close(other);
		close(file);
	}
	return set_receive(fd, to, bytes);
}

/* The registration waits for an entry that fails, so it is not made. */
static int set_cancelled(int fd, unsigned char *to, unsigned int bytes)
{
	static bool done;
	int results[2];

	if (!done) {
		done = true;
		the_set = epoll_create1(0);
		entry(&the_ring, IORING_OP_READ, -1, NULL, 0)->flags = IOSQE_IO_LINK;
		entry(&the_ring, IORING_OP_EPOLL_CTL, the_set, &event_in, EPOLL_CTL_ADD)->off =
			(unsigned int)fd;
		submit(&the_ring, results);
		printf("chain %d %d, then %d\n", results[0], results[1],
		       epoll_ctl(the_set, EPOLL_CTL_ADD, fd, &event_in));
	}
	return set_receive(fd, to, bytes);
}

/* More registrations at once than a look has room for, of which the first is new. */
static int set_many(int fd, unsigned char *to, unsigned int bytes)
{
	static bool done;
	int results[ENTRIES];

	for (int round = 0; !done && round < 4; round++) {
		if (the_set < 0)
			the_set = epoll_create1(0);
		for (int i = 0; i < ENTRIES; i++)
			entry(&the_ring, IORING_OP_EPOLL_CTL, the_set, &event_in,
			      i % 2 ? EPOLL_CTL_DEL : EPOLL_CTL_ADD)->off = (unsigned int)fd;
		submit(&the_ring, results);
		for (int i = 0; i < ENTRIES; i++)
			printf("%d ", results[i]);
	}
	if (!done)
		printf("then %d\n", epoll_ctl(the_set, EPOLL_CTL_ADD, fd, &event_in));
	done = true;
	return set_receive(fd, to, bytes);
}

/* --- ways that are more than a call --- */

/* A file is read by the ring between the messages: the connection is not named. */
static int beside_file(int fd, unsigned char *to, unsigned int bytes)
{
	static int file = -1;
	unsigned char magic[4];

	if (file < 0)
		file = open("/proc/self/exe", O_RDONLY);
	entry(&the_ring, IORING_OP_READ, file, magic, 4);
	if (one(&the_ring) != 4 || memcmp(magic, "\177ELF", 4))
		fail("IORING_OP_READ");
	return by_read(fd, to, bytes);
}

/* Two threads register and remove the connection in sets of their own, by one ring. */
static pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;
static int shared_fd, wrong;

static void *many_thread(void *unused)
{
	int set = epoll_create1(0);

	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&filling);
		entry(&the_ring, IORING_OP_EPOLL_CTL, set, &event_in,
		      i % 2 ? EPOLL_CTL_DEL : EPOLL_CTL_ADD)
			->off = (unsigned int)shared_fd;
		__atomic_store_n(the_ring.tail, *the_ring.tail + 1, __ATOMIC_RELEASE);
		the_ring.waiting = 0;
		pthread_mutex_unlock(&filling);
		/* Each call takes one entry, which may be the other thread's. */
		while (syscall(__NR_io_uring_enter, the_ring.fd, 1, 0, 0, NULL, 0) < 0 &&
		       errno == EINTR)
			;
		pthread_mutex_lock(&filling);
		while (__atomic_load_n(the_ring.head, __ATOMIC_ACQUIRE) != *the_ring.tail)
			if (syscall(__NR_io_uring_enter, the_ring.fd, ENTRIES, 0, 0, NULL, 0) < 0)
				break;
		while (*the_ring.cq_head != __atomic_load_n(the_ring.cq_tail, __ATOMIC_ACQUIRE)) {
			if (the_ring.cqes[*the_ring.cq_head & *the_ring.cq_mask].res)
				wrong++;
			__atomic_store_n(the_ring.cq_head, *the_ring.cq_head + 1, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&filling);
	}
	close(set);
	return unused;
}

static int two_threads(int fd, unsigned char *to, unsigned int bytes)
{
	static bool done;
	pthread_t threads[2];

	shared_fd = fd;
	for (int i = 0; !done && i < 2; i++)
		if (pthread_create(&threads[i], NULL, many_thread, NULL))
			fail("pthread_create");
	for (int i = 0; !done && i < 2; i++)
		pthread_join(threads[i], NULL);
	if (!done)
		printf("%d wrong results\n", wrong);
	done = true;
	return by_read(fd, to, bytes);
}

/* Submissions that go past libc are noticed by the next one that does not. */
static int instruction(int fd, unsigned char *to, unsigned int bytes)
{
	inlined = true;
	entry(&the_ring, IORING_OP_NOP, -1, NULL, 0);
	one(&the_ring);
	inlined = false;
	entry(&the_ring, IORING_OP_NOP, -1, NULL, 0);
	one(&the_ring);
	return by_read(fd, to, bytes);
}

/* An operation that no kernel has, and entries that the array leads nowhere. */
static int unknown(int fd, unsigned char *to, unsigned int bytes)
{
	entry(&the_ring, 200, fd, NULL, 0);
	if (one(&the_ring) != -EINVAL)
		fail("operation 200");
	return by_read(fd, to, bytes);
}

static int nowhere(int fd, unsigned char *to, unsigned int bytes)
{
	unsigned int position = *the_ring.tail;

	the_ring.array[position & *the_ring.mask] = 0xfffffff0;
	__atomic_store_n(the_ring.tail, position + 1, __ATOMIC_RELEASE);
	syscall(__NR_io_uring_enter, the_ring.fd, 1, 0, 0, NULL, 0);
	return ring_receive(fd, to, bytes);
}

/* --- */

static const struct way {
	const char *name;
	receiving *receive;
	sending *send;
	unsigned int flags;	/* of the ring */
	bool forked;		/* the ring is the parent's of the process that uses it */
	bool mixes;		/* may be one of many */
} ways[] = {
	{ "calls", by_read, by_write, .mixes = true },
	{ "recv", ring_receive, ring_send, .mixes = true },
	{ "read", ring_read, ring_writev, .mixes = true },
	{ "recv128", ring_receive, ring_send, .flags = 1U << 10 },
	{ "noarray", ring_receive, ring_send, .flags = NO_SQARRAY },
	{ "sendmsg", by_read, ring_sendmsg, .mixes = true },
	{ "poll", ring_poll, by_write, .mixes = true },
	{ "chain", by_read, ring_chain, .mixes = true },
	{ "fixed", fixed_receive, fixed_send, .mixes = true },
	{ "updated", updated_receive, fixed_send, .flags = 0 },
	{ "splice", spliced, by_write, .mixes = true },
	{ "aio", aio_read, aio_write, .mixes = true },
	{ "set", set_receive, by_write, .mixes = true },
	{ "results", set_results, by_write, .flags = 0 },
	{ "cancelled", set_cancelled, by_write, .flags = 0 },
	{ "many", set_many, by_write, .flags = 0 },
	{ "file", beside_file, by_write, .flags = 0 },
	{ "forked", ring_receive, ring_send, .forked = true },
	{ "forkedset", set_receive, by_write, .forked = true },
	{ "threads", two_threads, by_write, .flags = 0 },
	{ "unknown", unknown, by_write, .flags = 0 },
	{ "instruction", instruction, by_write, .flags = 0 },
	{ "nowhere", nowhere, ring_send, .flags = 0 },
	{ "close", by_read, by_write, .flags = 0 },
	{ "closelate", by_read, by_write, .flags = 0 },
	{ "rights", by_read, by_write, .flags = 0 },
	{ "sqpoll", by_read, by_write, .flags = IORING_SETUP_SQPOLL },
	{ "mix", by_read, by_write, .flags = 0 },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static const struct way *way_of(const char *name)
{
	for (size_t i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	fprintf(stderr, "rings WAY [SEED]\n");
	exit(2);
}

static const struct way *way_by_chance(void)
{
	for (;;) {
		const struct way *way = &ways[chance(WAYS)];

		if (way->mixes)
			return way;
	}
}

/* The ring closes the connection, whose number is then a file's. */
static void close_by_ring(int fd, bool late)
{
	int results[2] = { 0 }, file;
	char magic[4] = "";

	if (late) {
		static unsigned char farewell[2] = { 2, 0 };

		entry(&the_ring, IORING_OP_SEND, fd, farewell, 2)->flags = IOSQE_IO_LINK;
		entry(&the_ring, IORING_OP_CLOSE, fd, NULL, 0);
	} else {
		entry(&the_ring, IORING_OP_CLOSE, fd, NULL, 0);
	}
	submit(&the_ring, results);
	file = open("/proc/self/exe", O_RDONLY);
	printf("closed %d %d, %s number, %d bytes\n", results[0], results[1],
	       file == fd ? "the same" : "another", (int)read(file, magic, 4));
	close(file);
}

/* The connection goes through a socket pair, by the ring. Its copy is used from now on. */
static int pass_by_ring(int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = "", byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	struct cmsghdr *control_message = CMSG_FIRSTHDR(&message);
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		fail("socketpair");
	control_message->cmsg_level = SOL_SOCKET;
	control_message->cmsg_type = SCM_RIGHTS;
	control_message->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(control_message), &fd, sizeof(int));
	entry(&the_ring, IORING_OP_SENDMSG, ends[0], &message, 1);
	if (one(&the_ring) != 1)
		fail("IORING_OP_SENDMSG");
	memset(room, 0, sizeof(room));
	if (recvmsg(ends[1], &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		fail("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static void serve(int fd, const struct way *way)
{
	bool mix = !strcmp(way->name, "mix");
	unsigned char bytes[LONGEST];
	const struct way *in = way_of("calls"), *out = in;
	unsigned int length;

	for (uint32_t i = 0; i < BEFORE + AFTER; i++) {
		if (i == BEFORE) {
			in = out = way;
			if (!way->forked && !ring_make(&the_ring, way->flags))
				fail("no ring");
			if (!strcmp(way->name, "rights"))
				fd = pass_by_ring(fd);
		}
		if (mix && i >= BEFORE) {
			in = way_by_chance();
			out = way_by_chance();
		}
		length = message_get(in->receive, fd, bytes);
		message_put(out->send, fd, bytes, length);
	}
	if (!strncmp(way->name, "close", 5))
		close_by_ring(fd, way->name[5]);
	printf("served %d messages\n", BEFORE + AFTER);
	fflush(stdout);
}

static void ask(int fd)
{
	unsigned char bytes[LONGEST];
	unsigned int length;

	for (uint32_t i = 0; i < BEFORE + AFTER; i++) {
		length = i < BEFORE ? 2 + i % 60 : 2 + chance(LONGEST - 2);
		message_make(bytes, i, length);
		message_put(by_write, fd, bytes, length);
		memset(bytes, 0, sizeof(bytes));
		if (message_get(by_read, fd, bytes) != length || !is_message(bytes, i, length)) {
			printf("message %u came back changed\n", i);
			exit(1);
		}
	}
}

/* Two sends in a row would wait for each other's acknowledgement, 40 ms each. */
static void hurry(int fd)
{
	static const int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		fail("TCP_NODELAY");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct way *way = way_of(argc > 1 ? argv[1] : "");
	socklen_t length = sizeof(address);
	int listener, fd, status = 1, rest = 0;
	char byte[64];
	pid_t server;

	seed = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	alarm(3 * PATIENCE);
	if (way->forked && !ring_make(&the_ring, way->flags))
		fail("no ring");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&address, length) || listen(listener, 5) ||
	    getsockname(listener, (void *)&address, &length))
		fail("listen");
	server = fork();
	if (!server) {
		alarm(3 * PATIENCE);
		fd = accept(listener, NULL, NULL);
		hurry(fd);
		serve(fd, way);
		exit(0);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	hurry(fd);
	if (connect(fd, (void *)&address, length))
		fail("connect");
	ask(fd);
	for (int got; (got = (int)read(fd, byte, sizeof(byte))) > 0;)
		rest += got;
	waitpid(server, &status, 0);
	printf("%s, %d bytes after the last message\n",
	       status ? "the server has failed" : "all came back", rest);
	return status != 0;
}
