/* SPDX-License-Identifier: MIT */
/*
 * shunt adm: says one command to the control sockets of one process or of many, all at once, and shows the answers
 * (core/admin/command.h). One process' answer is shown as it is, those of several as a table or as JSON.
 * adm_hosts.c says it on other hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/admin/command.h"
#include "core/api.h"
#include "tools/adm/adm_who.h"
#include "tools/ask/ask.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt adm [--json] PROCESS... COMMAND [ARGUMENT...]\n"
	"       shunt adm [--json] --all | --user USER | --program NAME  COMMAND [ARGUMENT...]\n"
	"       shunt adm --hosts FILE [--timeout SECONDS] [--json] --all | ...  COMMAND [ARGUMENT...]\n\n"
	"Tells shunted processes what to do; only their user and root may. A process is a process id or an\n"
	"identity, as `shunt stat` shows it. `shunt adm PROCESS help` lists the commands.\n\n"
	"  --all           every process that lets you in\n"
	"  --user USER     those of a user, a name or a number\n"
	"  --program NAME  those whose program has this name; NAME may have *, ? and [...]\n"
	"  --hosts FILE    the processes of the hosts of a file, over ssh: a line each, [USER@]HOST[:PORT];\n"
	"                  # begins a comment. Each line of an answer begins with its host\n"
	"  --timeout SECONDS  how long a host may take; 20 unless given\n"
	"  --json          one object with a row for each process, with --hosts below each host\n\n"
	"--user and --program may come together. All are asked at once, and have five seconds together.\n"
	"The answers of several are a table.\n\n"
	"Exit status: 0, 1 if one has refused or cannot be asked or there is none, 2 for wrong usage. With\n"
	"--hosts: 0 if all hosts have done it, 1 if none has, 3 if some have, 2 for wrong usage.\n";

/* ---- one process ---- */

static int complain(const struct shunt_door *door, const char *why)
{
	char name[SHUNT_DOOR_TEXT];

	fprintf(stderr, "shunt adm: process %s: %s\n", shunt_door_text(door, name), why);
	return EXIT_FAILED;
}

static int show(const struct shunt_reply *reply)
{
	char name[SHUNT_DOOR_TEXT];

	if (!reply->text)
		return complain(&reply->door, reply->why);
	if (!reply->refused) {
		shunt_print_escaped(stdout, reply->text, reply->length);
		return 0;
	}
	fprintf(stderr, "shunt adm: process %s: ", shunt_door_text(&reply->door, name));
	shunt_print_escaped(stderr, reply->text, reply->length);
	return EXIT_FAILED;
}

/* ---- several ---- */

static const char *outcome(const struct shunt_reply *reply)
{
	return !reply->text ? "silent" : reply->refused ? "refused" : "done";
}

/* Lines behind the first stand under it. */
static void print_answer(int indent, const char *text, size_t length)
{
	while (length) {
		size_t line = strcspn(text, "\n");

		if (line > length)
			line = length;
		shunt_print_escaped(stdout, text, line);
		putchar('\n');
		line += line < length;
		text += line;
		length -= line;
		if (length)
			printf("%*s", indent, "");
	}
}

static void print_row(const struct shunt_reply *reply)
{
	char name[SHUNT_DOOR_TEXT], program[ADM_PROGRAM], shown[4 * ADM_PROGRAM];
	int indent = printf(
		"%-8s %-15s %-7s ", shunt_door_text(&reply->door, name),
		shunt_escape(adm_program(reply->door.pid, program), shown, sizeof(shown)),
		outcome(reply));

	if (!reply->text)
		print_answer(indent, reply->why, strlen(reply->why));
	else if (reply->length)
		print_answer(indent, reply->text, reply->length);
	else
		putchar('\n');
}

static void print_table(const struct shunt_replies *replies)
{
	printf("%-8s %-15s %-7s %s\n", "PROCESS", "PROGRAM", "OUTCOME", "ANSWER");
	for (size_t i = 0; i < replies->count; i++)
		print_row(&replies->of[i]);
}

/* The answer is another process' text: it need not be UTF-8. */
static json_t *text_json(const char *text, size_t length)
{
	json_t *plain = json_stringn(text, length);
	char *shown;

	if (plain)
		return plain;
	shown = malloc(4 * length + 1);
	if (!shown)
		abort();
	plain = json_string(shunt_escape(text, shown, 4 * length + 1));
	free(shown);
	return plain;
}

static json_t *row_json(const struct shunt_reply *reply)
{
	char program[ADM_PROGRAM], shown[4 * ADM_PROGRAM];
	json_t *row = json_pack(
		"{s:i, s:s, s:s, s:s}", "pid", (int)reply->door.pid, "identity",
		reply->door.identity, "program",
		shunt_escape(adm_program(reply->door.pid, program), shown, sizeof(shown)),
		"outcome", outcome(reply));

	json_object_set_new(row, "answer",
			    reply->text ? text_json(reply->text, reply->length) :
					  json_string(reply->why));
	return row;
}

static void print_json(const struct shunt_replies *replies)
{
	json_t *rows = json_array(), *root;

	for (size_t i = 0; i < replies->count; i++)
		json_array_append_new(rows, row_json(&replies->of[i]));
	root = json_pack("{s:i, s:o}", "schema", SHUNT_JSON_SCHEMA, "processes", rows);
	shunt_print_json(stdout, root, JSON_INDENT(2));
	json_decref(root);
}

/* ---- all of it ---- */

static int show_all(const struct shunt_replies *replies, const struct adm_who *who)
{
	int rc = 0;

	if (who->json)
		print_json(replies);
	else if (who->many)
		print_table(replies);
	else
		for (size_t i = 0; i < replies->count; i++)
			rc |= show(&replies->of[i]);
	for (size_t i = 0; i < replies->count; i++)
		if (!replies->of[i].text || replies->of[i].refused)
			rc = EXIT_FAILED;
	return rc;
}

static int say(const struct adm_who *who, const char *line)
{
	struct shunt_replies replies = { 0 };
	int rc = who->count ? shunt_ask(who->wanted, who->count, line, &replies) : 0;

	if (rc) {
		fprintf(stderr, "shunt adm: %s\n", strerror(-rc));
		return EXIT_FAILED;
	}
	if (!replies.count) {
		if (who->json)
			print_json(&replies);
		fprintf(stderr, "shunt adm: there is no such process that lets you in\n");
		return EXIT_FAILED;
	}
	rc = show_all(&replies, who);
	shunt_ask_free(&replies);
	return rc;
}

int shunt_adm(int argc, char **argv)
{
	char line[SHUNT_COMMAND_MAX + 1];
	struct adm_who who;
	int used, rc;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	used = adm_who_parse(argc, argv, &who);
	if (used < 0 || used >= argc ||
	    !shunt_ask_line(argc - used, argv + used, line, sizeof(line))) {
		if (used >= 0)
			adm_who_free(&who);
		fprintf(stderr,
			"shunt adm: it wants processes and a command of at most %d bytes; "
			"`shunt adm --help` says how\n",
			SHUNT_COMMAND_MAX);
		return EXIT_USAGE;
	}
	rc = who.hosts ? adm_hosts(argc, argv, used, &who) : say(&who, line);
	adm_who_free(&who);
	return rc;
}
