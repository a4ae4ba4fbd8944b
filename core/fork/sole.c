/* SPDX-License-Identifier: MIT */
#include "core/fork/sole.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/fd/own_fds.h"

#define ANCESTORS 64
#define TEXT 64			/* of a link that matters */
#define LOOKS 2

struct entry {			/* struct linux_dirent64 */
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

struct look {
	struct shunt_fds *fds;
	struct shunt_sole_socket *sockets;
	unsigned int count;
	pid_t self;
	uid_t user;
	int proc;		/* a descriptor of /proc */
	pid_t ancestors[ANCESTORS];
	unsigned int depth;
};

/* The worse answer stays. */
static void note(struct shunt_sole_socket *socket, enum shunt_sole sole)
{
	if (socket->sole == SHUNT_SOLE_YES)
		socket->sole = sole;
}

static void note_all(struct look *look, enum shunt_sole sole)
{
	for (unsigned int i = 0; i < look->count; i++)
		note(&look->sockets[i], sole);
}

/* openat() of libc is a cancellation point. */
static int open_at(struct look *look, int at, const char *name, int flags)
{
	return shunt_own_fds_make(look->fds,
				  (int)syscall(SYS_openat, at, name, O_RDONLY | O_CLOEXEC | flags));
}

/* Calls visit() with each entry's number, until it says no more. False: the folder cannot be read. */
static bool each_number(struct look *look, int folder, void (*visit)(struct look *, int, int))
{
	_Alignas(8) char room[8192];
	long got;

	while ((got = syscall(SYS_getdents64, folder, room, sizeof(room))) > 0)
		for (long at = 0; at < got;) {
			const struct entry *entry = (const struct entry *)(room + at);

			if (entry->name[0] >= '0' && entry->name[0] <= '9')
				visit(look, folder, atoi(entry->name));
			at += entry->bytes;
		}
	return !got;
}

/* --- ancestors --- */

/* -1: it cannot be told. */
static pid_t parent_of(struct look *look, pid_t pid)
{
	char name[TEXT], text[512];
	const char *end;
	ssize_t got;
	int fd;

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	fd = open_at(look, look->proc, name, 0);
	if (fd < 0)
		return -1;
	got = look->fds->sys->read(fd, text, sizeof(text) - 1);
	shunt_own_fds_close(look->fds, fd);
	text[got > 0 ? got : 0] = 0;
	end = strrchr(text, ')'); /* the name before it may have any bytes */
	return end && end[1] && end[2] && end[3] ? atoi(end + 4) : -1;
}

/* False: one of them is not in our PID namespace, or hidden. */
static bool find_ancestors(struct look *look)
{
	pid_t pid = look->self;

	while (pid != 1) {
		pid = parent_of(look, pid);
		if (pid <= 0 || look->depth == ANCESTORS)
			return false;
		look->ancestors[look->depth++] = pid;
	}
	return true;
}

/* Everybody descends from the first process, which adopts orphans. */
static bool is_ancestor(const struct look *look, pid_t pid)
{
	for (unsigned int i = 0; i < look->depth; i++)
		if (look->ancestors[i] == pid && pid != 1)
			return true;
	return false;
}

/* --- one process --- */

/* In this process: a way to the socket that the table does not know. */
static bool is_unknown(struct look *look, const struct shunt_sole_socket *socket, int fd)
{
	struct shunt_file *file = shunt_files_get(look->fds->files, fd);

	return !file || (file->kind != SHUNT_FILE_PRIVATE &&
			 file != shunt_files_get(look->fds->files, socket->fd));
}

static bool is_unknown_set(struct look *look, const char *text, int fd)
{
	return (!strcmp(text, "anon_inode:[eventpoll]") ||
		!strcmp(text, "anon_inode:[io_uring]")) &&
	       !shunt_files_get(look->fds->files, fd);
}

static void note_link(struct look *look, bool ours, const char *text, int fd)
{
	uint64_t inode;

	if (ours && is_unknown_set(look, text, fd))
		note_all(look, SHUNT_SOLE_HELD);
	if (strncmp(text, "socket:[", 8))
		return;
	inode = strtoull(text + 8, NULL, 10);
	for (unsigned int i = 0; i < look->count; i++)
		if (look->sockets[i].inode == inode &&
		    (!ours || is_unknown(look, &look->sockets[i], fd)))
			note(&look->sockets[i], SHUNT_SOLE_HELD);
}

static void visit_link(struct look *look, int folder, int fd, bool ours)
{
	char name[16], text[TEXT];
	ssize_t got;

	snprintf(name, sizeof(name), "%d", fd);
	got = readlinkat(folder, name, text, sizeof(text) - 1);
	if (got <= 0)
		return;
	text[got] = 0;
	note_link(look, ours, text, fd);
}

static void visit_own(struct look *look, int folder, int fd)
{
	visit_link(look, folder, fd, true);
}

static void visit_other(struct look *look, int folder, int fd)
{
	visit_link(look, folder, fd, false);
}

/* Its descriptors cannot be read. */
static void doubt(struct look *look, pid_t pid)
{
	struct stat status;
	char name[TEXT];

	snprintf(name, sizeof(name), "%d", (int)pid);
	if (fstatat(look->proc, name, &status, 0))
		return; /* it has ended */
	for (unsigned int i = 0; i < look->count; i++)
		if (look->sockets[i].user != look->user || status.st_uid == look->user ||
		    is_ancestor(look, pid))
			note(&look->sockets[i], SHUNT_SOLE_UNSEEN);
}

static bool is_gone(int error)
{
	return error == -ENOENT || error == -ESRCH;
}

static void visit_process(struct look *look, int proc, int pid)
{
	char name[TEXT];
	int fd;

	snprintf(name, sizeof(name), "%d/fd", pid);
	fd = open_at(look, proc, name, O_DIRECTORY);
	if (fd < 0) {
		if (!is_gone(fd))
			doubt(look, pid);
		return;
	}
	if (!each_number(look, fd, pid == look->self ? visit_own : visit_other))
		doubt(look, pid);
	shunt_own_fds_close(look->fds, fd);
}

/* --- all --- */

static bool is_our_proc(struct look *look)
{
	char text[TEXT];
	ssize_t got = readlinkat(look->proc, "self", text, sizeof(text) - 1);

	if (got <= 0)
		return false;
	text[got] = 0;
	return atoi(text) == look->self;
}

static bool look_once(struct look *look)
{
	return lseek(look->proc, 0, SEEK_SET) == 0 &&
	       each_number(look, look->proc, visit_process);
}

bool shunt_sole_ask(int fd, struct shunt_sole_socket *socket)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return false;
	*socket = (struct shunt_sole_socket){ .fd = fd, .inode = status.st_ino, .user = status.st_uid };
	return true;
}

void shunt_sole_look(struct shunt_fds *fds, struct shunt_sole_socket *sockets, unsigned int count)
{
	struct look look = { .fds = fds, .sockets = sockets, .count = count, .self = getpid(), .user = geteuid() };
	bool seen;

	for (unsigned int i = 0; i < count; i++)
		sockets[i].sole = SHUNT_SOLE_YES;
	look.proc = open_at(&look, AT_FDCWD, "/proc", O_DIRECTORY);
	seen = look.proc >= 0 && is_our_proc(&look) && find_ancestors(&look);
	for (int i = 0; seen && i < LOOKS; i++)
		seen = look_once(&look);
	if (!seen)
		note_all(&look, SHUNT_SOLE_UNSEEN);
	shunt_own_fds_close(fds, look.proc);
}
