/* SPDX-License-Identifier: MIT */
#include "tools/service/drop_in.h"

#include <stdlib.h>
#include <string.h>

/* --- what the unit says --- */

struct families {
	bool first, denies;	/* the list names those that are forbidden */
	bool meets, asks;	/* it names AF_UNIX, AF_NETLINK */
};

static bool note_family(const char *word, void *arg)
{
	struct families *families = arg;

	if (families->first)
		families->denies = *word == '~';
	families->first = false;
	word += *word == '~';
	families->meets |= !strcmp(word, "AF_UNIX") || !strcmp(word, "AF_LOCAL");
	families->asks |= !strcmp(word, "AF_NETLINK");
	return true;
}

static bool note_preload(const char *word, void *arg)
{
	if (!strncmp(word, "LD_PRELOAD=", 11))
		snprintf(arg, PATH_MAX, "%s", word + 11);
	return true;
}

static bool is_system(const char *word, void *arg)
{
	(void)arg;
	word += strspn(word, "-+");
	return strcmp(word, "/") != 0 && strcmp(word, "/run") != 0;
}

static bool never(const char *word, void *arg)
{
	(void)word;
	(void)arg;
	return false;
}

static bool has(const struct shunt_unit *unit, const char *key)
{
	return !shunt_unit_words(unit, key, never, NULL);
}

static bool has_read_only_run(const struct shunt_unit *unit)
{
	const char *protects = shunt_unit_value(unit, "ProtectSystem");

	return (protects && !strcmp(protects, "strict")) ||
	       !shunt_unit_words(unit, "ReadOnlyPaths", is_system, NULL) ||
	       !shunt_unit_words(unit, "ReadOnlyDirectories", is_system, NULL);
}

/* --- what is added --- */

/* A library that the unit preloads stays, behind ours: an allocator is found all the same. */
static void add_library(FILE *out, const struct shunt_unit *unit, const char *library)
{
	char others[PATH_MAX] = "", *rest = others, *word;

	shunt_unit_words(unit, "Environment", note_preload, others);
	fprintf(out, "Environment=\"LD_PRELOAD=%s", library);
	while ((word = strsep(&rest, ": ")))
		if (*word && strcmp(word, library) != 0)
			fprintf(out, ":%s", word);
	fputs("\"\n", out);
}

static void add_families(FILE *out, const struct shunt_unit *unit)
{
	struct families families = { .first = true };

	shunt_unit_words(unit, "RestrictAddressFamilies", note_family, &families);
	if (families.first ||
	    (families.meets != families.denies && families.asks != families.denies))
		return;
	fputs("# The unit has a list of families. Peers meet at Unix sockets, and the kernel is asked over netlink who has a connection.\n",
	      out);
	if (families.meets == families.denies)
		fputs("RestrictAddressFamilies=AF_UNIX\n", out);
	if (families.asks == families.denies)
		fputs("RestrictAddressFamilies=AF_NETLINK\n", out);
}

static void add_paths(FILE *out, const struct shunt_unit *unit, const char *library)
{
	if (has(unit, "NoExecPaths"))
		fprintf(out, "ExecPaths=-%.*s\n", (int)(strrchr(library, '/') - library), library);
	if (has_read_only_run(unit))
		fputs("ReadWritePaths=-/run/shunt\n", out);
}

/*
 * squid starts its worker with a real user that is not its effective one, and the dynamic linker ignores LD_PRELOAD then.
 * With -N the first process serves: there is one worker, and systemd starts it anew where the first process would.
 */
static void add_squid(FILE *out, const char *command)
{
	const char *end = command + strcspn(command, " ");

	fputs("# squid's worker has another real user, and takes no library. With -N the first process serves, alone.\n"
	      "ExecStart=\n",
	      out);
	fprintf(out, "ExecStart=%.*s -N%s\nRestart=on-failure\n", (int)(end - command), command,
		end);
}

static bool runs(const char *command, const char *program)
{
	size_t length = strcspn(command, " "), wanted = strlen(program);

	return length > wanted && command[length - wanted - 1] == '/' &&
	       !strncmp(command + length - wanted, program, wanted);
}

void shunt_drop_in_write(FILE *out, const struct shunt_unit *unit, const char *library)
{
	const char *command = shunt_unit_value(unit, "ExecStart");

	fprintf(out, SHUNT_DROP_IN_MARK " %s`; `disable` removes it.\n[Service]\n", unit->name);
	add_library(out, unit, library);
	add_families(out, unit);
	add_paths(out, unit, library);
	if (command && runs(command, "squid"))
		add_squid(out, command);
}

/* --- what it cannot help --- */

static void warn(const struct shunt_unit *unit, const char *key, const char *what)
{
	fprintf(stderr, "shunt service: %s has %s=%s: %s\n", unit->name, key,
		shunt_unit_value(unit, key), what);
}

void shunt_drop_in_warn(const struct shunt_unit *unit)
{
	const char *limit = shunt_unit_value(unit, "LimitAS");

	if (shunt_unit_is_true(unit, "PrivateNetwork"))
		warn(unit, "PrivateNetwork", "it reaches peers in its own network namespace only");
	if (limit && *limit && strcmp(limit, "infinity") != 0)
		warn(unit, "LimitAS",
		     "a link needs some GiB of addresses, so connections stay on TCP");
	for (size_t i = 0; i < 2; i++) {
		const char *key = i ? "RootImage" : "RootDirectory",
			   *value = shunt_unit_value(unit, key);

		if (value && *value && strcmp(value, "/") != 0)
			warn(unit, key, "the library must be inside, at the same name");
	}
}
