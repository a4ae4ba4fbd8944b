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
#define CLOCK 64		/* descriptors between two looks at it */
#define PATIENCE 100000000ull	/* ns: half of what a peer has for an answer (SHUNT_PATIENCE_STRANGE) */

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
	int session;
	uint64_t until;
	bool late;
	/* of the process that is looked at */
	bool ours, hidden;	/* this one; some of its links cannot be read */
	unsigned int seen;	/* descriptors */
	unsigned int tasks;
};

struct life {			/* of /proc/PID/stat */
	char state;
	int parent, session, threads;
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

static bool is_late(struct look *look)
{
	if (!look->late && look->fds->sys->now() > look->until) {
		look->late = true;
		note_all(look, SHUNT_SOLE_UNSEEN);
	}
	return look->late;
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
	_Alignas(8) char room[4096];
	long got = 0;

	while (!look->late && (got = syscall(SYS_getdents64, folder, room, sizeof(room))) > 0)
		for (long at = 0; at < got;) {
			const struct entry *entry = (const struct entry *)(room + at);

			if (entry->name[0] >= '0' && entry->name[0] <= '9')
				visit(look, folder, atoi(entry->name));
			at += entry->bytes;
		}
	return look->late || !got;
}

/* --- ancestors --- */

/* False: it cannot be told. */
static bool life_of(struct look *look, pid_t pid, struct life *life)
{
	char name[TEXT], text[512];
	const char *end;
	ssize_t got;
	int fd;

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	fd = open_at(look, look->proc, name, 0);
	if (fd < 0)
		return false;
	got = look->fds->sys->read(fd, text, sizeof(text) - 1);
	shunt_own_fds_close(look->fds, fd);
	text[got > 0 ? got : 0] = 0;
	end = strrchr(text, ')'); /* the name before it may have any bytes */
	return end &&
	       sscanf(end, ") %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
		      &life->state, &life->parent, &life->session, &life->threads) == 4;
}

/* False: one of them is not in our PID namespace, or hidden. */
static bool find_ancestors(struct look *look)
{
	pid_t pid = look->self;
	struct life life = { 0 };

	if (!life_of(look, pid, &life))
		return false;
	look->session = life.session;
	for (pid = life.parent; pid > 0 && look->depth < ANCESTORS; pid = life.parent) {
		look->ancestors[look->depth++] = pid;
		if (pid == 1)
			return true;
		if (!life_of(look, pid, &life))
			return false;
	}
	return look->self == 1;
}

/* Everybody descends from the first process, which adopts orphans. */
static bool is_ancestor(const struct look *look, pid_t pid)
{
	for (unsigned int i = 0; i < look->depth; i++)
		if (look->ancestors[i] == pid && pid != 1)
			return true;
	return false;
}

/* A descendant of ours that has another user, or another one of our session, may have got it from us. */
static bool is_relative(struct look *look, pid_t pid)
{
	struct life life;

	if (is_ancestor(look, pid))
		return true;
	for (int i = 0; i < ANCESTORS && pid > 1; i++, pid = life.parent) {
		if (!life_of(look, pid, &life))
			return true;
		if (life.parent == look->self || (!i && life.session == look->session))
			return true;
	}
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

static void note_link(struct look *look, const char *text, int fd)
{
	uint64_t inode;

	if (look->ours && is_unknown_set(look, text, fd))
		note_all(look, SHUNT_SOLE_HELD);
	if (strncmp(text, "socket:[", 8))
		return;
	inode = strtoull(text + 8, NULL, 10);
	for (unsigned int i = 0; i < look->count; i++)
		if (look->sockets[i].inode == inode &&
		    (!look->ours || is_unknown(look, &look->sockets[i], fd)))
			note(&look->sockets[i], SHUNT_SOLE_HELD);
}

/* To read what a folder says takes more rights than to list it. */
static void visit_link(struct look *look, int folder, int fd)
{
	char name[16], text[TEXT];
	ssize_t got;

	if (!(look->seen++ % CLOCK) && is_late(look))
		return;
	snprintf(name, sizeof(name), "%d", fd);
	got = readlinkat(folder, name, text, sizeof(text) - 1);
	if (got > 0) {
		text[got] = 0;
		note_link(look, text, fd);
	} else if (got < 0 && errno != ENOENT && errno != ESRCH) {
		look->hidden = true;
	}
}

/* Its descriptors cannot be read. */
static void doubt(struct look *look, pid_t pid)
{
	struct life life = { 0 };
	struct stat status;
	char name[TEXT];
	bool related;

	snprintf(name, sizeof(name), "%d", (int)pid);
	if (fstatat(look->proc, name, &status, 0) ||
	    (life_of(look, pid, &life) && life.state == 'Z' && life.threads <= 1))
		return; /* it has ended */
	related = status.st_uid == look->user || is_relative(look, pid);
	for (unsigned int i = 0; i < look->count; i++)
		if (related || look->sockets[i].user != look->user)
			note(&look->sockets[i], SHUNT_SOLE_UNSEEN);
}

/* 0, or -errno. */
static int visit_folder(struct look *look, int at, const char *name,
			void (*visit)(struct look *, int, int))
{
	int fd = open_at(look, at, name, O_DIRECTORY);
	bool all;

	if (fd < 0)
		return fd;
	all = each_number(look, fd, visit);
	shunt_own_fds_close(look->fds, fd);
	return all ? 0 : -EACCES;
}

static void visit_task(struct look *look, int tasks, int tid)
{
	char name[TEXT];

	look->tasks++;
	snprintf(name, sizeof(name), "%d/fd", tid);
	if (!look->seen)
		visit_folder(look, tasks, name, visit_link);
}

/* Where the first thread has ended, the others say what the process holds. */
static int visit_descriptors(struct look *look, int proc, int pid)
{
	char name[TEXT];
	int result;

	snprintf(name, sizeof(name), "%d/fd", pid);
	result = visit_folder(look, proc, name, visit_link);
	if (!result && !look->seen) {
		snprintf(name, sizeof(name), "%d/task", pid);
		result = visit_folder(look, proc, name, visit_task);
		look->hidden |= look->tasks > 1 && !look->seen;
	}
	return result;
}

static void visit_process(struct look *look, int proc, int pid)
{
	int result;

	look->ours = pid == look->self;
	look->hidden = false;
	look->seen = look->tasks = 0;
	if (is_late(look))
		return;
	result = visit_descriptors(look, proc, pid);
	if (result == -EACCES || result == -EPERM || look->hidden)
		doubt(look, pid);
	else if (result && result != -ENOENT && result != -ESRCH)
		note_all(look, SHUNT_SOLE_UNSEEN);
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
	struct stat first;
	bool seen;

	if (!count)
		return;

	for (unsigned int i = 0; i < count; i++)
		sockets[i].sole = SHUNT_SOLE_YES;
	look.until = fds->sys->now() + PATIENCE;
	look.proc = open_at(&look, AT_FDCWD, "/proc", O_DIRECTORY);
	seen = look.proc >= 0 && is_our_proc(&look) && find_ancestors(&look) &&
	       !fstatat(look.proc, "1", &first, 0); /* hidepid hides it, as all that we may not trace */
	for (int i = 0; seen && i < LOOKS; i++)
		seen = look_once(&look);
	if (!seen)
		note_all(&look, SHUNT_SOLE_UNSEEN);
	shunt_own_fds_close(fds, look.proc);
}
