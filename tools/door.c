/* SPDX-License-Identifier: MIT */
#include "tools/door.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/loop/endpoint.h"
#include "tools/guard.h"
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
static const char *identity_of(char *line, const char *service, unsigned int wanted)
{
	char prefix[32];
	unsigned int flags, type;
	char *name;

	line[strcspn(line, "\n")] = 0;
	snprintf(prefix, sizeof(prefix), " @shunt/%s/", service);
	name = strstr(line, prefix);
	if (!name || sscanf(line, "%*s %*s %*s %x %x", &flags, &type) != 2 || !(flags & LISTENS) ||
	    type != wanted)
		return NULL;
	name += strlen(prefix);
	return is_identity(name) ? name : NULL;
}

static int compare(const void *a, const void *b)
{
	const struct shunt_door *x = a, *y = b;

	return strcmp(x->identity, y->identity);
}

int shunt_door_list(const char *service, int type, struct shunt_doors *doors)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	size_t room = 0, line_room = 0;
	char *line = NULL;

	*doors = (struct shunt_doors){ 0 };
	if (!sockets)
		return -errno;
	while (getline(&line, &line_room, sockets) > 0) {
		const char *identity = identity_of(line, service, (unsigned int)type);

		if (!identity)
			continue;
		if (doors->count == room) {
			room = room ? 2 * room : 64;
			doors->door = reallocarray(doors->door, room, sizeof(*doors->door));
			if (!doors->door)
				abort();
		}
		doors->door[doors->count] = (struct shunt_door){ 0 };
		memcpy(doors->door[doors->count++].identity, identity, SHUNT_DOOR_IDENTITY);
	}
	free(line);
	fclose(sockets);
	if (doors->count)
		qsort(doors->door, doors->count, sizeof(*doors->door), compare);
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
