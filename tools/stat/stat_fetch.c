/* SPDX-License-Identifier: MIT */
/*
 * Statistics come from the process itself, over a socket of an abstract name (door.h). Anybody may
 * take such a name and say nothing, or a byte now and then. So all are asked at the same time, with
 * one deadline. Anybody may take any number of such names, but only for itself: a process has few
 * answers under way at a time, and a user has a budget (budget.h). Answers are read first, and made
 * values of when all have come: ours first, then those of others.
 */
#include "tools/stat/stat.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/ask/budget.h"
#include "tools/ask/guard.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

#define SERVICE "stat"
#define PATIENCE 5.0	/* seconds */
#define ABREAST 16	/* answers that one process has under way; an engine has one */
#define PARSING 2.0	/* seconds beyond that for answers that have come */
#define AGAIN_MS 10	/* between attempts to connect to one that has too many clients */

/* Enough for some 100,000 streams; more than that is not an engine's answer. */
#define ANSWER_MAX (64U << 20)
#define FIRST_ROOM (16U << 10)

/* ---- one question ---- */

enum state { WAITING, READING, ANSWERED, OVER };

struct question {
	struct shunt_stat *stat;
	enum state state;
	bool unwanted;	/* it is not of a process that was asked for */
	bool entered;	/* it is asked from inside its user namespace */
	bool tried;
	int fd;
	char *text;
	size_t length, room;
	size_t weight;	/* of its values */
};

/* All questions of a look, and the processes that are wanted. */
struct asking {
	struct question *questions, **reading;
	size_t count, reading_count;
	const struct shunt_door *wanted;
	size_t wanted_count;	/* 0: all */
	double until, until_crowded, until_strange;	/* by shunt_seconds() */
	double unheard;		/* when those that are stopped are given up */
	struct pollfd *fds;	/* of those that are reading */
	struct shunt_budget budget;
};

/* The account of who answers; a process that is named is asked as one of ours. */
static struct shunt_budget_user *user_of(struct asking *asking, const struct question *question)
{
	return shunt_budget_of(&asking->budget, question->stat->door.user,
			       asking->wanted_count > 0);
}

/* Nothing more is heard of it. */
static void hang_up(struct asking *asking, struct question *question)
{
	if (question->fd >= 0)
		shunt_guard_close(question->fd);
	if (question->state == READING)
		user_of(asking, question)->abreast--;
	question->fd = -1;
}

static void finish(struct asking *asking, struct question *question)
{
	hang_up(asking, question);
	shunt_budget_drops(&asking->budget, user_of(asking, question), question->room);
	free(question->text);
	question->text = NULL;
	question->room = 0;
	question->state = OVER;
}

static void fail(struct asking *asking, struct question *question, const char *why)
{
	snprintf(question->stat->why, sizeof(question->stat->why), "%s", why);
	finish(asking, question);
}

static bool may_be_wanted(const struct asking *asking, const struct shunt_door *door)
{
	for (size_t i = 0; i < asking->wanted_count; i++)
		if (shunt_door_may_match(&asking->wanted[i], door))
			return true;
	return !asking->wanted_count;
}

/* A process that is not visible may be one of many; the others are told apart. */
static bool has_enough(const struct asking *asking, const struct shunt_door *door)
{
	size_t reading = 0;

	for (size_t i = 0; door->pid && i < asking->reading_count; i++)
		reading += asking->reading[i]->stat->door.pid == door->pid;
	return reading >= ABREAST;
}

/* Too many descriptors here, or clients there: later. */
static void ask(struct asking *asking, struct question *question)
{
	struct shunt_stat *stat = question->stat;

	if (has_enough(asking, &stat->door))
		return;
	question->unwanted = !may_be_wanted(asking, &stat->door);
	if (question->unwanted) {
		finish(asking, question);
		return;
	}
	if (!shunt_budget_asks(user_of(asking, question)))
		return;
	question->fd = shunt_door_try(&stat->door, SERVICE, SOCK_STREAM, stat->why,
				      sizeof(stat->why));
	if (question->fd == -EAGAIN || question->fd == -EMFILE)
		return;
	question->unwanted = !may_be_wanted(asking, &stat->door);
	if (question->fd < 0 || question->unwanted) {
		finish(asking, question);
	} else if (has_enough(asking, &stat->door) ||
		   !shunt_budget_asks(user_of(asking, question))) {
		shunt_guard_close(question->fd);
		question->fd = -EAGAIN;
	} else {
		question->state = READING;
		user_of(asking, question)->abreast++;
		asking->reading[asking->reading_count++] = question;
	}
}

/*
 * The kernel's word, and not the process's: it may lie, or have another number in its own PID
 * namespace.
 */
static void say_who(struct shunt_stat *stat)
{
	json_object_set_new(stat->process, "pid", json_integer(stat->door.pid));
	json_object_set_new(stat->process, "identity", json_string(stat->door.identity));
}

/* The answer is whole. It is made values of when all have come. */
static void heard(struct asking *asking, struct question *question)
{
	hang_up(asking, question);
	question->state = ANSWERED;
	question->stat->at = shunt_seconds();
	question->weight = shunt_budget_weigh(question->text, question->length);
	user_of(asking, question)->wanted += question->weight;
}

/*
 * The process has hung up before it said anything. Its user namespace may be another: once more
 * from inside, once.
 */
static void refused(struct asking *asking, struct question *question)
{
	struct shunt_door *door = &question->stat->door;
	bool again = !question->entered;

	for (size_t i = 0; i < asking->count; i++)
		again &= !asking->questions[i].entered ||
			 asking->questions[i].stat->door.pid != door->pid;
	shunt_guard_close(question->fd);
	question->fd = again ? shunt_door_enter(door, SERVICE, SOCK_STREAM) : -ENOENT;
	question->entered = again;
	if (question->fd < 0)
		fail(asking, question,
		     question->fd == -EACCES ? SHUNT_DOOR_NO_ROOT : SHUNT_DOOR_SILENT);
}

static int grow(struct asking *asking, struct question *question)
{
	size_t room = question->room ? 2 * question->room : FIRST_ROOM;
	char *text;

	if (question->length < question->room)
		return 0;
	if (room > ANSWER_MAX ||
	    !shunt_budget_holds(&asking->budget, user_of(asking, question), room - question->room))
		return -1;
	text = realloc(question->text, room);
	if (!text)
		abort();
	question->text = text;
	question->room = room;
	return 0;
}

/* Reads the bytes that have arrived. */
static void hear(struct asking *asking, struct question *question)
{
	ssize_t got;

	if (grow(asking, question)) {
		fail(asking, question, "its answer is too long");
		return;
	}
	got = shunt_guard_recv(question->fd, question->text + question->length,
			       question->room - question->length, 0);
	if (got > 0)
		question->length += (size_t)got;
	else if (!question->length && (!got || errno == ECONNRESET))
		refused(asking, question);
	else if (!got)
		heard(asking, question);
	else if (errno != EAGAIN && errno != EINTR)
		fail(asking, question, shunt_guard_reason(errno));
}

/* ---- all of them ---- */

/* Other users' processes have less time, where none is named. */
static bool is_late(struct asking *asking, const struct question *question, double now)
{
	return now > asking->until_strange && user_of(asking, question) != &asking->budget.ours;
}

/* A door that lets nobody in is tried for a while. One whose turn has not come waits for it. */
static bool is_too_late(struct asking *asking, const struct question *question, double now)
{
	return is_late(asking, question, now) ||
	       (now > asking->until_crowded && !question->stat->door.met);
}

/*
 * Asks processes that have not been asked and lists those that are answering. Returns how many are
 * still to be asked.
 */
static size_t prepare(struct asking *asking)
{
	double now = shunt_seconds();
	size_t waiting = 0;

	asking->reading_count = 0;
	for (size_t i = 0; i < asking->count; i++) {
		struct question *question = &asking->questions[i];

		if (question->state != READING || is_late(asking, question, now))
			continue;
		if (now < asking->unheard || !shunt_door_stopped(&question->stat->door)) {
			asking->reading[asking->reading_count++] = question;
			continue;
		}
		question->stat->late = true;
		fail(asking, question, SHUNT_DOOR_STOPPED);
	}
	for (size_t i = 0; i < asking->count; i++) {
		struct question *question = &asking->questions[i];

		if (question->state != WAITING ||
		    (question->tried && is_too_late(asking, question, now)))
			continue;
		ask(asking, question);
		question->tried = true;
		waiting += question->state == WAITING && !is_too_late(asking, question, now);
	}
	for (size_t i = 0; i < asking->reading_count; i++)
		asking->fds[i] = (struct pollfd){ .fd = asking->reading[i]->fd, .events = POLLIN };
	return waiting;
}

/* ms until this time, if it is still to come and is sooner. */
static int sooner(double time, int ms)
{
	double left = time - shunt_seconds();

	return left > 0 && left * 1000 < ms ? (int)(left * 1000) + 1 : ms;
}

static void ask_all(struct asking *asking)
{
	double left;

	while ((left = asking->until - shunt_seconds()) > 0) {
		size_t waiting = prepare(asking);
		int ms = sooner(asking->unheard,
				sooner(asking->until_strange, (int)(left * 1000) + 1));

		if (!asking->reading_count && !waiting)
			return;
		if (poll(asking->fds, asking->reading_count,
			 waiting && ms > AGAIN_MS ? AGAIN_MS : ms) < 0 &&
		    errno != EINTR)
			return;
		for (size_t i = 0; i < asking->reading_count; i++)
			if (asking->fds[i].revents)
				hear(asking, asking->reading[i]);
	}
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

/*
 * Those that have let us in and owe an answer are late. Those beyond what one process may have
 * under way are nothing to speak of. How many have let nobody in.
 */
static size_t give_up(struct asking *asking)
{
	size_t shut = 0;

	for (size_t i = 0; i < asking->count; i++) {
		struct question *question = &asking->questions[i];

		if (question->state != WAITING && question->state != READING)
			continue;
		shut += !question->stat->door.met;
		question->stat->late = question->state == READING;
		fail(asking, question,
		     question->length ? "its answer did not come to an end in time" :
					SHUNT_DOOR_SILENT);
	}
	return shut;
}

/* ---- values ---- */

/* Of an answer that has become too large, what is not about single streams is shown. */
static void fit(struct question *question, const struct shunt_budget_user *user)
{
	if (question->weight <= user->values)
		return;
	question->length = shunt_budget_cut_streams(question->text, question->length);
	question->weight = shunt_budget_weigh(question->text, question->length);
	snprintf(question->stat->why, sizeof(question->stat->why),
		 "its streams are left out: there are more than this look has room for");
}

static void parse(struct asking *asking, struct question *question)
{
	struct shunt_budget_user *user = user_of(asking, question);
	struct shunt_stat *stat = question->stat;
	char said[JSON_ERROR_TEXT_LENGTH];
	json_error_t error;

	fit(question, user);
	stat->process = shunt_budget_parse(question->text, question->length, user->values,
					   JSON_REJECT_DUPLICATES, &error);
	if (stat->process && !json_is_object(stat->process)) {
		json_decref(stat->process);
		stat->process = NULL;
		snprintf(error.text, sizeof(error.text), "no object");
	}
	if (!stat->process)
		snprintf(stat->why, sizeof(stat->why), "its answer is not that of an engine: %s",
			 shunt_escape(error.text, said, sizeof(said)));
	if (stat->process) {
		say_who(stat);
		user->values -= question->weight;
	}
	finish(asking, question);
}

static void parse_those(struct asking *asking, bool ours, double until)
{
	for (size_t i = 0; i < asking->count; i++) {
		struct question *question = &asking->questions[i];
		bool is_ours = user_of(asking, question) == &asking->budget.ours;

		if (question->state != ANSWERED || is_ours != ours)
			continue;
		question->stat->late = shunt_seconds() > until;
		if (question->stat->late)
			fail(asking, question, "there was no time left for its answer");
		else
			parse(asking, question);
	}
}

static void parse_all(struct asking *asking)
{
	double until = asking->until + PARSING;

	shunt_budget_share(&asking->budget);
	parse_those(asking, true, until);
	parse_those(asking, false, until);
}

/* ---- the look ---- */

static void add(struct shunt_look *look, const struct shunt_stat *stat)
{
	look->processes = reallocarray(look->processes, look->count + 1, sizeof(*look->processes));
	if (!look->processes)
		abort();
	look->processes[look->count] = *stat;
	json_incref(look->processes[look->count++].process);
}

/* The answers, in the order in which they were wanted. */
static void pick(struct asking *asking, const struct shunt_door *wanted, bool shut,
		 struct shunt_look *look)
{
	size_t before = look->count;
	struct shunt_stat none = { .door = *wanted };

	for (size_t i = 0; i < asking->count; i++)
		if (!asking->questions[i].unwanted &&
		    shunt_door_matches(wanted, &asking->questions[i].stat->door))
			add(look, asking->questions[i].stat);
	if (look->count > before)
		return;
	snprintf(none.why, sizeof(none.why), "%s", shunt_door_absence(wanted, shut));
	add(look, &none);
}

static int compare(const void *a, const void *b)
{
	const struct shunt_door *x = &((const struct shunt_stat *)a)->door,
				*y = &((const struct shunt_stat *)b)->door;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) :
				  strcmp(x->identity, y->identity);
}

void shunt_look_free(struct shunt_look *look)
{
	for (size_t i = 0; i < look->count; i++)
		json_decref(look->processes[i].process);
	free(look->processes);
	free(look->hosts);
	*look = (struct shunt_look){ 0 };
}

static void ask_doors(struct asking *asking, const struct shunt_doors *doors,
		      struct shunt_stat *stats)
{
	raise_limit();
	asking->count = doors->count;
	for (size_t i = 0; i < doors->count; i++) {
		stats[i].door = doors->door[i];
		asking->questions[i] = (struct question){ .stat = &stats[i], .fd = -1 };
	}
	ask_all(asking);
}

int shunt_look_ask(struct shunt_look *look, const struct shunt_door *wanted, size_t count)
{
	return shunt_look_within(look, wanted, count, PATIENCE, &shunt_budget_usual);
}

int shunt_look_within(struct shunt_look *look, const struct shunt_door *wanted, size_t count,
		      double patience, const struct shunt_budget_limits *limits)
{
	struct asking asking = { .wanted = wanted, .wanted_count = count, .budget.limits = limits };
	struct shunt_look all = { 0 };
	struct shunt_doors doors;
	int rc = shunt_door_list(SERVICE, SOCK_STREAM, wanted, count, &doors);

	*look = (struct shunt_look){ 0 };
	if (rc) {
		fprintf(stderr, "shunt stat: /proc/net/unix: %s\n", strerror(-rc));
		return -1;
	}
	all.processes = calloc(doors.count + 1, sizeof(*all.processes));
	all.count = doors.count;
	asking.reading = calloc(doors.count + 1, sizeof(struct question *));
	asking.questions = calloc(doors.count + 1, sizeof(*asking.questions));
	asking.fds = calloc(doors.count + 1, sizeof(*asking.fds));
	if (!all.processes || !asking.questions || !asking.reading || !asking.fds)
		abort();
	asking.until = shunt_seconds() + patience;
	asking.until_crowded = shunt_seconds() + (count ? patience : SHUNT_DOOR_CROWDED);
	asking.until_strange = shunt_seconds() + (count ? patience : SHUNT_DOOR_STRANGE);
	asking.unheard = shunt_seconds() + SHUNT_DOOR_UNHEARD;
	ask_doors(&asking, &doors, all.processes);
	all.shut = give_up(&asking);
	shunt_guard_settle();
	parse_all(&asking);
	shunt_budget_free(&asking.budget);
	for (size_t i = 0; i < count; i++)
		pick(&asking, &wanted[i], all.shut > 0, look);
	free(asking.questions);
	free(asking.reading);
	free(asking.fds);
	free(doors.door);
	if (count) {
		shunt_look_free(&all);
		return 0;
	}
	qsort(all.processes, all.count, sizeof(*all.processes), compare);
	*look = all;
	return 0;
}
