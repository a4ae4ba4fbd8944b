/* SPDX-License-Identifier: MIT */
/*
 * shunt adm: says one command to a process' control socket and shows the answer
 * (core/admin/command.h).
 */
#include <stdio.h>
#include <string.h>

#include "core/admin/command.h"
#include "tools/ask.h"
#include "tools/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt adm PROCESS COMMAND [ARGUMENT...]\n\n"
	"Tells a shunted process what to do; only its user and root may. A process is a process id or an\n"
	"identity, as `shunt stat` shows it. `shunt adm PROCESS help` lists the commands.\n\n"
	"Exit status: 0, 1 if the process refused or cannot be asked, 2 for wrong usage.\n";

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

static int say(const struct shunt_door *wanted, const char *line)
{
	struct shunt_replies replies;
	int rc = shunt_ask(wanted, 1, line, &replies);

	if (rc)
		return complain(wanted, strerror(-rc));
	for (size_t i = 0; i < replies.count; i++)
		rc |= show(&replies.of[i]);
	shunt_ask_free(&replies);
	return rc;
}

int shunt_adm(int argc, char **argv)
{
	char line[SHUNT_COMMAND_MAX + 1];
	struct shunt_door wanted;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	if (argc < 3 || !shunt_door_parse(argv[1], &wanted) ||
	    !shunt_ask_line(argc - 2, argv + 2, line, sizeof(line))) {
		fprintf(stderr,
			"shunt adm: it wants a process and a command of at most %d bytes; "
			"`shunt adm --help` says how\n",
			SHUNT_COMMAND_MAX);
		return EXIT_USAGE;
	}
	return say(&wanted, line);
}
