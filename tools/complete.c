/* SPDX-License-Identifier: MIT */
/*
 * shunt complete: candidates for the last of some words, for the shells (contrib/completion). Commands come from the
 * table of shunt.c, options and listed words from what a command's --help says, variables from config_table.h.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/admin/command.h"
#include "core/api.h"
#include "tools/adm/adm_who.h"
#include "tools/shunt.h"

static const char usage[] =
	"Usage: shunt complete -- WORD...\n\n"
	"Shows the candidates for the last word of a command line `shunt WORD...`: a line each, with a tab\n"
	"and its meaning where there is one. A line :command N, :file or :host says that the shell knows the\n"
	"candidates; a command begins at the Nth word, counted from 0. Completion for bash, zsh and fish is made with it.\n\n"
	"Exit status: 0, or 2 for wrong usage.\n";

extern char **environ;

/* The words of a subcommand that are no options. */
enum takes {
	TAKES_NOTHING,
	TAKES_COMMAND,	/* a program and its words */
	TAKES_PROCESSES,	/* shunted ones */
	TAKES_ADM,	/* shunted processes, then what they are told */
	TAKES_LISTED,	/* words that its help lists */
	TAKES_HOSTS,
};

static const struct words {
	const char *name;
	enum takes takes;
	const char *nested;	/* words that have a help of their own, with a blank between them, or NULL */
} words_of[] = {
	{ "run", TAKES_COMMAND, NULL },	  { "stat", TAKES_PROCESSES, NULL },
	{ "trace", TAKES_PROCESSES, "slow" }, { "top", TAKES_PROCESSES, NULL },
	{ "dump", TAKES_PROCESSES, NULL },
	{ "doctor", TAKES_PROCESSES, "devices" },
	{ "adm", TAKES_ADM, NULL },	  { "perf", TAKES_LISTED, "programs qos" },
	{ "ping", TAKES_HOSTS, NULL },	  { "advise", TAKES_COMMAND, NULL },
	{ "service", TAKES_LISTED, NULL },
};

/* ---- one candidate ---- */

/* `meaning` may be NULL. Only those are shown that begin as the word does. */
static void offer(const char *word, const char *candidate, int length, const char *meaning)
{
	if (strncmp(candidate, word, strlen(word)) || (size_t)length < strlen(word))
		return;
	printf("%.*s%s%s\n", length, candidate, meaning ? "\t" : "", meaning ? meaning : "");
}

static void offer_all(const char *word, const char *candidate, const char *meaning)
{
	offer(word, candidate, (int)strlen(candidate), meaning);
}

/* ---- tables ---- */

static void offer_commands(const char *word)
{
	const struct shunt_subcommand *command;

	for (size_t i = 0; (command = shunt_subcommand_at(i)); i++)
		if (command->help)
			offer_all(word, command->name, command->help);
	offer_all(word, "--help", "says what there is");
	offer_all(word, "--version", "says which version this is");
}

static bool is_command(const char *name)
{
	const struct shunt_subcommand *command;

	for (size_t i = 0; (command = shunt_subcommand_at(i)); i++)
		if (command->help && !strcmp(command->name, name))
			return true;
	return false;
}

/* The row of a command that has none takes no words. */
static struct words find_words(const char *name)
{
	for (size_t i = 0; i < sizeof(words_of) / sizeof(words_of[0]); i++)
		if (!strcmp(words_of[i].name, name))
			return words_of[i];
	return (struct words){ .name = name };
}

/* Those that let us in. */
static void offer_processes(const char *word)
{
	char *all[] = { "adm", "--all", "help", NULL };
	char text[SHUNT_DOOR_TEXT], name[ADM_PROGRAM];
	struct adm_who who;

	if (adm_who_parse(3, all, &who) < 0)
		return;
	for (size_t i = 0; i < who.count; i++)
		offer_all(word, shunt_door_text(&who.wanted[i], text),
			  adm_program(who.wanted[i].pid, name));
	adm_who_free(&who);
}

static void offer_variables(const char *word, const char *tail)
{
	char text[SHUNT_CONFIG_LINE_MAX];

	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		if (!*tail && row->live != SHUNT_CONFIG_LIVE)
			continue;
		snprintf(text, sizeof(text), "%s%s%s",
			 *tail && shunt_config_is_word(row) ? "SHUNT_TUNE=" : "", row->name, tail);
		offer_all(word, text, NULL);
	}
}

/* Behind `shunt adm`: processes, then one command of a process, then its words. */
static void offer_adm(int count, char **words)
{
	const char *word = words[count - 1], *help, *name;
	int at = 1;

	while (at < count - 1 && strspn(words[at], "0123456789abcdef") == strlen(words[at]))
		at++;
	if (at == count - 1)
		offer_processes(word);
	if (at == count - 1 && (at > 1 || *words[1] == '\0'))
		for (size_t i = 0; (name = shunt_command_name(i, &help)); i++)
			offer_all(word, name, help);
	if (at == count - 2 && !strcmp(words[at], "set"))
		offer_variables(word, "");
}

/* ---- what --help says ---- */

/* The help of a command as a stream of our own program's output; NULL: none. *pid is to be waited for. */
static FILE *open_help(const char *command, const char *nested, pid_t *pid)
{
	char *argv[] = { "shunt", (char *)command, (char *)(nested ? nested : "--help"),
			 nested ? "--help" : NULL, NULL };
	posix_spawn_file_actions_t actions;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	if (posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, environ))
		*pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (*pid)
		return fdopen(pipes[0], "r");
	close(pipes[0]);
	return NULL;
}

/* One row of a help text: "  -x, --name VALUE  meaning". */
struct row {
	const char *name, *value, *meaning;
	int name_length, value_length;	/* value: 0 where it takes none */
	char letter;	/* of the short option; 0: none */
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* False: it is no row. Such a row is indented by two blanks exactly. */
static bool parse_row(const char *line, struct row *row)
{
	const char *rest, *end;

	if (strncmp(line, "  ", 2) || line[2] == ' ' || !is_name(line[2]))
		return false;
	row->name = line + 2;
	row->letter = row->name[0] == '-' && row->name[1] != '-' ? row->name[1] : 0;
	if (row->letter && row->name[2] == ',')
		row->name += strcspn(row->name, " ") + 1;
	row->name_length = 0;
	while (is_name(row->name[row->name_length]))
		row->name_length++;
	rest = row->name + row->name_length;
	row->meaning = strstr(rest, "  ");
	if (*rest == '[')
		rest++;
	row->value = rest;
	if (rest[0] == '=' || (rest[0] == ' ' && rest[1] != ' '))
		row->value++;
	end = row->value + strcspn(row->value, "]\n");
	if (row->meaning && row->meaning < end)
		end = row->meaning;
	row->value_length = row->value > rest && end > row->value ? (int)(end - row->value) : 0;
	while (row->meaning && *row->meaning == ' ')
		row->meaning++;
	return true;
}

/* "a|b|c": each of them. */
static void offer_choices(const char *word, const char *value, int length)
{
	while (length > 0) {
		int one = (int)strcspn(value, "| \n,");

		if (one > length)
			one = length;
		if (one)
			offer(word, value, one, NULL);
		value += one + 1;
		length -= one + 1;
	}
}

static void offer_value(const char *word, const struct row *row)
{
	if (memmem(row->value, (size_t)row->value_length, "FILE", 4) ||
	    memmem(row->value, (size_t)row->value_length, "DIR", 3))
		puts(":file");
	else if (memchr(row->value, '|', (size_t)row->value_length))
		offer_choices(word, row->value, row->value_length);
	else if (memmem(row->value, (size_t)row->value_length, "PID", 3))
		offer_processes(word);
	else if (memmem(row->value, (size_t)row->value_length, "SHUNT_", 6))
		offer_variables(word, "=");
}

/* Does the row say the option `name`, and that it takes a value? */
static bool takes_value(const struct row *row, const char *name)
{
	bool named = strlen(name) == (size_t)row->name_length &&
		     !strncmp(row->name, name, strlen(name));

	return row->value_length && (named || (row->letter && name[1] == row->letter && !name[2]));
}

/*
 * Goes through the help: options, or the words that it lists, that begin as `word` does. Where `before` is an option
 * that takes a value, its values are offered, and true is returned; `word` NULL: they are not.
 */
static bool offer_help(const char *command, const char *nested, const char *before, const char *word,
		       bool listed)
{
	char line[512], last[sizeof(line)] = "";
	bool value = false;
	pid_t pid = 0;
	FILE *help = open_help(command, nested, &pid);

	while (help && fgets(line, sizeof(line), help)) {
		struct row row;
		bool option;

		if (!parse_row(line, &row))
			continue;
		if (before && takes_value(&row, before)) {
			if (word)
				offer_value(word, &row);
			value = true;
			break;
		}
		option = *row.name == '-';
		line[strcspn(line, "\n")] = '\0';
		if (before || option == listed ||
		    (strlen(last) == (size_t)row.name_length && !strncmp(last, row.name, strlen(last))))
			continue;
		offer(word, row.name, row.name_length, option ? row.meaning : NULL);
		snprintf(last, sizeof(last), "%.*s", row.name_length, row.name);
	}
	if (help)
		fclose(help);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return value;
}

/* ---- the words ---- */

static void offer_words(const struct words *command, const char *nested, int count,
			char **words)
{
	const char *word = words[count - 1];

	if (command->nested && count == 2)
		offer_choices(word, command->nested, (int)strlen(command->nested));
	switch (command->takes) {
	case TAKES_NOTHING:
		break;
	case TAKES_COMMAND:
		printf(":command %d\n", count - 1);
		break;
	case TAKES_PROCESSES:
		offer_processes(word);
		break;
	case TAKES_ADM:
		offer_adm(count, words);
		break;
	case TAKES_LISTED:
		offer_help(command->name, nested, NULL, word, true);
		break;
	case TAKES_HOSTS:
		puts(":host");
		break;
	}
}

/* The index of the program that a command runs, where that is before the last word; else 0. */
static int find_program(const char *command, int count, char **words)
{
	for (int i = 1; i < count - 1; i++) {
		if (!strcmp(words[i], "--"))
			return i + 1;
		if (*words[i] != '-')
			return i;
		if (offer_help(command, NULL, words[i], NULL, false))
			i++;
	}
	return 0;
}

static bool is_nested(const struct words *command, const char *word)
{
	const char *at = command->nested;
	size_t length = strlen(word);

	for (; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == length && !strncmp(at, word, length))
			return true;
	return false;
}

/* words[0] is a command, and the last is to be completed. */
static void complete(const struct words *command, int count, char **words)
{
	const char *nested = NULL, *word = words[count - 1], *before = words[count - 2];
	int first;

	if (count > 2 && is_nested(command, words[1]))
		nested = words[1];
	if (command->takes == TAKES_COMMAND && (first = find_program(command->name, count, words))) {
		printf(":command %d\n", first);
		return;
	}
	if (count > 2 && before[0] == '-' &&
	    offer_help(command->name, nested, before, word, false))
		return;
	if (*word == '-')
		offer_help(command->name, nested, NULL, word, false);
	else
		offer_words(command, nested, count, words);
}

int shunt_complete(int argc, char **argv)
{
	struct words command;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 3 || strcmp(argv[1], "--")) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (argc == 3) {
		offer_commands(argv[2]);
		return 0;
	}
	if (!is_command(argv[2]))
		return 0;
	command = find_words(argv[2]);
	complete(&command, argc - 2, argv + 2);
	return 0;
}
