/* SPDX-License-Identifier: MIT */
#include "core/link/screen.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/base/scm_rights.h"
#include "core/fd/own_fds.h"
#include "core/link/common.h"
#include "core/link/trust.h"
#include "core/loop/loop.h"
#include "core/loop/porter.h"

#define RIGHTS_MOST 16	/* that have a place; the kernel drops others unseen, which asks no file server */

enum kind { WANTED, BRIEF, UNKNOWN };

static bool begins(const char *text, ssize_t bytes, const char *with)
{
	return bytes >= (ssize_t)strlen(with) && !memcmp(text, with, strlen(with));
}

static bool has_option(const struct shunt_sys *sys, int fd, int name, int wanted)
{
	socklen_t length = sizeof(int);
	int value = 0;

	return !sys->getsockopt(fd, SOL_SOCKET, name, &value, &length) && value == wanted;
}

/* The end of a pair, by which its maker is woken (core/device/soft/bell.c). */
static bool is_bell(const struct shunt_sys *sys, int fd)
{
	return has_option(sys, fd, SO_DOMAIN, AF_UNIX) &&
	       has_option(sys, fd, SO_TYPE, SOCK_SEQPACKET) &&
	       has_option(sys, fd, SO_ACCEPTCONN, 0);
}

/* As /proc names it. How many bytes; negative: /proc does not say. */
static ssize_t name_of(const struct shunt_sys *sys, int fd, char *text, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return sys->readlink(path, text, size);
}

/* By questions that the file's own server does not hear of, as it would of fstat(). */
static enum kind kind_of(const struct shunt_sys *sys, int fd)
{
	char text[8];
	ssize_t got;

	if (sys->fcntl(fd, F_GET_SEALS) >= 0 || is_bell(sys, fd))
		return WANTED;
	got = name_of(sys, fd, text, sizeof(text));
	return begins(text, got, "socket:[") || begins(text, got, "pipe:[") ? BRIEF : UNKNOWN;
}

static void close_later(struct shunt_loop *loop, int fd)
{
	shunt_own_fds_mark(loop->fds, fd);
	shunt_porter_close_later(loop->porter, fd);
}

/*
 * The packet holds them, too: the close here is not the last one, so a socket does not linger in it. A file's server
 * hears of each close, so others need places at the porter's, which are few. True: all were wanted.
 */
static bool fds_let_go(struct shunt_loop *loop, const int *fds, int count)
{
	const struct shunt_sys *sys = loop->fds->sys;
	bool good = true;

	for (int i = 0; i < count; i++) {
		enum kind kind = kind_of(sys, fds[i]);

		good = good && kind == WANTED;
		if (kind == UNKNOWN) {
			close_later(loop, fds[i]);
		} else {
			sys->close(fds[i]);
		}
	}
	return good;
}

void shunt_screen_drop(struct shunt_loop *loop, int fd, bool screened)
{
	const char *const eventfd = "anon_inode:[eventfd]";
	const struct shunt_sys *sys = loop->fds->sys;
	char text[32];
	ssize_t bytes = screened ? 0 : name_of(sys, fd, text, sizeof(text));

	if (screened || sys->fcntl(fd, F_GET_SEALS) >= 0 || begins(text, bytes, eventfd))
		sys->close(fd);
	else
		close_later(loop, fd);
}

int shunt_screen_packet(struct shunt_loop *loop, int fd, int most, bool named)
{
	const struct shunt_sys *sys = loop->fds->sys;
	char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	int fds[RIGHTS_MOST], count, result;
	ssize_t got;

	_Static_assert(sizeof(space) <= CMSG_SPACE(RIGHTS_MOST * sizeof(int)), "each has a place");
	result = shunt_scm_rights_look(sys, fd, named);
	if (!most || result != -EBADMSG)	/* most packets have none */
		return result;
	if (!shunt_porter_has_room(loop->porter))
		return -EBUSY;
	got = sys->recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	count = shunt_scm_rights_take(sys, &header, fds, RIGHTS_MOST);
	return fds_let_go(loop, fds, count) && count <= most && !(header.msg_flags & MSG_CTRUNC) ?
		       1 :
		       -EBADMSG;
}

/* How many descriptors are in the socket's queue, by the kernel's word. False: there is no /proc. */
static bool count_rights(const struct shunt_sys *sys, int fd, uint32_t *count)
{
	char path[40], text[1024];
	const char *found;
	ssize_t got = -1;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info >= 0) {
		got = sys->read(info, text, sizeof(text) - 1);
		sys->close(info);
	}
	if (got < 0)
		return false;
	text[got] = 0;
	found = strstr(text, "scm_fds:");
	if (!found)
		return false;
	*count = (uint32_t)strtoul(found + strlen("scm_fds:"), NULL, 10);
	return true;
}

/*
 * Nothing comes into the socket's queue any more, and what is there has no descriptors. So it takes no time to close,
 * here, in a fork's child or at exec. The peer may hold it, too, and receive from it for ever, so nothing is received from it
 * here to find that out.
 */
static bool is_closed_fast(struct shunt_links *links, int fd)
{
	const struct shunt_sys *sys = links->loop->fds->sys;
	uint32_t count;

	sys->shutdown(fd, SHUT_RD);
	return count_rights(sys, fd, &count) ?
		       !count :
		       links->sent_nothing && links->sent_nothing(links, fd);
}

/* A message of ours there must come to the peer, not to a third process that would take it for ours. */
static bool is_made_by_peer(const struct shunt_sys *sys, int channel, int fd)
{
	struct ucred peer, maker;

	return shunt_trust_peer(sys, channel, &peer) && shunt_trust_peer(sys, fd, &maker) &&
	       maker.pid == peer.pid;
}

bool shunt_screen_sockets(struct shunt_links *links, int channel, const int *fds, int count)
{
	const struct shunt_sys *sys = links->loop->fds->sys;
	bool good = true;

	for (int i = 0; i < count; i++)
		if (has_option(sys, fds[i], SO_DOMAIN, AF_UNIX))
			good = good && is_made_by_peer(sys, channel, fds[i]) &&
			       is_closed_fast(links, fds[i]);
	for (int i = 0; i < count && !good; i++)
		close_later(links->loop, fds[i]);
	return good;
}
