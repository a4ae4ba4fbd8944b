/* SPDX-License-Identifier: MIT */
/*
 * Two processes play ping-pong. The connection is registered in each one's epoll set by a ring of
 * io_uring, as libuv does it; where there is no ring, by epoll_ctl(). It knows nothing of Shunt.
 *
 *	uring raw|lib|inline|beside [late]
 *
 * says how the ring is made: by syscall(), by liburing (-DLIBURING), by an instruction, or by
 * syscall() for something else than the connection. late: after the connection has been in use.
 *
 * It prints whether there was a ring and how many rounds were played. -DPLAY: a library with play().
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef LIBURING
#include <liburing.h>
#endif

#define ROUNDS 8000
#define PATIENCE 5000	/* ms without a word after which a connection is taken to hang */

static const char *how;
static const char *said = "no ring";

static long plain_syscall(long number, long a, long b, long c, long d, long e)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	long result;

	__asm__ volatile("syscall" : "=a"(result) :
			 "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) :
			 "rcx", "r11", "memory");
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
#else
	return syscall(number, a, b, c, d, e, 0L);
#endif
}

static void *part(int ring, size_t bytes, off_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, offset);
}

/* Registers fd by a ring, which stays. 0, or -1 if there is no ring, or it is for something else. */
static int by_hand(int epfd, int fd, struct epoll_event *event)
{
	bool inlined = !strcmp(how, "inline"), beside = !strcmp(how, "beside");
	struct io_uring_params p = { 0 };
	long setup = inlined ? plain_syscall(__NR_io_uring_setup, 4, (long)&p, 0, 0, 0) :
			       syscall(__NR_io_uring_setup, 4, &p);
	int ring = (int)setup;
	struct io_uring_sqe *sqe;
	char *sq, *cq;

	if (ring < 0)
		return -1;
	sq = part(ring, p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
	cq = part(ring, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	sqe = part(ring, p.sq_entries * sizeof(*sqe), IORING_OFF_SQES);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_NOP;
	if (!beside)
		*sqe = (struct io_uring_sqe) {
			.opcode = IORING_OP_EPOLL_CTL, .fd = epfd, .len = EPOLL_CTL_ADD,
			.off = (unsigned int)fd, .addr = (unsigned long)event,
		};
	((unsigned int *)(sq + p.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned int *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (inlined)
		plain_syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0);
	else
		syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	said = "ring";
	return beside ? -1 : ((struct io_uring_cqe *)(cq + p.cq_off.cqes))[0].res;
}

static int by_library(int epfd, int fd, struct epoll_event *event)
{
#ifdef LIBURING
	static struct io_uring ring;
	struct io_uring_cqe *cqe;
	int result = io_uring_queue_init(4, &ring, 0);

	if (result < 0) {
		errno = -result;
		return -1;
	}
	io_uring_prep_epoll_ctl(io_uring_get_sqe(&ring), epfd, fd, EPOLL_CTL_ADD, event);
	io_uring_submit(&ring);
	if (io_uring_wait_cqe(&ring, &cqe))
		return -1;
	said = "ring";
	return cqe->res;
#else
	(void)epfd, (void)fd, (void)event;
	errno = ENOSYS;
	return -1;
#endif
}

/* A set with fd in it. */
static int set_of(bool ring, int fd)
{
	static char text[64];
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC), result = -1;

	if (ring) {
		result = !strcmp(how, "lib") ? by_library(epfd, fd, &event) : by_hand(epfd, fd, &event);
		if (result < 0 && strcmp(said, "ring")) {
			snprintf(text, sizeof(text), "no ring: %s", strerror(errno));
			said = text;
		}
	}
	if (result < 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event)) {
		perror("epoll_ctl");
		exit(2);
	}
	return epfd;
}

static void rounds(const char *end, int epfd, int fd)
{
	struct epoll_event event;
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		if (epoll_wait(epfd, &event, 1, PATIENCE) != 1) {
			printf("%s: hangs in round %d\n", end, i);
			exit(1);
		}
		if (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1) {
			printf("%s: round %d: %s\n", end, i, strerror(errno));
			exit(1);
		}
	}
}

static void begin(bool client, int fd)
{
	if (client && write(fd, "x", 1) != 1)
		exit(2);
}

static void play_end(bool client, int fd, bool late)
{
	const char *end = client ? "client" : "server";
	int set;

	if (late) {
		set = set_of(false, fd);
		begin(client, fd);
		rounds(end, set, fd);
		close(set);
		set = set_of(true, fd);
	} else {
		set = set_of(true, fd);
		begin(client, fd);
	}
	rounds(end, set, fd);
	printf("%s: %s, %d rounds\n", end, said, ROUNDS);
	fflush(stdout);
}

int play(const char *way, int late);
int play(const char *way, int late)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, status = 1;
	char byte;
	pid_t child;

	how = way;
	if (bind(listener, (void *)&address, length) || listen(listener, 5) ||
	    getsockname(listener, (void *)&address, &length))
		return 2;
	child = fork();
	if (!child) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&address, length))
			exit(2);
		play_end(true, fd, late);
		exit(read(fd, &byte, 1) == 0 ? 0 : 2);
	}
	fd = accept(listener, NULL, NULL);
	play_end(false, fd, late);
	if (read(fd, &byte, 1) != 1)
		return 2;
	shutdown(fd, SHUT_WR);
	waitpid(child, &status, 0);
	return status != 0;
}

#ifndef PLAY
int main(int argc, char **argv)
{
	return argc > 1 ? play(argv[1], argc > 2) : 2;
}
#endif
