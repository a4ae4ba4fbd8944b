/* SPDX-License-Identifier: MIT */
/*
 * How the ends of two queue pairs find each other: by number, as on a wire. Each context listens at an abstract address
 * that has its block of numbers; a thread of it answers with what the soft device must know of a queue pair.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/fake/fake.h"
#include "tests/kernel_call.h"

#define BLOCKS 4096u

pthread_mutex_t fake_lock_qps = PTHREAD_MUTEX_INITIALIZER;

static socklen_t address_of(struct sockaddr_un *address, uint32_t block)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
					    "fake-verbs-%u", block));
}

static struct ibv_qp *find(struct fake_context *context, uint32_t number)
{
	struct soft_context *soft = container_of(context->soft, struct soft_context, ibv);

	for (struct soft_qp *qp = soft->qps; qp; qp = qp->next)
		if (qp->ibv.qp_num == number)
			return &qp->ibv;
	return NULL;
}

union room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static void answer(struct fake_context *context, int fd)
{
	struct soft_address address;
	struct iovec iov = { &address, sizeof(address) };
	union room room = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room) };
	uint32_t number;
	struct ibv_qp *qp;
	int fds[2], count;

	if (kernel_call(SYS_read, fd, (long)&number, sizeof(number), 0) != sizeof(number))
		return;
	pthread_mutex_lock(&fake_lock_qps);
	qp = context->gone ? NULL : find(context, number);
	if (qp && !soft_qp_export(qp, &address, fds)) {
		count = fds[1] < 0 ? 1 : 2;	/* a queue pair without a channel wakes nobody */
		room.header = (struct cmsghdr) { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN((size_t)count * sizeof(int)) };
		message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(&room.header), fds, (size_t)count * sizeof(int));
		kernel_call(SYS_sendmsg, fd, (long)&message, MSG_NOSIGNAL, 0);
	}
	pthread_mutex_unlock(&fake_lock_qps);
}

/*
 * A device needs no thread of the process. This one must not wait for Shunt, whose thread waits for it: so its calls are
 * the kernel's, not libc's, which are Shunt's.
 */
static void *serve(void *arg)
{
	struct fake_context *context = arg;
	int fd;

	while ((fd = (int)kernel_call(SYS_accept4, context->listener, 0, 0, SOCK_CLOEXEC)) >= 0) {
		answer(context, fd);
		kernel_call(SYS_close, fd, 0, 0, 0);
	}
	return NULL;
}

static int start(struct fake_context *context)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&context->thread, NULL, serve, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int fake_meeting_begin(struct fake_context *context)
{
	struct soft_context *soft = container_of(context->soft, struct soft_context, ibv);
	uint32_t first = (uint32_t)getpid() * 7;
	struct sockaddr_un address;

	context->listener = fake_keep(NULL, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	for (uint32_t i = 0; i < BLOCKS && context->listener >= 0; i++) {
		context->block = (first + i) % (BLOCKS - 1) + 1;
		if (bind(context->listener, (struct sockaddr *)&address,
			 address_of(&address, context->block)))
			continue;
		atomic_store(&soft->next_qp_num, context->block * FAKE_BLOCK);
		if (listen(context->listener, 64))
			break;
		return start(context);
	}
	if (context->listener >= 0)
		close(context->listener);
	return EAGAIN;
}

void fake_meeting_end(struct fake_context *context)
{
	shutdown(context->listener, SHUT_RDWR);
	pthread_join(context->thread, NULL);
	close(context->listener);
}

/* Two seconds: a fork's child may have inherited the listener of a process that is gone. */
static int ask(uint32_t number)
{
	int fd = fake_keep(NULL, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	struct timeval patience = { .tv_sec = 2 };
	struct sockaddr_un address;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&address, address_of(&address, number / FAKE_BLOCK)) &&
	    send(fd, &number, sizeof(number), MSG_NOSIGNAL) == sizeof(number))
		return fd;
	close(fd);
	return -1;
}

int fake_meet(struct ibv_qp *qp, uint32_t number)
{
	struct soft_address address;
	struct iovec iov = { &address, sizeof(address) };
	union room room = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room) };
	int fds[2] = { -1, -1 }, result = EINVAL, fd = ask(number);

	if (fd < 0)
		return EINVAL;
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == sizeof(address) &&
	    (room.header.cmsg_len == CMSG_LEN(sizeof(int)) ||
	     room.header.cmsg_len == CMSG_LEN(sizeof(fds)))) {
		memcpy(fds, CMSG_DATA(&room.header), room.header.cmsg_len - CMSG_LEN(0));
		result = -soft_qp_import(qp, &address, fds);
		close(fds[0]);
		if (fds[1] >= 0)
			close(fds[1]);
	}
	close(fd);
	return result;
}
