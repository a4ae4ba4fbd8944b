/* SPDX-License-Identifier: MIT */
#include "core/base/conf_file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that another user could have written says nothing. */
static const char *find_fault(const struct stat *st, enum shunt_conf_owner owner)
{
	bool own = st->st_uid == geteuid(), root = st->st_uid == 0;

	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (owner == SHUNT_CONF_ROOT && !root)
		return "it does not belong to root";
	if (owner == SHUNT_CONF_USER && !own)
		return "it does not belong to this user";
	if (!own && !root)
		return "it belongs neither to this user nor to root";
	if (st->st_mode & 0022)
		return "others than its owner may write it (chmod go-w)";
	return st->st_size > SHUNT_CONF_BYTES ? "it has more than 16384 bytes" : NULL;
}

/* A file that grows meanwhile is refused; the length or -errno. */
static int read_all(int fd, char text[SHUNT_CONF_BYTES], const char **why)
{
	size_t done = 0;
	char beyond;

	for (;;) {
		bool full = done == SHUNT_CONF_BYTES;
		ssize_t got = read(fd, full ? &beyond : text + done,
				   full ? 1 : SHUNT_CONF_BYTES - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (!got)
			return (int)done;
		if (got < 0 || full) {
			*why = got < 0 ? "it cannot be read" : "it has more than 16384 bytes";
			return -EIO;
		}
		done += (size_t)got;
	}
}

/* A name of which a part is missing, or is no folder, is that of no file. */
static int not_opened(int error, const char **why)
{
	const char *name = strerrordesc_np(error);

	if (error == ENOENT || error == ENOTDIR)
		return -ENOENT;
	*why = error == ELOOP ? "it is a symbolic link" : name ? name : "unknown error";
	return -error;
}

int shunt_conf_file_read(const char *path, enum shunt_conf_owner owner, char text[SHUNT_CONF_BYTES],
			 const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int result;

	if (fd < 0)
		return not_opened(errno, why);
	*why = fstat(fd, &st) ? "it cannot be examined" : find_fault(&st, owner);
	result = *why ? -EPERM : read_all(fd, text, why);
	close(fd);
	return result;
}
