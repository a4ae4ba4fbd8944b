/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/stream/uring.h"
#include "preload/rights.h"
#include "preload/touch.h"

static void retire(int fd, struct shunt_stream *stream, enum shunt_cause cause)
{
	if (shunt_process_foreign())
		shunt_inside(shunt_stream_retire_vforked(shunt_process.engine, fd, stream, cause));
	else
		shunt_inside(shunt_stream_retire(shunt_process.engine, fd, stream, cause));
}

void shunt_rights_retire(int fd, enum shunt_cause cause)
{
	struct shunt_stream *stream = shunt_as_stream(shunt_lookup(fd));
	int saved = errno;

	if (stream)
		retire(fd, stream, cause);
	errno = saved;
}

void shunt_rights_message(const struct msghdr *message)
{
	struct msghdr *m = (struct msghdr *)message;
	struct cmsghdr *control;
	size_t offset;
	int fd;

	if (!shunt_process.engine || shunt_unreadable(m->msg_control, m->msg_controllen))
		return;
	for (control = CMSG_FIRSTHDR(m); control; control = CMSG_NXTHDR(m, control)) {
		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		for (offset = CMSG_LEN(0); offset + sizeof(fd) <= control->cmsg_len;
		     offset += sizeof(fd)) {
			memcpy(&fd, (char *)control + offset, sizeof(fd));
			shunt_rights_retire(fd, SHUNT_CAUSE_PASSED);
		}
	}
}

/*
 * A child of vfork() may have closed or replaced the number without a trace in the table, which is
 * the parent's. Is it still the parent's socket?
 */
static bool still_parents(int fd)
{
	char link[64], found[64], expected[64];
	struct stat status;
	ssize_t bytes;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)shunt_process.pid, fd);
	bytes = readlink(link, found, sizeof(found) - 1);
	if (bytes < 0 || fstat(fd, &status))
		return false;
	found[bytes] = 0;
	snprintf(expected, sizeof(expected), "socket:[%lu]", (unsigned long)status.st_ino);
	return !strcmp(found, expected);
}

/*
 * closing_too: exec is going to close the close-on-exec descriptors, and the engine with its unsent bytes is gone by
 * then. So the kernel must have those bytes before. A plain stream has no unsent bytes.
 */
static void retire_inherited(bool closing_too)
{
	bool foreign = shunt_process_foreign();
	int saved = errno, flags;

	shunt_files_each(shunt_process.files, fd) {
		struct shunt_stream *stream = shunt_as_stream(shunt_lookup(fd));

		if (likely(!stream) || shunt_stream_is_plain(stream))
			continue;
		flags = real(fcntl)(fd, F_GETFD);
		if (flags < 0 || (flags & FD_CLOEXEC && !(closing_too && shunt_stream_is_linked(stream))))
			continue;
		if (!foreign || still_parents(fd))
			retire(fd, stream, SHUNT_CAUSE_INHERITED);
	}
	errno = saved;
}

void shunt_rights_ring(void)
{
	int saved = errno;

	shunt_files_each(shunt_process.files, fd) {
		struct shunt_stream *stream = shunt_as_stream(shunt_lookup(fd));

		if (stream && !shunt_stream_is_plain(stream))
			retire(fd, stream, SHUNT_CAUSE_URING);
	}
	errno = saved;
}

void shunt_rights_exec(void)
{
	retire_inherited(!shunt_process_foreign());
}

void shunt_rights_spawn(void)
{
	retire_inherited(false);
}
