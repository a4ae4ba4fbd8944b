/* SPDX-License-Identifier: MIT */
/*
 * A process that is dumped: its control socket, and the memory into which it copies. That memory is ours, and the
 * process can write all of it. So each word is read once, and what cannot be right ends the dump of the process.
 */
#include "tools/dump/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/admin/admin.h"
#include "core/base/scm_rights.h"
#include "tools/ask/guard.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

#define SERVICE "adm"
#define PATIENCE 5.0 /* seconds for an answer */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* --- asking --- */

static bool complain(const struct shunt_door *door, const char *why)
{
	char name[SHUNT_DOOR_TEXT];

	fprintf(stderr, "shunt dump: process %s: ", shunt_door_text(door, name));
	shunt_print_escaped(stderr, why, strcspn(why, "\n"));
	fputc('\n', stderr);
	return false;
}

/* The connection to a door of the process. -1: `why`. *shut: some door lets nobody in for now. */
static int try_doors(const struct shunt_door *wanted, struct shunt_door *door, char why[256],
		     bool *shut)
{
	struct shunt_doors doors;
	int fd = -1, rc = shunt_door_list(SERVICE, SOCK_SEQPACKET, wanted, 1, &doors);

	*shut = false;
	if (rc) {
		snprintf(why, 256, "%s", strerror(-rc));
		return -1;
	}
	for (size_t i = 0; fd < 0 && i < doors.count; i++) {
		*door = doors.door[i];
		if (!shunt_door_may_match(wanted, door))
			continue;
		fd = shunt_door_try(door, SERVICE, SOCK_SEQPACKET, why, 256);
		*shut = *shut || fd == -EAGAIN;
		if (fd >= 0 && !shunt_door_matches(wanted, door)) {
			shunt_guard_close(fd);
			fd = -1;
		}
	}
	free(doors.door);
	return fd;
}

/* A process that has too many clients is tried again. -1: it has been said why not. */
static int knock(const struct shunt_door *wanted, struct shunt_door *door)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	double until = shunt_seconds() + PATIENCE;
	char why[256] = "";
	bool shut;
	int fd;

	while ((fd = try_doors(wanted, door, why, &shut)) < 0 && shut && shunt_seconds() < until)
		nanosleep(&pause, NULL);
	if (fd < 0)
		complain(wanted, *why ? why : shunt_door_absence(wanted, shut));
	return fd < 0 ? -1 : fd;
}

/* The answer to a packet: its sign; 0: it has hung up, or says nothing. */
static char hear(int fd, char text[SHUNT_ADMIN_PACKET])
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	ssize_t got;

	if (poll(&readable, 1, (int)(PATIENCE * 1000)) <= 0)
		return 0;
	got = shunt_guard_recv(fd, text, SHUNT_ADMIN_PACKET - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	return text[0];
}

/* With `memory`, unless that is -1. */
static char ask(int fd, const char *line, int memory, char text[SHUNT_ADMIN_PACKET])
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (char *)line, strlen(line) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (memory >= 0)
		shunt_scm_rights_attach(&message, space, &memory, 1);
	text[0] = '\0';
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? 0 : hear(fd, text);
}

/* A process in another user namespace has hung up: once more, from inside. */
static char ask_first(struct listener *listener, char text[SHUNT_ADMIN_PACKET])
{
	char sign = ask(listener->fd, "dump", -1, text);
	int fd = sign ? -ENOENT :
			shunt_door_enter(&listener->door, SERVICE, SOCK_SEQPACKET);

	if (fd < 0)
		return sign;
	shunt_guard_close(listener->fd);
	listener->fd = fd;
	return ask(fd, "dump", -1, text);
}

/* --- memory --- */

/* Its pages are ours, and are all there. -1: errno says why not. */
static int make_memory(struct listener *listener)
{
	off_t size = (off_t)shunt_tap_size(listener->bytes);
	int fd = memfd_create("shunt dump", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *at = MAP_FAILED;

	if (fd < 0)
		return -1;
	if (!fallocate(fd, 0, 0, size) && !fcntl(fd, F_ADD_SEALS, SEALS))
		at = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			  0);
	if (at == MAP_FAILED) {
		int saved = errno;

		close(fd);
		errno = saved;
		return -1;
	}
	listener->page = (struct shunt_tap_page *)at;
	listener->records = (struct shunt_tap_record *)(at + SHUNT_TAP_PAGE);
	listener->ring = at + SHUNT_TAP_PAGE +
			 listener->bytes / SHUNT_TAP_PER_RECORD * sizeof(struct shunt_tap_record);
	return fd;
}

static bool agree(struct listener *listener)
{
	char text[SHUNT_ADMIN_PACKET], layout[32];
	char sign = ask_first(listener, text);
	int memory;

	snprintf(layout, sizeof(layout), "layout %d\n", SHUNT_TAP_LAYOUT);
	if (sign != '+')
		return complain(&listener->door, sign == '-' ? text + 1 : SHUNT_DOOR_SILENT);
	if (strcmp(text + 1, layout) != 0)
		return complain(&listener->door, "its libshunt is of another version");
	memory = make_memory(listener);
	if (memory < 0)
		return complain(&listener->door, strerror(errno));
	sign = ask(listener->fd, "m", memory, text);
	close(memory);
	if (sign != '+')
		return complain(&listener->door, sign == '-' ? text + 1 : SHUNT_DOOR_SILENT);
	return true;
}

bool listener_begin(struct listener *listener, const struct shunt_door *wanted, uint64_t bytes)
{
	*listener = (struct listener){ .bytes = bytes };
	listener->fd = knock(wanted, &listener->door);
	return listener->fd >= 0 && agree(listener);
}

/* --- records --- */

static struct shunt_tap_record *slot(const struct listener *listener)
{
	uint64_t count = listener->bytes / SHUNT_TAP_PER_RECORD;

	return &listener->records[shunt_tap_record_of(listener->tail) & (count - 1)];
}

static bool is_sound(const struct listener *listener)
{
	const struct shunt_tap_record *next = &listener->next;
	bool there = next->kind == SHUNT_TAP_DATA && !(next->flags & SHUNT_TAP_UNSEEN);

	return next->kind < SHUNT_TAP_KINDS && next->bytes <= SHUNT_TAP_MOST &&
	       next->unit == shunt_tap_unit_of(listener->tail) &&
	       next->units <= shunt_tap_units(SHUNT_TAP_MOST) &&
	       (!there || next->units == shunt_tap_units(next->bytes));
}

bool listener_look(struct listener *listener)
{
	const struct shunt_tap_record *record = slot(listener);

	if (listener->ready || listener->broken)
		return listener->ready;
	if (atomic_load_explicit(&((struct shunt_tap_record *)record)->number,
				 memory_order_acquire) !=
	    shunt_tap_record_of(listener->tail) + 1)
		return false;
	memcpy(&listener->next, record, sizeof(listener->next));
	listener->ready = is_sound(listener);
	listener->broken = !listener->ready;
	if (listener->broken)
		complain(&listener->door, "it has written what no libshunt writes");
	return listener->ready;
}

void listener_payload(const struct listener *listener, struct iovec piece[2])
{
	uint64_t at = (uint64_t)listener->next.unit * SHUNT_TAP_UNIT & (listener->bytes - 1),
		 bytes = listener->next.bytes, span = listener->bytes - at;

	piece[0] = (struct iovec) { listener->ring + at, bytes < span ? bytes : span };
	piece[1] = (struct iovec) { listener->ring, bytes - piece[0].iov_len };
}

void listener_pass(struct listener *listener)
{
	listener->tail = shunt_tap_at(shunt_tap_record_of(listener->tail) + 1,
				      shunt_tap_unit_of(listener->tail) + listener->next.units);
	listener->ready = false;
	atomic_store_explicit(&listener->page->tail, listener->tail, memory_order_release);
}

uint64_t listener_dropped(const struct listener *listener)
{
	return listener->unseen + atomic_load(&listener->page->dropped);
}

void listener_end(struct listener *listener)
{
	if (listener->fd >= 0)
		shunt_guard_close(listener->fd);
	listener->fd = -1;
	if (listener->page)
		munmap(listener->page, shunt_tap_size(listener->bytes));
	listener->page = NULL;
}
