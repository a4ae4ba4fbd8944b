/* SPDX-License-Identifier: MIT */
#include "core/base/scm_rights.h"

#include <errno.h>
#include <string.h>
#include "core/base/sys.h"

void shunt_scm_rights_attach(struct msghdr *header, char *space, const int *fds, int count)
{
	struct cmsghdr *control;

	if (!count)
		return;
	header->msg_control = space;
	header->msg_controllen = CMSG_SPACE(count * sizeof(int));
	control = CMSG_FIRSTHDR(header);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(control), fds, count * sizeof(int));
}

int shunt_scm_rights_take(const struct shunt_sys *sys, struct msghdr *header, int *fds, int most)
{
	int count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		const int *given = (const int *)CMSG_DATA(c);
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (count < most)
				fds[count++] = given[i];
			else
				sys->close(given[i]);
		}
	}
	return count;
}

/* Without room for descriptors the kernel installs none, and says MSG_CTRUNC. */
int shunt_scm_rights_look(const struct shunt_sys *sys, int fd, bool named)
{
	char space[CMSG_SPACE(sizeof(struct ucred))];
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	do {	/* ECONNRESET comes once, before what the peer has sent: it was closed with messages of ours unread */
		header.msg_control = space;
		header.msg_controllen = named ? sizeof(space) : 0;
		header.msg_flags = 0;
		got = sys->recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == ECONNRESET);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return header.msg_flags & MSG_CTRUNC ? -EBADMSG : 1;
}
