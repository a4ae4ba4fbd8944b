/* SPDX-License-Identifier: MIT */
/* Threads that make one call each. */
#include "cases.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#define FRAMES 262144 /* bytes of a stack: more than the calls of a job take */

/*
 * AddressSanitizer, which the library may be built with, does not see the threads of a program that is not. It keeps
 * its record of a cancelled thread's frames, which no return has taken back, for the next thread on the same stack.
 */
static void forget_frames(void)
{
	void (*unpoison)(const volatile void *, size_t) = dlsym(RTLD_DEFAULT,
								"__asan_unpoison_memory_region");
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (unpoison)
		unpoison((void *)(here - FRAMES), FRAMES);
}

static void *job_main(void *arg)
{
	struct job *j = arg;

	forget_frames();
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

void job_sleeps(struct end *e, struct job *j, void (*work)(struct job *j), int fd)
{
	job_start(e, j, work, fd);
	asleep(e, j->tid);
}

void job_in_parts(struct end *e, struct job *j, int parts)
{
	for (int i = 0; i < parts; i++) {
		asleep(e, j->tid);
		say(e, "done: %d", j->done);
		tell(e);
		await(e);
	}
}

void job_report(struct end *e, const char *what, struct job *j)
{
	job_join(e, j);
	errno = j->err;
	text(e, what, j->buf, j->result);
}

JOB(job_recv, recv(j->fd, j->buf, sizeof(j->buf), 0))
JOB(job_accept, accept(j->e->lfd, NULL, NULL))
JOB(job_poll, poll(&(struct pollfd){.fd = j->fd, .events = POLLIN}, 1, -1))
JOB(job_polled, polled(j->fd, POLLIN, -1))
JOB(job_wait, epoll_wait(j->fd, &(struct epoll_event){0}, 1, -1))

void job_send(struct job *j)
{
	static char buf[1 << 16];

	do
		j->result = send(j->fd, buf, sizeof(buf), MSG_NOSIGNAL);
	while (j->result > 0);
	j->err = errno;
}

void job_select(struct job *j)
{
	fd_set r;

	FD_ZERO(&r);
	FD_SET(j->fd, &r);
	j->result = select(j->fd + 1, &r, NULL, NULL, NULL);
	j->err = errno;
}

void job_epoll(struct job *j)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(ep, EPOLL_CTL_ADD, j->fd, &ev);
	j->result = epoll_wait(ep, &ev, 1, -1);
	j->err = errno;
	close(ep);
}
