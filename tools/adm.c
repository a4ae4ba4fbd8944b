/* SPDX-License-Identifier: MIT */
/*
 * shunt adm: says one command to a process' control socket and shows the answer
 * (core/admin/command.h).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/admin/command.h"
#include "core/base/answer.h"
#include "tools/door.h"
#include "tools/output.h"
#include "tools/shunt.h"

#define SERVICE "adm"
#define PATIENCE 5.0	/* seconds */
#define PARTIES 16	/* doors of one process that are asked */

static const char help[] =
	"Usage: shunt adm PROCESS COMMAND [ARGUMENT...]\n\n"
	"Tells a shunted process what to do; only its user and root may. A process is a process id or an\n"
	"identity, as `shunt stat` shows it. `shunt adm PROCESS help` lists the commands.\n\n"
	"Exit status: 0, 1 if the process refused or cannot be asked, 2 for wrong usage.\n";

/* The words as one line. Its length; more than a command may have: it has no room. */
static size_t join(int count, char **words, char line[SHUNT_COMMAND_MAX + 1])
{
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		size_t bytes = strlen(words[i]);

		if (length + bytes + (i > 0) > SHUNT_COMMAND_MAX)
			return SHUNT_COMMAND_MAX + 1;
		if (i)
			line[length++] = ' ';
		memcpy(line + length, words[i], bytes);
		length += bytes;
	}
	return length;
}

static int complain(const struct shunt_door *wanted, const char *why)
{
	char name[SHUNT_DOOR_TEXT];

	fprintf(stderr, "shunt adm: process %s: %s\n", shunt_door_text(wanted, name), why);
	return EXIT_FAILED;
}

/* ---- who it is ---- */

/*
 * A process has one door. Where the kernel knows several for its number, all are asked: none
 * hides another.
 */
struct party {
	struct shunt_door door;
	int fd;			/* -1: it has answered, or will not */
	bool entered;		/* it is asked from inside its user namespace */
	char why[256];		/* if it has not answered */
	char answer[SHUNT_ANSWER_MAX + 1];
	ssize_t got;
};

struct parties {
	struct party of[PARTIES];
	size_t count;
	bool shut;	/* some door lets nobody in */
};

/* True: the door is to be tried again. */
static bool visit(struct shunt_door *door, const struct shunt_door *wanted, struct parties *parties)
{
	struct party *party = &parties->of[parties->count];
	char why[256];
	int fd;

	if (!shunt_door_may_match(wanted, door))
		return false;
	fd = shunt_door_try(door, SERVICE, SOCK_SEQPACKET, why, sizeof(why));
	if (fd == -EAGAIN || fd == -EMFILE)
		return true;
	if (shunt_door_matches(wanted, door) && parties->count < PARTIES) {
		*party = (struct party){ .door = *door, .fd = fd };
		snprintf(party->why, sizeof(party->why), "%s", fd < 0 ? why : SHUNT_DOOR_SILENT);
		parties->count++;
	} else if (fd >= 0) {
		close(fd);
	}
	return false;
}

/* One look at all doors. A door that is to be tried again stays in the list. */
static void visit_all(struct shunt_doors *doors, const struct shunt_door *wanted,
		      struct parties *parties)
{
	size_t left = 0;

	for (size_t i = 0; i < doors->count; i++)
		if (visit(&doors->door[i], wanted, parties))
			doors->door[left++] = doors->door[i];
	doors->count = left;
	parties->shut = left > 0;
}

/*
 * One deadline for all of it: a process that has too many clients is tried again until then. 0 or
 * -errno.
 */
static int find(const struct shunt_door *wanted, double until, struct parties *parties)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	struct shunt_doors doors;
	int rc = shunt_door_list(SERVICE, SOCK_SEQPACKET, &doors);

	if (rc)
		return rc;
	visit_all(&doors, wanted, parties);
	while (!parties->count && doors.count && shunt_seconds() < until) {
		nanosleep(&pause, NULL);
		visit_all(&doors, wanted, parties);
	}
	free(doors.door);
	return 0;
}

/* ---- what it says ---- */

static void end(struct party *party)
{
	close(party->fd);
	party->fd = -1;
}

/* Hung up on before it was heard: perhaps once more, from inside. */
static void retry(struct party *party, const char *line, size_t bytes)
{
	int fd = party->entered ? -ENOENT : shunt_door_enter(&party->door, SERVICE, SOCK_SEQPACKET);

	end(party);
	party->entered = true;
	party->fd = fd >= 0 ? fd : -1;
	if (fd == -EACCES)
		snprintf(party->why, sizeof(party->why), "%s", SHUNT_DOOR_NO_ROOT);
	if (fd >= 0 && send(fd, line, bytes, MSG_NOSIGNAL) < 0)
		end(party);
}

static void hear(struct party *party, const char *line, size_t bytes)
{
	party->got = recv(party->fd, party->answer, sizeof(party->answer), MSG_DONTWAIT);
	if (party->got > 0)
		end(party);
	else if (!party->got || errno == ECONNRESET || errno == EPIPE)
		retry(party, line, bytes);
	else if (errno != EAGAIN && errno != EINTR)
		end(party);
}

/* Until all have answered, or the deadline. */
static void ask(struct parties *parties, const char *line, size_t bytes, double until)
{
	struct pollfd fds[PARTIES];
	double left;

	for (size_t i = 0; i < parties->count; i++)
		if (parties->of[i].fd >= 0 &&
		    send(parties->of[i].fd, line, bytes, MSG_NOSIGNAL) < 0)
			retry(&parties->of[i], line, bytes);
	while ((left = until - shunt_seconds()) > 0) {
		size_t open = 0;

		for (size_t i = 0; i < parties->count; i++) {
			fds[i] = (struct pollfd){ .fd = parties->of[i].fd, .events = POLLIN };
			open += fds[i].fd >= 0;
		}
		if (!open ||
		    (poll(fds, parties->count, (int)(left * 1000) + 1) < 0 && errno != EINTR))
			return;
		for (size_t i = 0; i < parties->count; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				hear(&parties->of[i], line, bytes);
	}
}

static int show(const struct party *party)
{
	char name[SHUNT_DOOR_TEXT];

	if (party->got <= 0)
		return complain(&party->door, party->why);
	if (party->answer[0] == '+') {
		shunt_print_escaped(stdout, party->answer + 1, (size_t)party->got - 1);
		return 0;
	}
	if (party->answer[0] != '-')
		return complain(&party->door, SHUNT_DOOR_SILENT);
	fprintf(stderr, "shunt adm: process %s: ", shunt_door_text(&party->door, name));
	shunt_print_escaped(stderr, party->answer + 1, (size_t)party->got - 1);
	return EXIT_FAILED;
}

static int say(const struct shunt_door *wanted, const char *line, size_t bytes)
{
	double until = shunt_seconds() + PATIENCE;
	struct parties *parties = calloc(1, sizeof(*parties));
	int rc;

	if (!parties)
		abort();
	rc = find(wanted, until, parties);
	if (rc) {
		rc = complain(wanted, strerror(-rc));
	} else if (!parties->count) {
		rc = complain(wanted, shunt_door_absence(wanted, parties->shut));
	} else {
		ask(parties, line, bytes, until);
		for (size_t i = 0; i < parties->count; i++)
			rc |= show(&parties->of[i]);
	}
	for (size_t i = 0; i < parties->count; i++)
		if (parties->of[i].fd >= 0)
			end(&parties->of[i]);
	free(parties);
	return rc;
}

int shunt_adm(int argc, char **argv)
{
	char line[SHUNT_COMMAND_MAX + 1];
	size_t bytes;
	struct shunt_door wanted;
	bool known;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	known = argc > 1 && shunt_door_parse(argv[1], &wanted);
	bytes = join(argc - 2, argv + 2, line);
	if (!known || argc < 3 || !bytes || bytes > SHUNT_COMMAND_MAX) {
		fprintf(stderr,
			"shunt adm: it wants a process and a command of at most %d bytes; "
			"`shunt adm --help` says how\n",
			SHUNT_COMMAND_MAX);
		return EXIT_USAGE;
	}
	return say(&wanted, line, bytes);
}
