/* SPDX-License-Identifier: MIT */
#include "core/link/screen.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "core/base/scm_rights.h"
#include "core/engine.h"
#include "core/fd/eventfd.h"
#include "core/fd/own_fds.h"
#include "core/loop/porter.h"

#define RIGHTS_MOST 16	/* that have a place; the kernel drops others unseen, which asks no file server */

enum kind { WANTED, BRIEF, UNKNOWN };

static bool begins(const char *text, ssize_t bytes, const char *with)
{
	return bytes >= (ssize_t)strlen(with) && !memcmp(text, with, strlen(with));
}

/* By questions that the file's own server does not hear of, as it would of fstat(). */
static enum kind kind_of(struct shunt_engine *engine, int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]";
	char path[32], text[sizeof(eventfd)];
	ssize_t got;

	if (engine->sys->fcntl(fd, F_GET_SEALS) >= 0)
		return WANTED;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	got = engine->sys->readlink(path, text, sizeof(text));
	if (got == sizeof(eventfd) - 1 && !memcmp(text, eventfd, sizeof(eventfd) - 1))
		return WANTED;
	if (got < 0 && errno == ENOENT && shunt_eventfd_is(&engine->aio, fd))	/* a chroot without /proc */
		return WANTED;
	return begins(text, got, "socket:[") || begins(text, got, "pipe:[") ? BRIEF : UNKNOWN;
}

/*
 * The packet holds them, too: the close here is not the last one, so a socket does not linger in it. A file's server
 * hears of each close, so others need places at the porter's, which are few. True: all were wanted.
 */
static bool fds_let_go(struct shunt_engine *engine, const int *fds, int count)
{
	bool good = true;

	for (int i = 0; i < count; i++) {
		enum kind kind = kind_of(engine, fds[i]);

		good = good && kind == WANTED;
		if (kind == UNKNOWN) {
			shunt_own_fds_mark(engine, fds[i]);
			shunt_porter_close_later(engine, fds[i]);
		} else {
			engine->sys->close(fds[i]);
		}
	}
	return good;
}

int shunt_screen_packet(struct shunt_engine *engine, int fd, int most, bool named)
{
	char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	int fds[RIGHTS_MOST], count, result;
	ssize_t got;

	_Static_assert(sizeof(space) <= CMSG_SPACE(RIGHTS_MOST * sizeof(int)), "each has a place");
	result = shunt_scm_rights_look(engine->sys, fd, named);
	if (!most || result != -EBADMSG)	/* most packets have none */
		return result;
	if (!shunt_porter_has_room(engine))
		return -EBUSY;
	got = engine->sys->recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	count = shunt_scm_rights_take(engine->sys, &header, fds, RIGHTS_MOST);
	return fds_let_go(engine, fds, count) && count <= most && !(header.msg_flags & MSG_CTRUNC) ?
		       1 :
		       -EBADMSG;
}
