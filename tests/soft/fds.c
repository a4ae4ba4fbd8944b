/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/soft/fds.h"
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define ROOM CMSG_SPACE(2 * sizeof(int))

bool fds_send(int socket, const void *message, size_t bytes, const int fds[2])
{
	char control[ROOM] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message, bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = ROOM };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(rights), fds, 2 * sizeof(int));
	if (fds[0] < 0)
		header.msg_controllen = 0;
	return sendmsg(socket, &header, 0) == (ssize_t)bytes;
}

bool fds_receive(int socket, void *message, size_t bytes, int fds[2])
{
	char control[ROOM];
	struct iovec iov = { message, bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = ROOM };

	fds[0] = fds[1] = -1;
	if (recvmsg(socket, &header, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)bytes)
		return false;
	if (CMSG_FIRSTHDR(&header))
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&header)), 2 * sizeof(int));
	return true;
}
