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
#include "core/poll/cancel.h"

#define UNNAMED 65534	/* the kernel's number of a user whom our user namespace does not name */
#define BACKLOG 128
#define PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* --- the directory --- */

static bool others_may_write(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH) && !(st->st_mode & S_ISVTX);
}

/* Of a user outside our user namespace nothing better can be said than that it is another one than any inside. */
static bool is_of_root(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == UNNAMED;
}

/* Of a call that is no cancellation point, listen() for one. */
static int open_at(struct shunt_engine *engine, int at, const char *path, int how)
{
	int state = shunt_cancel_off();
	int fd = shunt_own_fds_make(&engine->fds, openat(at, path, how | O_NOFOLLOW | O_CLOEXEC));

	shunt_cancel_restore(state);
	return fd;
}

static int open_directory(struct shunt_engine *engine, const char *path, int how, struct stat *st)
{
	int dir = open_at(engine, AT_FDCWD, path, how | O_DIRECTORY), result;

	if (dir < 0 || !fstat(dir, st))
		return dir;
	result = -errno;
	shunt_own_fds_close(&engine->fds, dir);
	return result;
}

static int open_checked(struct shunt_engine *engine, const char *path, int how)
{
	struct stat st;
	int dir;

	if (path[0] != '/')
		return -EINVAL;
	dir = open_directory(engine, path, how, &st);
	if (dir < 0 || ((is_of_root(&st) || st.st_uid == geteuid()) && !others_may_write(&st)))
		return dir;
	shunt_own_fds_close(&engine->fds, dir);
	return -EPERM;
}

int shunt_meeting_dir_open(struct shunt_engine *engine, const char *path)
{
	return open_checked(engine, path, O_RDONLY);
}

int shunt_meeting_dir_open_of(struct shunt_engine *engine, const char *above, const char *path,
			      uid_t user, bool list)
{
	struct stat st;
	int dir = open_directory(engine, above, O_PATH, &st);

	shunt_own_fds_close(&engine->fds, dir);
	if (dir < 0 || !is_of_root(&st) || others_may_write(&st))
		return dir < 0 ? dir : -EPERM;
	dir = open_directory(engine, path, list ? O_RDONLY : O_PATH, &st);
	if (dir < 0 || (st.st_uid == user && !(st.st_mode & (S_IWGRP | S_IWOTH))))
		return dir;
	shunt_own_fds_close(&engine->fds, dir);
	return -EPERM;
}

/* --- a socket in it --- */

/*
 * An O_PATH descriptor of the socket itself, and the path that leads to it. -ENOENT: there is no such name; -ENOTSOCK:
 * it is something else's.
 */
static int reach(struct shunt_engine *engine, int dir, const char *name, char path[PATH_BYTES])
{
	int fd = open_at(engine, dir, name, O_PATH), result;
	struct stat st;

	if (fd < 0)
		return fd;
	result = fstat(fd, &st) ? -errno : S_ISSOCK(st.st_mode) ? 0 : -ENOTSOCK;
	if (result)
		shunt_own_fds_close(&engine->fds, fd);
	snprintf(path, PATH_BYTES, "/proc/self/fd/%d", fd);
	return result ? result : fd;
}

static int connect_as(struct shunt_engine *engine, int dir, const char *name, int type)
{
	char path[PATH_BYTES];
	int fd = reach(engine, dir, name, path), result;

	if (fd < 0)
		return fd;
	result = shunt_endpoint_connect_at(&engine->porter, path, type);
	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

/* The kernel tells by the wrong type, and the owner of a name hears nothing of it. */
static bool is_abandoned(struct shunt_engine *engine, int dir, const char *name)
{
	int fd = connect_as(engine, dir, name, SOCK_STREAM);

	shunt_own_fds_close(&engine->fds, fd);
	return fd == -ECONNREFUSED;
}

/* Every user who may look into the directory may connect: trust belongs to a connection. */
static int open_to_all(struct shunt_engine *engine, int dir, const char *name)
{
	char path[PATH_BYTES];
	int fd = reach(engine, dir, name, path), result;

	if (fd < 0)
		return fd;
	result = chmod(path, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH) ? -errno :
											  0;
	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

int shunt_meeting_dir_listen(struct shunt_engine *engine, int dir, const char *name)
{
	char path[PATH_BYTES];
	int fd, result;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	fd = shunt_endpoint_listen_at(&engine->porter, path, SOCK_SEQPACKET, BACKLOG);
	if (fd < 0)
		return fd;
	result = open_to_all(engine, dir, name);
	if (!result)
		return fd;
	unlinkat(dir, name, 0);
	shunt_own_fds_close(&engine->fds, fd);
	return result;
}

static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

int shunt_meeting_dir_reach(struct shunt_engine *engine, int dir, const char *name)
{
	int fd = connect_as(engine, dir, name, SOCK_SEQPACKET);

	return fd >= 0 || is_shortage(fd) ? fd : -ECONNREFUSED;
}

int shunt_meeting_dir_connect(struct shunt_engine *engine, const char *path, const char *name)
{
	int dir = open_checked(engine, path, O_PATH), fd;

	if (dir < 0)
		return is_shortage(dir) ? dir : -ENODEV;
	fd = shunt_meeting_dir_reach(engine, dir, name);
	shunt_own_fds_close(&engine->fds, dir);
	return fd;
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

int shunt_meeting_dir_take(struct shunt_engine *engine, int dir, const char *name)
{
	int fd = shunt_meeting_dir_listen(engine, dir, name);

	if (fd != -EADDRINUSE || !is_abandoned(engine, dir, name))
		return fd;
	if (flock(dir, LOCK_EX | LOCK_NB))
		return -EADDRINUSE;
	remove_abandoned(engine, dir, name);
	fd = shunt_meeting_dir_listen(engine, dir, name);
	flock(dir, LOCK_UN);
	return fd;
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

static DIR *names_list(struct shunt_engine *engine, int dir)
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
	shunt_own_fds_begin(&engine->fds);
	entries = names_list(engine, dir);
	for (int i = 0; entries && i < SHUNT_MEETING_ENTRIES && (entry = readdir(entries)) != NULL;
	     i++)
		if (is_to_sweep(dir, entry->d_name))
			remove_abandoned(engine, dir, entry->d_name);
	if (entries)
		closedir(entries);
	shunt_own_fds_end(&engine->fds);
	flock(dir, LOCK_UN);
}
