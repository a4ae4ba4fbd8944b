/* SPDX-License-Identifier: MIT */
#include "tools/ask/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/admin/admin.h"
#include "tools/ask/budget.h"
#include "tools/ask/guard.h"
#include "tools/shunt.h"

#define SERVICE "adm"
#define PATIENCE 5.0		/* seconds, for all of it */
#define ABREAST 16		/* doors of one process that are asked */
#define ANSWER_MAX (64U << 20)

struct party {
	struct shunt_reply reply;
	int fd;		/* -1: it has answered, or will not */
	bool entered;	/* it is asked from inside its user namespace */
};

struct asking {
	const struct shunt_door *wanted;
	size_t wanted_count;	/* 0: all */
	const char *line;
	struct party *party;
	struct pollfd *polled;	/* as many */
	size_t count, room;
	double until_strange;	/* by shunt_seconds(): other users' processes have less time, where none is named */
	double unheard;		/* when those that are stopped are given up */
	struct shunt_budget budget;
	bool shut;	/* some door has let nobody in */
};

/* ---- the doors ---- */

static bool may_be_wanted(const struct asking *asking, const struct shunt_door *door)
{
	for (size_t i = 0; i < asking->wanted_count; i++)
		if (shunt_door_may_match(&asking->wanted[i], door))
			return true;
	return !asking->wanted_count;
}

static bool is_wanted(const struct asking *asking, const struct shunt_door *door)
{
	for (size_t i = 0; i < asking->wanted_count; i++)
		if (shunt_door_matches(&asking->wanted[i], door))
			return true;
	return !asking->wanted_count;
}

static bool has_enough(const struct asking *asking, const struct shunt_door *door)
{
	size_t of_it = 0;

	for (size_t i = 0; door->pid && i < asking->count; i++)
		of_it += asking->party[i].reply.door.pid == door->pid;
	return of_it >= ABREAST;
}

static bool is_met(const struct asking *asking, const struct shunt_door *wanted)
{
	for (size_t i = 0; i < asking->count; i++)
		if (shunt_door_matches(wanted, &asking->party[i].reply.door))
			return true;
	return false;
}

static bool all_are_met(const struct asking *asking)
{
	for (size_t i = 0; i < asking->wanted_count; i++)
		if (!is_met(asking, &asking->wanted[i]))
			return false;
	return asking->wanted_count > 0;
}

static struct party *add_party(struct asking *asking)
{
	if (asking->count == asking->room) {
		asking->room = asking->room ? 2 * asking->room : ABREAST;
		asking->party = reallocarray(asking->party, asking->room, sizeof(*asking->party));
		asking->polled = reallocarray(asking->polled, asking->room,
					      sizeof(*asking->polled));
		if (!asking->party || !asking->polled)
			abort();
	}
	return &asking->party[asking->count++];
}

/* The account of who answers; a process that is named is asked as one of ours. */
static struct shunt_budget_user *user_of(struct asking *asking, const struct shunt_door *door)
{
	return shunt_budget_of(&asking->budget, door->user, asking->wanted_count > 0);
}

/* True: the door is to be tried again. */
static bool visit(struct asking *asking, struct shunt_door *door)
{
	struct party *party;
	char why[256];
	int fd;

	if (!may_be_wanted(asking, door))
		return false;
	fd = shunt_door_try(door, SERVICE, SOCK_SEQPACKET, why, sizeof(why));
	if (fd == -EAGAIN || fd == -EMFILE)
		return true;
	/* Where nobody is wanted, a door that lets nobody in is not ours to ask. */
	if ((fd < 0 && !asking->wanted_count) || !is_wanted(asking, door) ||
	    has_enough(asking, door)) {
		if (fd >= 0)
			shunt_guard_close(fd);
		return false;
	}
	party = add_party(asking);
	*party = (struct party) { .reply.door = *door, .fd = fd < 0 ? -1 : fd };
	snprintf(party->reply.why, sizeof(party->reply.why), "%s",
		 fd < 0 ? why : SHUNT_DOOR_SILENT);
	return false;
}

/* One look at all doors. A door that is to be tried again stays in the list. */
static void visit_all(struct asking *asking, struct shunt_doors *doors)
{
	size_t left = 0;

	for (size_t i = 0; i < doors->count; i++)
		if (visit(asking, &doors->door[i]))
			doors->door[left++] = doors->door[i];
	doors->count = left;
	asking->shut = left > 0;
}

/* A process that has too many clients is tried again until then. 0 or -errno. */
static int find(struct asking *asking, double until)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	struct shunt_doors doors;
	int rc = shunt_door_list(SERVICE, SOCK_SEQPACKET, asking->wanted, asking->wanted_count,
				 &doors);

	if (rc)
		return rc;
	visit_all(asking, &doors);
	while (doors.count && !all_are_met(asking) && shunt_seconds() < until) {
		nanosleep(&pause, NULL);
		visit_all(asking, &doors);
	}
	free(doors.door);
	return 0;
}

/* ---- the answers ---- */

static void end(struct party *party)
{
	if (party->fd >= 0)
		shunt_guard_close(party->fd);
	party->fd = -1;
}

/* The beginning of an answer that does not end is dropped. */
static void fail(struct party *party, const char *why)
{
	snprintf(party->reply.why, sizeof(party->reply.why), "%s", why);
	free(party->reply.text);
	party->reply.text = NULL;
	party->reply.length = 0;
	end(party);
}

static void say(struct party *party, const char *line);

/* The process has hung up before it was heard: perhaps once more, from inside. */
static void retry(struct party *party, const char *line)
{
	int fd = -ENOENT;

	if (!party->entered)
		fd = shunt_door_enter(&party->reply.door, SERVICE, SOCK_SEQPACKET);
	end(party);
	party->entered = true;
	if (fd == -EACCES)
		fail(party, SHUNT_DOOR_NO_ROOT);
	if (fd >= 0) {
		party->fd = fd;
		say(party, line);
	}
}

static void say(struct party *party, const char *line)
{
	if (send(party->fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		retry(party, line);
}

static void take(struct asking *asking, struct party *party, const char *packet, size_t bytes)
{
	struct shunt_reply *reply = &party->reply;
	char *text;

	if (reply->length + bytes > ANSWER_MAX ||
	    !shunt_budget_holds(&asking->budget, user_of(asking, &reply->door), bytes)) {
		fail(party, "its answer is too long");
		return;
	}
	text = realloc(reply->text, reply->length + bytes);
	if (!text)
		abort();
	memcpy(text + reply->length, packet + 1, bytes - 1);
	reply->text = text;
	reply->length += bytes - 1;
	text[reply->length] = '\0';
	reply->refused = packet[0] == '-';
	if (packet[0] != '*')
		end(party);
}

static void hear(struct asking *asking, struct party *party)
{
	const char *line = asking->line;
	char packet[SHUNT_ADMIN_PACKET];
	ssize_t got = shunt_guard_recv(party->fd, packet, sizeof(packet), 0);

	if (got > 0 && strchr("*+-", packet[0]) && packet[0])
		take(asking, party, packet, (size_t)got);
	else if (got > 0)
		fail(party, SHUNT_DOOR_SILENT);
	else if (party->reply.text && (!got || errno == ECONNRESET))
		fail(party, "its answer does not come to an end");
	else if (!got || errno == ECONNRESET || errno == EPIPE)
		retry(party, line);
	else if (errno != EAGAIN && errno != EINTR)
		fail(party, shunt_guard_reason(errno));
}

static bool is_late(struct asking *asking, const struct party *party, double now)
{
	return now >= asking->until_strange &&
	       user_of(asking, &party->reply.door) != &asking->budget.ours;
}

/* Why no answer of it is waited for any longer; NULL: one is. */
static const char *is_given_up(struct asking *asking, const struct party *party, double now)
{
	if (is_late(asking, party, now))
		return SHUNT_DOOR_SILENT;
	return now >= asking->unheard && shunt_door_stopped(&party->reply.door) ?
		       SHUNT_DOOR_STOPPED :
		       NULL;
}

static double sooner(double time, double than, double now)
{
	return now < time && time < than ? time : than;
}

/* Until all have answered, or the deadline. */
static void hear_all(struct asking *asking, double until)
{
	double now, left;

	while ((now = shunt_seconds()) < until) {
		size_t open = 0;

		for (size_t i = 0; i < asking->count; i++) {
			struct party *party = &asking->party[i];
			const char *why = party->fd < 0 ? NULL : is_given_up(asking, party, now);

			if (why)
				fail(party, why);
			asking->polled[i] = (struct pollfd){ .fd = party->fd, .events = POLLIN };
			open += party->fd >= 0;
		}
		left = sooner(asking->unheard, sooner(asking->until_strange, until, now), now) -
		       now;
		if (!open || (poll(asking->polled, asking->count, (int)(left * 1000) + 1) < 0 &&
			      errno != EINTR))
			return;
		for (size_t i = 0; i < asking->count; i++)
			if (asking->party[i].fd >= 0 && asking->polled[i].revents)
				hear(asking, &asking->party[i]);
	}
}

static void ask(struct asking *asking, double until)
{
	for (size_t i = 0; i < asking->count; i++)
		if (asking->party[i].fd >= 0)
			say(&asking->party[i], asking->line);
	hear_all(asking, until);
	for (size_t i = 0; i < asking->count; i++)
		if (asking->party[i].fd >= 0)
			fail(&asking->party[i], SHUNT_DOOR_SILENT);
}

/* ---- the replies ---- */

static void add_reply(struct shunt_replies *replies, const struct shunt_reply *reply)
{
	replies->of = reallocarray(replies->of, replies->count + 1, sizeof(*replies->of));
	if (!replies->of)
		abort();
	replies->of[replies->count++] = *reply;
}

/* The replies of one process that is wanted; a reply goes to the first that wants it. */
static void pick(struct asking *asking, const struct shunt_door *wanted,
		 struct shunt_replies *replies)
{
	size_t before = replies->count;
	struct shunt_reply none = { .door = *wanted };

	for (size_t i = 0; i < asking->count; i++) {
		struct shunt_reply *reply = &asking->party[i].reply;

		if (!shunt_door_matches(wanted, &reply->door))
			continue;
		add_reply(replies, reply);
		reply->text = NULL;
	}
	if (replies->count > before)
		return;
	snprintf(none.why, sizeof(none.why), "%s", shunt_door_absence(wanted, asking->shut));
	add_reply(replies, &none);
}

static int compare(const void *a, const void *b)
{
	const struct shunt_door *x = &((const struct shunt_reply *)a)->door,
				*y = &((const struct shunt_reply *)b)->door;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) :
				  strcmp(x->identity, y->identity);
}

/* All that have answered. */
static void pick_all(struct asking *asking, struct shunt_replies *replies)
{
	for (size_t i = 0; i < asking->count; i++) {
		add_reply(replies, &asking->party[i].reply);
		asking->party[i].reply.text = NULL;
	}
	if (replies->count)
		qsort(replies->of, replies->count, sizeof(*replies->of), compare);
}

/* A descriptor for each, as far as that is allowed. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int shunt_ask(const struct shunt_door *wanted, size_t count, const char *line,
	      struct shunt_replies *replies)
{
	return shunt_ask_within(wanted, count, line, PATIENCE, &shunt_budget_usual, replies);
}

int shunt_ask_within(const struct shunt_door *wanted, size_t count, const char *line,
		     double patience, const struct shunt_budget_limits *limits,
		     struct shunt_replies *replies)
{
	struct asking asking = { .wanted = wanted, .wanted_count = count, .line = line, .budget.limits = limits };
	double now = shunt_seconds();
	int rc;

	*replies = (struct shunt_replies){ 0 };
	raise_limit();
	rc = find(&asking,
		  now + (count || patience < SHUNT_DOOR_CROWDED ? patience : SHUNT_DOOR_CROWDED));
	if (!rc) {
		asking.until_strange = now + (count ? patience : SHUNT_DOOR_STRANGE);
		asking.unheard = now + SHUNT_DOOR_UNHEARD;
		ask(&asking, now + patience);
		for (size_t i = 0; i < count; i++)
			pick(&asking, &wanted[i], replies);
		if (!count)
			pick_all(&asking, replies);
	}
	for (size_t i = 0; i < asking.count; i++)
		free(asking.party[i].reply.text);
	free(asking.party);
	free(asking.polled);
	shunt_budget_free(&asking.budget);
	shunt_guard_settle();
	return rc;
}

void shunt_ask_free(struct shunt_replies *replies)
{
	for (size_t i = 0; i < replies->count; i++)
		free(replies->of[i].text);
	free(replies->of);
	*replies = (struct shunt_replies){ 0 };
}

size_t shunt_ask_line(int count, char **words, char *line, size_t room)
{
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		size_t bytes = strlen(words[i]);

		if (length + bytes + (i > 0) >= room)
			return 0;
		if (i)
			line[length++] = ' ';
		memcpy(line + length, words[i], bytes);
		length += bytes;
	}
	line[length] = '\0';
	return length;
}
