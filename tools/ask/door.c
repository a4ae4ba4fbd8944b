/* SPDX-License-Identifier: MIT */
#include "tools/ask/door.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/loop/endpoint.h"
#include "tools/ask/budget.h"
#include "tools/ask/guard.h"
#include "tools/shunt.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define LISTENS (1U << 16)	/* __SO_ACCEPTCON; accepted sockets bear the name, too */
#define DIGITS "0123456789abcdef"

/* ---- names ---- */

static bool is_identity(const char *text)
{
	return strspn(text, DIGITS) == SHUNT_DOOR_IDENTITY - 1 && !text[SHUNT_DOOR_IDENTITY - 1];
}

/*
 * The identity in a line of /proc/net/unix, which is changed. NULL: it is no door of that
 * service.
 */
static const char *identity_of(char *line, const char *service, unsigned int wanted,
			       unsigned long *inode)
{
	char prefix[32];
	unsigned int flags, type;
	char *name;

	line[strcspn(line, "\n")] = 0;
	snprintf(prefix, sizeof(prefix), " @shunt/%s/", service);
	name = strstr(line, prefix);
	if (!name || sscanf(line, "%*s %*s %*s %x %x %*s %lu", &flags, &type, inode) != 3 ||
	    !(flags & LISTENS) || type != wanted)
		return NULL;
	name += strlen(prefix);
	return is_identity(name) ? name : NULL;
}

/* Ours first: others may have any number of doors. */
static int compare(const void *a, const void *b)
{
	const struct shunt_door *x = a, *y = b;
	bool ours = shunt_budget_trusts(x->user);

	return ours != shunt_budget_trusts(y->user) ? (ours ? -1 : 1) :
						      strcmp(x->identity, y->identity);
}

static struct shunt_door *add(struct shunt_doors *doors)
{
	size_t count = doors->count;

	if (count >= 64 ? !(count & (count - 1)) : !count) {
		doors->door = reallocarray(doors->door, count ? 2 * count : 64,
					   sizeof(*doors->door));
		if (!doors->door)
			abort();
	}
	doors->count++;
	return &doors->door[count];
}

static int read_doors(const char *service, int type, struct shunt_doors *doors)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	size_t line_room = 0;
	char *line = NULL;

	if (!sockets)
		return -errno;
	while (getline(&line, &line_room, sockets) > 0) {
		struct shunt_door door = { .user = SHUNT_DOOR_NOBODY };
		const char *identity = identity_of(line, service, (unsigned int)type, &door.inode);

		if (!identity)
			continue;
		memcpy(door.identity, identity, SHUNT_DOOR_IDENTITY);
		*add(doors) = door;
	}
	free(line);
	fclose(sockets);
	return 0;
}

/* ---- whose they are ---- */

/* Could the process have that door? Where its descriptors may not be seen, yes. `held`: inodes of its sockets. */
struct holder {
	unsigned long *held;
	size_t count;
	bool seen;
};

static void find_sockets(pid_t pid, struct holder *holder)
{
	char path[64], target[64] = "";
	const struct dirent *entry;
	DIR *dir;

	/* That /proc may be of another PID namespace. */
	if (readlink("/proc/self", target, sizeof(target)) <= 0 || atoi(target) != getpid())
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	holder->seen = dir;
	while (dir && (entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		unsigned long inode;

		target[length > 0 ? length : 0] = 0;
		if (sscanf(target, "socket:[%lu]", &inode) != 1)
			continue;
		holder->held = reallocarray(holder->held, holder->count + 1, sizeof(*holder->held));
		if (!holder->held)
			abort();
		holder->held[holder->count++] = inode;
	}
	if (dir)
		closedir(dir);
}

static bool may_hold(const struct holder *holder, const struct shunt_door *door)
{
	for (size_t i = 0; holder->seen && i < holder->count; i++)
		if (holder->held[i] == door->inode)
			return true;
	return !holder->seen;
}

static bool is_meant(const struct shunt_door *wanted, const struct holder *holders, size_t count,
		     const struct shunt_door *door)
{
	for (size_t i = 0; i < count; i++)
		if (wanted[i].identity[0] ? !strcmp(wanted[i].identity, door->identity) :
					    may_hold(&holders[i], door))
			return true;
	return !count;
}

static void leave_out_others(struct shunt_doors *doors, const struct shunt_door *wanted,
			     size_t count)
{
	struct holder *holders = calloc(count + 1, sizeof(*holders));
	size_t kept = 0;

	if (!holders)
		abort();
	for (size_t i = 0; i < count; i++)
		if (!wanted[i].identity[0])
			find_sockets(wanted[i].pid, &holders[i]);
	for (size_t i = 0; i < doors->count; i++)
		if (is_meant(wanted, holders, count, &doors->door[i]))
			doors->door[kept++] = doors->door[i];
	doors->count = kept;
	for (size_t i = 0; i < count; i++)
		free(holders[i].held);
	free(holders);
}

static void leave_out_crowds(struct shunt_doors *doors)
{
	struct shunt_budget budget = { .limits = &shunt_budget_usual };
	size_t kept = 0;

	for (size_t i = 0; i < doors->count; i++)
		if (shunt_budget_door(shunt_budget_of(&budget, doors->door[i].user, false)))
			doors->door[kept++] = doors->door[i];
	doors->count = kept;
	shunt_budget_free(&budget);
}

int shunt_door_list(const char *service, int type, const struct shunt_door *wanted, size_t count,
		    struct shunt_doors *doors)
{
	int rc;

	*doors = (struct shunt_doors){ 0 };
	rc = read_doors(service, type, doors);
	if (rc || !doors->count)
		return rc;
	leave_out_others(doors, wanted, count);
	shunt_door_users(doors);
	if (doors->count)
		qsort(doors->door, doors->count, sizeof(*doors->door), compare);
	leave_out_crowds(doors);
	return 0;
}

bool shunt_door_parse(const char *word, struct shunt_door *wanted)
{
	char *end;
	long pid;

	*wanted = (struct shunt_door){ 0 };
	if (is_identity(word)) {
		memcpy(wanted->identity, word, SHUNT_DOOR_IDENTITY);
		return true;
	}
	pid = strtol(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || pid <= 0 || pid > INT32_MAX)
		return false;
	wanted->pid = (pid_t)pid;
	return true;
}

bool shunt_door_matches(const struct shunt_door *wanted, const struct shunt_door *door)
{
	if (wanted->identity[0])
		return !strcmp(wanted->identity, door->identity);
	return door->met && door->pid == wanted->pid;
}

bool shunt_door_may_match(const struct shunt_door *wanted, const struct shunt_door *door)
{
	return shunt_door_matches(wanted, door) || (!wanted->identity[0] && !door->met);
}

const char *shunt_door_text(const struct shunt_door *door, char buf[SHUNT_DOOR_TEXT])
{
	if (door->pid)
		snprintf(buf, SHUNT_DOOR_TEXT, "%d", (int)door->pid);
	else
		snprintf(buf, SHUNT_DOOR_TEXT, "%s", door->identity);
	return buf;
}

const char *shunt_door_absence(const struct shunt_door *wanted, bool shut)
{
	return wanted->pid ? shunt_process_absence(wanted->pid, shut) :
			     "no process of this network namespace has that identity";
}

/* ---- knocking ---- */

/* Never waits: -EAGAIN where too many others have come. */
static int connect_to(const struct shunt_door *door, const char *service, int type)
{
	int fd = shunt_guard_socket(type), rc;
	char name[SHUNT_ENDPOINT_NAME];
	struct sockaddr_un address;

	if (fd < 0)
		return errno == ENFILE ? -EMFILE : -errno;
	snprintf(name, sizeof(name), "shunt/%s/%s", service, door->identity);
	if (!connect(fd, (struct sockaddr *)&address, shunt_endpoint_address(name, &address)))
		return fd;
	rc = -errno;
	shunt_guard_close(fd);
	return rc;
}

/*
 * A listening socket may be passed on, and outlive the process that made it; that one's number
 * may be another's by now. An engine keeps its doors to itself. Kernels before 6.5 cannot tell,
 * and count as if it lived.
 */
static int owner_lives(int fd)
{
	struct pollfd process = { .events = POLLIN };
	socklen_t len = sizeof(process.fd);
	int ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &len))
		return errno == EMFILE || errno == ENFILE ? -EMFILE :
		       errno == ESRCH || errno == EINVAL  ? -ESRCH :
							    0;
	ended = poll(&process, 1, 0) > 0;
	close(process.fd);
	return ended ? -ESRCH : 0;
}

/* A process answers its own user and root, so what another user's says to us is not an engine's. */
static int meet(struct shunt_door *door, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? -errno : owner_lives(fd);

	if (rc)
		return rc;
	door->met = true;
	door->pid = peer.pid;
	door->user = peer.uid;
	return geteuid() && peer.uid && peer.uid != geteuid() ? -EPERM : 0;
}

static const char *reason(int error)
{
	switch (error) {
	case -EPERM:
		return "it is another user's; only that user and root may ask";
	case -ESRCH:
		return "the process that made this socket has ended";
	case -EAGAIN:
		return SHUNT_DOOR_SILENT;
	default:
		return strerror(-error);
	}
}

int shunt_door_try(struct shunt_door *door, const char *service, int type, char *why, size_t len)
{
	int fd = connect_to(door, service, type);
	int rc = fd < 0 ? fd : meet(door, fd);

	if (!rc)
		return fd;
	if (fd >= 0)
		shunt_guard_close(fd);
	snprintf(why, len, "%s", reason(rc));
	return rc;
}

bool shunt_door_stopped(const struct shunt_door *door)
{
	char path[32], text[512] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)door->pid);
	file = door->pid > 0 ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	state = strrchr(text, ')');	/* behind the program's name, which may have any characters */
	return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}
