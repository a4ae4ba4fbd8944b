/* SPDX-License-Identifier: MIT */
/* The flags of recv, and what is left after it. */
#include "cases.h"

#include <linux/sockios.h>

static void peek(struct end *e)
{
	have(e, 10);
	show(e, e->fd, 3, MSG_PEEK);
	show(e, e->fd, 3, MSG_PEEK);
	show(e, e->fd, 100, MSG_PEEK);
	show(e, e->fd, 4, 0);
	show(e, e->fd, 100, MSG_PEEK);
	show(e, e->fd, 100, MSG_PEEK | MSG_DONTWAIT);
	show(e, e->fd, 6, MSG_PEEK | MSG_WAITALL);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, MSG_PEEK | MSG_DONTWAIT);
	meet(e);
	show(e, e->fd, 100, MSG_PEEK);
	show(e, e->fd, 1, 0);
	ended(e, e->fd, POLLRDHUP);
	show(e, e->fd, 100, MSG_PEEK);
	show(e, e->fd, 100, 0);
}

static void peek_peer(struct end *e)
{
	ten_peer(e);
	put(e, e->fd, "z");
	shutdown(e->fd, SHUT_WR);
}

static JOB(waitall_job, recv(j->fd, j->buf, 12, MSG_WAITALL))

static void waitall(struct end *e)
{
	struct job j;

	job_start(e, &j, waitall_job, e->fd);
	job_in_parts(e, &j, 3);
	job_report(e, "recv 12 WAITALL", &j);
	tell(e);
	show(e, e->fd, 12, MSG_WAITALL);
	show(e, e->fd, 12, MSG_WAITALL);
}

static void waitall_dontwait(struct end *e)
{
	abc_peer(e);
}

static void waitall_dontwait_peer(struct end *e)
{
	have(e, 3);
	show(e, e->fd, 10, MSG_WAITALL | MSG_DONTWAIT);
	show(e, e->fd, 10, MSG_WAITALL | MSG_DONTWAIT);
	nonblock(e, e->fd, 1);
	show(e, e->fd, 10, MSG_WAITALL);
	meet(e);
}

static void discard(struct end *e)
{
	have(e, 10);
	TRY(e, recv(e->fd, NULL, 4, MSG_TRUNC));
	show(e, e->fd, 2, 0);
	TRY(e, recv(e->fd, NULL, 100, MSG_TRUNC | MSG_DONTWAIT));
	TRY(e, recv(e->fd, NULL, 100, MSG_TRUNC | MSG_DONTWAIT));
	meet(e);
}

static void fionread(struct end *e)
{
	int n = -1;

	TRY(e, ioctl(e->fd, FIONREAD, &n));
	say(e, "FIONREAD %d", n);
	meet(e);
	have(e, 10);
	TRY(e, ioctl(e->fd, FIONREAD, &n));
	say(e, "FIONREAD %d", n);
	show(e, e->fd, 3, 0);
	TRY(e, ioctl(e->fd, SIOCINQ, &n));
	say(e, "SIOCINQ %d", n);
	show(e, e->fd, 100, MSG_PEEK);
	TRY(e, ioctl(e->fd, FIONREAD, &n));
	say(e, "FIONREAD %d", n);
	show(e, e->fd, 100, 0);
	TRY(e, ioctl(e->fd, FIONREAD, &n));
	say(e, "FIONREAD %d", n);
	do
		MUST(e, ioctl(e->fd, SIOCOUTQ, &n));
	while (n);
	say(e, "SIOCOUTQ 0");
	meet(e);
}

/*
 * Bad buffers: EFAULT, and the bytes are still there. An unmapped page is not among them: on a link the
 * copy faults there as the program's own would.
 */
static void efault(struct end *e)
{
	char *page = (char *)4096;
	struct iovec v = {.iov_base = page, .iov_len = 10};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	have(e, 10);
	TRY(e, recv(e->fd, page, 10, 0));
	TRY(e, read(e->fd, page, 10));
	TRY(e, recvmsg(e->fd, &m, 0));
	TRY(e, recvmsg(e->fd, NULL, 0));
	TRY(e, send(e->fd, page, 10, MSG_NOSIGNAL));
	TRY(e, write(e->fd, page, 10));
	TRY(e, sendmsg(e->fd, &m, 0));
	TRY(e, sendmsg(e->fd, NULL, 0));
	TRY(e, poll((struct pollfd *)page, 1, 0));
	show(e, e->fd, 100, 0);
	meet(e);
}

static void addresses(struct end *e)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char buf[20], control[100];
	struct iovec v = {.iov_base = buf, .iov_len = 4};
	struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = &v,
		.msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

	have(e, 10);
	TRY(e, recvfrom(e->fd, buf, 2, 0, (struct sockaddr *)&a, &len));
	say(e, "address length %u", len);
	TRY(e, recvmsg(e->fd, &m, 0));
	say(e, "name %u, control %zu, flags %d", m.msg_namelen, m.msg_controllen, m.msg_flags);
	TRY(e, sendto(e->fd, "x", 1, 0, (struct sockaddr *)&e->addr, e->addrlen));
	show(e, e->fd, 100, 0);
	meet(e);
}

static void oob_read(struct end *e)
{
	int mark = -1;

	meet(e);
	ended(e, e->fd, POLLPRI);
	arrived(e, e->fd, 3);
	TRY(e, ioctl(e->fd, SIOCATMARK, &mark));
	say(e, "at mark %d", mark);
	show(e, e->fd, 100, 0);
	TRY(e, ioctl(e->fd, SIOCATMARK, &mark));
	say(e, "at mark %d", mark);
	show(e, e->fd, 10, MSG_OOB);
	show(e, e->fd, 10, MSG_OOB);
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
}

static void oob_peer(struct end *e)
{
	put_urgent(e);
	meet(e);
	meet(e);
}

static void error_queue(struct end *e)
{
	char buf[10];
	struct iovec v = {.iov_base = buf, .iov_len = sizeof(buf)};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	TRY(e, recvmsg(e->fd, &m, MSG_ERRQUEUE));
	TRY(e, recv(e->fd, buf, 1, MSG_OOB));
	meet(e);
	meet(e);
	show(e, e->fd, 10, MSG_WAITALL);
}

const struct test cases_receive[] = {
	{"receive_peek", 0, peek, peek_peer},
	{"receive_waitall", 0, waitall, parts_peer},
	{"receive_waitall_dontwait", 0, waitall_dontwait, waitall_dontwait_peer},
	{"receive_discard", 0, discard, ten_peer},
	{"receive_fionread", 0, fionread, ten_later_peer},
	{"receive_efault", 0, efault, ten_peer},
	{"receive_addresses", 0, addresses, ten_peer},
	{"receive_oob", 0, oob_read, oob_peer},
	{"receive_error_queue", 0, error_queue, ten_peer},
	{NULL, 0, NULL, NULL},
};
