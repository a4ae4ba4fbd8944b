/* SPDX-License-Identifier: MIT */
/*
 * A connection that comes by exec or by SCM_RIGHTS is a stream in doubt (core/stream/doubt.h). A number below 3 needs
 * the gate: stdio reads and writes inside libc.
 *
 * At the start the lowest numbers are looked at, up to a gap. A filter that is there already may forbid most calls, but
 * not fstat, which the dynamic linker makes. So only sockets are asked for more. A process that has confined itself since
 * is not served at all.
 */
#include "preload/inherit.h"
#include <linux/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include "preload/gate.h"
#include "preload/process.h"

#define GAP 16	/* closed numbers in a row: none is looked for behind them */
#define ESTABLISHED 1 /* tcpi_state; <netinet/tcp.h> has the names, but an older struct tcp_info */

static bool is_connection(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	return shunt_process_is_tcp(fd) &&
	       !real(getsockopt)(fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
	       info.tcpi_state == ESTABLISHED;
}

/* A socket has one open file description: numbers with one inode name one. -1: `fd` is the first of the numbers. */
static int same_as(int fd, const int *numbers, int count)
{
	struct stat own, other;

	for (int i = 0; i < count && !fstat(fd, &own); i++)
		if (!fstat(numbers[i], &other) && own.st_ino == other.st_ino)
			return numbers[i];
	return -1;
}

static bool adopt(int fd, enum shunt_cause how)
{
	if (!is_connection(fd) || !shunt_process_engine() || shunt_process_is_stdio(fd))
		return false;
	shunt_inside_do(shunt_file_received(shunt_process.engine, fd, how));
	return true;
}

void shunt_inherit_begin(void)
{
	int adopted[SHUNT_INHERIT_NUMBERS], known = 0, closed = 0, saved = errno;
	struct stat status;

	for (int fd = 0; fd < SHUNT_INHERIT_NUMBERS && closed < GAP; fd++) {
		int first;

		if (fstat(fd, &status)) {
			closed++;
			continue;
		}
		closed = 0;
		if (!S_ISSOCK(status.st_mode))
			continue;
		first = known ? same_as(fd, adopted, known) : -1;
		if (first >= 0)
			shunt_inside_do(shunt_file_duplicated(shunt_process.engine, first, fd));
		else if (adopt(fd, SHUNT_CAUSE_INHERITED))
			adopted[known++] = fd;
	}
	errno = saved;
}

static void receive(int fd)
{
	struct stat status;

	if (shunt_process_confined() || shunt_process_foreign() || fstat(fd, &status) ||
	    !S_ISSOCK(status.st_mode))
		return;
	shunt_process_fresh(fd);
	adopt(fd, SHUNT_CAUSE_PASSED);
}

void shunt_inherit_received(const struct msghdr *message)
{
	struct msghdr *m = (struct msghdr *)message;
	int saved = errno, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (char *)c + at, sizeof(fd));
			receive(fd);
		}
	}
	errno = saved;
}
