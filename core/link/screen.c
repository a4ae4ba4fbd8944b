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

#define RIGHTS_MOST 256	/* the kernel lets 253 pass at once */

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
 * The packet holds them, too: the close here is not the last one, so a socket does not linger in it. Places at the
 * porter's are few, and one packet has room for more descriptors than there are places. True: all were wanted.
 */
static bool let_go(struct shunt_engine *engine, const int *fds, int count)
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

int shunt_screen_packet(struct shunt_engine *engine, int fd, int most)
{
	char space[CMSG_SPACE(RIGHTS_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	ssize_t got = engine->sys->recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[RIGHTS_MOST], count;

	if (got < 0 && errno == ECONNRESET)	/* it was closed with messages of ours unread: that is said once */
		return 1;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	count = shunt_scm_rights_take(engine->sys, &header, fds, RIGHTS_MOST);
	return let_go(engine, fds, count) && count <= most && !(header.msg_flags & MSG_CTRUNC) ? 1 : -EBADMSG;
}
