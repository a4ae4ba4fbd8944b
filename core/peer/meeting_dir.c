/* SPDX-License-Identifier: MIT */
#include "core/peer/meeting_dir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/loop/endpoint.h"

#define UNNAMED 65534	/* the kernel's number of a user whom our user namespace does not name */
#define BACKLOG 128
#define PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* --- the directory --- */

/* Of a user outside our user namespace nothing better can be said than that it is another one than any inside. */
static int check(int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -errno;
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != UNNAMED)
		return -EPERM;
	return st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX) ? -EPERM : 0;
}

static int open_checked(struct shunt_engine *engine, const char *path, int how)
{
	int dir, result;

	if (path[0] != '/')
		return -EINVAL;
	dir = shunt_own_fds_make(engine, open(path, how | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (dir < 0)
		return dir;
	result = check(dir);
	if (result)
		shunt_own_fds_close(engine, dir);
	return result ? result : dir;
}

int shunt_meeting_dir_open(struct shunt_engine *engine, const char *path)
{
	return open_checked(engine, path, O_RDONLY);
}

/* --- a socket in it --- */

/* An O_PATH descriptor of the socket itself. -ENOENT: there is no such name; -ENOTSOCK: it is something else's. */
static int reach(struct shunt_engine *engine, int dir, const char *name, struct stat *st)
{
	int fd = shunt_own_fds_make(engine, openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	int result;

	if (fd < 0)
		return fd;
	result = fstat(fd, st) ? -errno : S_ISSOCK(st->st_mode) ? 0 : -ENOTSOCK;
	if (result)
		shunt_own_fds_close(engine, fd);
	return result ? result : fd;
}

static int connect_as(struct shunt_engine *engine, int dir, const char *name, int type)
{
	char path[PATH_BYTES];
	struct stat st;
	int fd = reach(engine, dir, name, &st), result;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	result = shunt_endpoint_connect_at(engine, path, type);
	shunt_own_fds_close(engine, fd);
	return result;
}

/* The kernel tells by the wrong type, and the owner of a name hears nothing of it. */
static bool is_abandoned(struct shunt_engine *engine, int dir, const char *name)
{
	int fd = connect_as(engine, dir, name, SOCK_STREAM);

	shunt_own_fds_close(engine, fd);
	return fd == -ECONNREFUSED;
}

/* Whoever may look into the directory may connect: trust belongs to a connection. */
static int open_to_all(struct shunt_engine *engine, int dir, const char *name)
{
	char path[PATH_BYTES];
	struct stat st;
	int fd = reach(engine, dir, name, &st), result;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	result = chmod(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH) ? -errno :
											  0;
	shunt_own_fds_close(engine, fd);
	return result;
}

int shunt_meeting_dir_listen(struct shunt_engine *engine, int dir, const char *name)
{
	char path[PATH_BYTES];
	int fd, result;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	fd = shunt_endpoint_listen_at(engine, path, SOCK_SEQPACKET, BACKLOG);
	if (fd < 0)
		return fd;
	result = open_to_all(engine, dir, name);
	if (!result)
		return fd;
	unlinkat(dir, name, 0);
	shunt_own_fds_close(engine, fd);
	return result;
}

static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

int shunt_meeting_dir_connect(struct shunt_engine *engine, const char *path, const char *name)
{
	int dir = open_checked(engine, path, O_PATH), fd;

	if (dir < 0)
		return is_shortage(dir) ? dir : -ENODEV;
	fd = connect_as(engine, dir, name, SOCK_SEQPACKET);
	shunt_own_fds_close(engine, dir);
	return fd >= 0 || is_shortage(fd) ? fd : -ECONNREFUSED;
}

/* --- names --- */

static bool are_one(int dir, const char *a, const char *b)
{
	struct stat first, second;

	return !fstatat(dir, a, &first, AT_SYMLINK_NOFOLLOW) &&
	       !fstatat(dir, b, &second, AT_SYMLINK_NOFOLLOW) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* The lock is held, so nobody else has removed it and taken it meanwhile. */
static void remove_abandoned(struct shunt_engine *engine, int dir, const char *name)
{
	if (is_abandoned(engine, dir, name))
		unlinkat(dir, name, 0);
}

int shunt_meeting_dir_link(struct shunt_engine *engine, int dir, const char *socket,
			   const char *name)
{
	int result;

	if (!linkat(dir, socket, dir, name, 0) || (errno == EEXIST && are_one(dir, socket, name)))
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (!is_abandoned(engine, dir, name))
		return -EADDRINUSE;
	if (flock(dir, LOCK_EX | LOCK_NB))
		return -EAGAIN;
	remove_abandoned(engine, dir, name);
	result = linkat(dir, socket, dir, name, 0) ? -errno : 0;
	flock(dir, LOCK_UN);
	return result == -EEXIST ? -EADDRINUSE : result;
}

void shunt_meeting_dir_drop(int dir, const char *socket, const char *name)
{
	if (are_one(dir, socket, name))
		unlinkat(dir, name, 0);
}

static bool is_to_sweep(int dir, const char *name)
{
	struct stat st;

	return (!strncmp(name, SHUNT_MEETING_TCP, strlen(SHUNT_MEETING_TCP)) ||
		!strncmp(name, SHUNT_MEETING_LINK, strlen(SHUNT_MEETING_LINK))) &&
	       !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	       (st.st_uid == geteuid() || !geteuid());
}

static DIR *list(struct shunt_engine *engine, int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !entries)
		engine->sys->close(fd);
	return entries;
}

/* The list's descriptor is made and closed by libc. */
void shunt_meeting_dir_sweep(struct shunt_engine *engine, int dir)
{
	struct dirent *entry;
	DIR *entries;

	if (flock(dir, LOCK_EX | LOCK_NB))
		return;
	shunt_own_fds_begin(engine);
	entries = list(engine, dir);
	for (int i = 0; entries && i < SHUNT_MEETING_ENTRIES && (entry = readdir(entries)) != NULL;
	     i++)
		if (is_to_sweep(dir, entry->d_name))
			remove_abandoned(engine, dir, entry->d_name);
	if (entries)
		closedir(entries);
	shunt_own_fds_end(engine);
	flock(dir, LOCK_UN);
}
