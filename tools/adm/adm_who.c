/* SPDX-License-Identifier: MIT */
#include "tools/adm/adm_who.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/ask/guard.h"

struct wish {
	bool all;
	const char *by_user; /* as it was given; NULL: any */
	uid_t user;
	const char *program; /* a pattern; NULL: any */
};

const char *adm_program(pid_t pid, char name[ADM_PROGRAM])
{
	char path[64];
	FILE *file;
	char *newline;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	if (!file || !fgets(name, ADM_PROGRAM, file))
		strcpy(name, "-");
	if (file)
		fclose(file);
	newline = strchr(name, '\n');
	if (newline)
		*newline = '\0';
	return name;
}

static bool parse_user(const char *word, uid_t *user)
{
	const struct passwd *entry = getpwnam(word); /* cppcheck-suppress getpwnamCalled ; one thread */
	unsigned long number;
	char *end;

	if (entry) {
		*user = entry->pw_uid;
		return true;
	}
	errno = 0;
	number = strtoul(word, &end, 10);
	*user = (uid_t)number;
	return *word >= '0' && *word <= '9' && !*end && !errno && number < UINT32_MAX;
}

/* ---- which processes ---- */

static void add(struct adm_who *who, const struct shunt_door *door)
{
	who->wanted = realloc(who->wanted, (who->count + 1) * sizeof(*who->wanted));
	if (!who->wanted)
		abort();
	who->wanted[who->count++] = *door;
}

/* The directory of a process in /proc is its user's, or root's where it may not be examined. */
static bool is_of_user(pid_t pid, uid_t user)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return pid > 0 && !stat(path, &st) && st.st_uid == user;
}

/* Another user's process would not let us in. */
static bool is_meant(const struct wish *wish, pid_t pid)
{
	char name[ADM_PROGRAM];

	if (geteuid() && !is_of_user(pid, geteuid()))
		return false;
	if (wish->by_user && !is_of_user(pid, wish->user))
		return false;
	return !wish->program || !fnmatch(wish->program, adm_program(pid, name), 0);
}

/* A process whose number is not known here says who it is when it lets us in. */
static void look(const struct wish *wish, struct adm_who *who)
{
	struct shunt_doors doors;

	if (shunt_door_list("adm", SOCK_SEQPACKET, NULL, 0, &doors))
		return;
	for (size_t i = 0; i < doors.count; i++) {
		char why[256];
		struct shunt_door *door = &doors.door[i];
		int fd = shunt_door_try(door, "adm", SOCK_SEQPACKET, why, sizeof(why));

		if (fd >= 0)
			shunt_guard_close(fd);
		if (fd >= 0 && is_meant(wish, door->pid))
			add(who, door);
	}
	free(doors.door);
	shunt_guard_settle();
}

/* ---- the words ---- */

static bool parse_seconds(const char *word, double *seconds)
{
	char *end;

	*seconds = strtod(word, &end);
	return *word && !*end && *seconds >= 0.1 && *seconds <= 3600;
}

/* An option and its value. False: there is no such option, or the value is wrong. */
static bool parse_value(const char *option, const char *value, struct wish *wish,
			struct adm_who *who)
{
	if (!strcmp(option, "--timeout"))
		return parse_seconds(value, &who->patience);
	if (!strcmp(option, "--user"))
		wish->by_user = value;
	else if (!strcmp(option, "--program"))
		wish->program = value;
	else if (!strcmp(option, "--hosts"))
		who->hosts = value;
	else
		return false;
	return true;
}

/* How many words an option takes; 0: no option, -1: wrong. */
static int parse_option(char **words, int count, struct wish *wish, struct adm_who *who)
{
	if (!strcmp(words[0], "--json")) {
		who->json = who->many = true;
		return 1;
	}
	if (!strcmp(words[0], "--all")) {
		wish->all = true;
		return 1;
	}
	if (words[0][0] != '-')
		return 0;
	return count > 1 && parse_value(words[0], words[1], wish, who) ? 2 : -1;
}

int adm_who_parse(int argc, char **argv, struct adm_who *who)
{
	struct wish wish = { .all = false };
	struct shunt_door door;
	int at = 1, taken = 1;
	bool chosen;

	*who = (struct adm_who) { .patience = ADM_PATIENCE };
	for (; at < argc && (taken = parse_option(argv + at, argc - at, &wish, who)) > 0;
	     at += taken)
		;
	chosen = wish.all || wish.by_user || wish.program;
	for (;
	     !chosen && !who->hosts && taken == 0 && at < argc && shunt_door_parse(argv[at], &door);
	     at++)
		add(who, &door);
	if (taken < 0 || (!chosen && !who->count) ||
	    (wish.by_user && !who->hosts && !parse_user(wish.by_user, &wish.user))) {
		adm_who_free(who);
		return -1;
	}
	who->many |= chosen || who->count > 1;
	if (chosen && !who->hosts && at < argc)
		look(&wish, who);
	return at;
}

void adm_who_free(struct adm_who *who)
{
	free(who->wanted);
	who->wanted = NULL;
}
