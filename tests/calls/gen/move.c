/* SPDX-License-Identifier: MIT */
/* Calls that move bytes; each byte depends on its connection and place. */
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gen.h"

static char bytes[3 * MOST];

static unsigned char byte_at(int conn, uint64_t at)
{
	at = (at + 1 + conn * 1000003ull) * 0x9e3779b97f4a7c15ull;
	return (at ^ at >> 29) * 0xbf58476d1ce4e5b9ull >> 56;
}

static void fill(const struct cmd *c)
{
	for (int i = 0; i < c->n; i++)
		bytes[i] = byte_at(c->conn, c->at + i);
}

static void check(const struct cmd *c, struct reply *r, const char *from)
{
	for (int i = 0; i < r->r; i++)
		if ((unsigned char)from[i] != byte_at(c->conn, c->at + i)) {
			snprintf(r->text, sizeof(r->text), "WRONG at %d", i);
			return;
		}
}

static int in_child(int fd, const struct cmd *c)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(send(fd, bytes, c->n, MSG_NOSIGNAL) == c->n ? 7 : 1);
	waitpid(pid, &status, 0);
	return status == 7 << 8 ? c->n : -1;
}

static int by_file(int fd, const struct cmd *c)
{
	int file = memfd_create("gen", MFD_CLOEXEC), r;

	if (file < 0 || write(file, bytes, c->n) != c->n)
		_exit(3);
	lseek(file, 0, SEEK_SET);
	r = sendfile(fd, file, NULL, c->n);
	close(file);
	return r;
}

static int several(int fd, const struct cmd *c, int sends)
{
	struct iovec v[2] = {{bytes, c->n / 2}, {bytes + c->n / 2, c->n - c->n / 2}};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
	int r = sends ? sendmmsg(fd, m, 2, MSG_NOSIGNAL) : recvmmsg(fd, m, 2, MSG_DONTWAIT, NULL);

	return r < 0 ? r : (int)(m[0].msg_len + (r > 1 ? m[1].msg_len : 0));
}

static void sends(const struct cmd *c, struct reply *r, int fd)
{
	struct iovec v[3] = {{bytes, c->n / 3}, {bytes + c->n / 3, 0}, {bytes + c->n / 3, c->n - c->n / 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};

	fill(c);
	switch (c->kind) {
	case SEND: r->r = send(fd, bytes, c->n, MSG_NOSIGNAL); break;
	case WRITE: r->r = write(fd, bytes, c->n); break;
	case WRITEV: r->r = writev(fd, v, 3); break;
	case SENDMSG: r->r = sendmsg(fd, &m, MSG_NOSIGNAL); break;
	case SENDMMSG: r->r = several(fd, c, 1); break;
	case SENDFILE: r->r = by_file(fd, c); break;
	case SEND_CHILD: r->r = in_child(fd, c); break;
	case SEND_FAULT: r->r = send(fd, (void *)4096, c->n, MSG_NOSIGNAL); break;
	case SEND_NOTHING: r->r = send(fd, bytes, 0, MSG_NOSIGNAL); break;
	case SEND_MORE:
		r->r = send(fd, bytes, c->n / 2, MSG_MORE | MSG_NOSIGNAL);
		r->r += send(fd, bytes + c->n / 2, c->n - c->n / 2, MSG_NOSIGNAL);
		break;
	case SEND_CORKED:
		set_option(fd, IPPROTO_TCP, TCP_CORK, 1);
		r->r = send(fd, bytes, c->n / 2, MSG_NOSIGNAL);
		r->r += send(fd, bytes + c->n / 2, c->n - c->n / 2, MSG_NOSIGNAL);
		set_option(fd, IPPROTO_TCP, TCP_CORK, 0);
		break;
	}
}

static void receives(const struct cmd *c, struct reply *r, int fd)
{
	struct iovec v[3] = {{bytes, c->n / 3}, {bytes + c->n / 3, 0}, {bytes + c->n / 3, c->n - c->n / 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};

	memset(bytes, 0, c->n);
	switch (c->kind) {
	case RECV: r->r = recv(fd, bytes, c->n, 0); break;
	case READ: r->r = read(fd, bytes, c->n); break;
	case READV: r->r = readv(fd, v, 3); break;
	case RECVMSG: r->r = recvmsg(fd, &m, 0); break;
	case RECVFROM: r->r = recvfrom(fd, bytes, c->n, 0, NULL, NULL); break;
	case RECVMMSG: r->r = several(fd, c, 0); break;
	case PEEK: r->r = recv(fd, bytes, c->n, MSG_PEEK); break;
	case TRUNC: r->r = recv(fd, NULL, c->n, MSG_TRUNC); return;
	case WAITALL: case WAIT_RECV: r->r = recv(fd, bytes, c->n, MSG_WAITALL); break;
	case DONTWAIT: r->r = recv(fd, bytes, c->n, MSG_DONTWAIT); break;
	case RECV_FAULT: r->r = recv(fd, (void *)4096, c->n, MSG_DONTWAIT); return;
	case RECV_NOTHING: r->r = recv(fd, bytes, 0, MSG_DONTWAIT); return;
	}
	if (r->r > 0 && c->kind != RECVMMSG)
		check(c, r, bytes);
}

void move(const struct cmd *c, struct reply *r, int fd)
{
	if (c->kind <= SEND_CHILD)
		sends(c, r, fd);
	else
		receives(c, r, fd);
}
