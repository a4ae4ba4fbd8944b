/* SPDX-License-Identifier: MIT */
#include "core/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/write_nosig.h"

#define MODE 0644	/* as far as the umask allows */
#define SAFELY (O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)

static const char not_ours[] = "it is not a regular file of this user";

/* Async-signal-safe, other than strerror(). */
static int outfile_fail(int error, const char **why)
{
	*why = strerrordesc_np(error);
	if (!*why)
		*why = "unknown error";
	return -1;
}

static int is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* A second name could be another user's for a file of ours that is no log. */
int shunt_outfile_append(const char *path, const char **why)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | SAFELY, MODE);
	struct stat st;

	/* ELOOP is a symbolic link, ENXIO a FIFO or a socket. */
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		*why = not_ours;
	else if (fd < 0)
		outfile_fail(errno, why);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && is_ours(&st) && st.st_nlink <= 1)
		return fd;
	*why = not_ours;
	close(fd);
	return -1;
}

/* An O_PATH descriptor of the folder that `path` names before its last slash; *name is the rest. */
static int open_folder(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	size_t length;

	*name = slash ? slash + 1 : path;
	if (!slash)
		return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	length = (size_t)(slash - path) + 1;
	if (length >= sizeof(folder)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(folder, path, length);
	folder[length] = '\0';
	return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int write_all(int fd, const char *bytes, size_t length,
		     ssize_t (*writer)(int fd, const void *buffer, size_t length))
{
	while (length) {
		ssize_t wrote = shunt_write_nosig(writer, fd, bytes, length);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return -1;
		bytes += wrote;
		length -= (size_t)wrote;
	}
	return 0;
}

/* O_EXCL: a guessed name can only be in the way. */
static int open_temporary(int folder, char *name, size_t room)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint64_t)getpid();
	snprintf(name, room, ".shunt-%016llx", (unsigned long long)number);
	return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | SAFELY, MODE);
}

static int outfile_replace(int folder, const char *name, const char *bytes, size_t length,
			   ssize_t (*writer)(int fd, const void *buffer, size_t length),
			   const char **why)
{
	char temporary[32];
	int fd = open_temporary(folder, temporary, sizeof(temporary)), rc;

	if (fd < 0)
		return outfile_fail(errno, why);
	rc = write_all(fd, bytes, length, writer) ? errno : 0;
	if (close(fd) && !rc)
		rc = errno;
	if (!rc && renameat(folder, temporary, folder, name))
		rc = errno;
	if (!rc)
		return 0;
	unlinkat(folder, temporary, 0);
	return outfile_fail(rc, why);
}

int shunt_outfile_replace(const char *path, const char *bytes, size_t length,
			  ssize_t (*writer)(int fd, const void *buffer, size_t length), const char **why)
{
	const char *name;
	int folder = open_folder(path, &name), rc;
	struct stat st;

	if (folder < 0)
		return outfile_fail(errno, why);
	/* As root, rename() would put a file in the place of /dev/null. */
	if (!fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && !is_ours(&st)) {
		*why = not_ours;
		rc = -1;
	} else {
		rc = outfile_replace(folder, name, bytes, length, writer, why);
	}
	close(folder);
	return rc;
}
