/* SPDX-License-Identifier: MIT */
/* shunt doctor: the command. */
#include "tools/doctor/doctor.h"
#include "tools/plan/plan.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt doctor [--json] [--strict] [--all] [--root DIR] [--connection LOCAL PEER] [PID...]\n"
	"       shunt doctor --plan connections=N[,peers=M][,sets=S][,device=verbs] [--json] [--strict]\n"
	"       shunt doctor devices [OPTIONS]    (the RDMA devices: shunt doctor devices --help)\n\n"
	"Checks this machine, the variables SHUNT_* of this shell, and processes with their connections: a row\n"
	"for each check that says ok, warn or bad, what was found, and what to do about it. A connection on TCP\n"
	"has its reason, and the process at its other end where that is on this host.\n\n"
	"  --all                    all shunted processes that may be asked\n"
	"  --connection LOCAL PEER  this connection alone, ADDRESS:PORT of its own and of its peer's end, as\n"
	"                           `shunt stat` shows them\n"
	"  --plan WORDS             looks at nothing, and says what a process takes for N connections to M other\n"
	"                           processes: memory, locked memory, queue pairs, descriptors. S: epoll sets that\n"
	"                           it waits in\n"
	"  --root DIR               /proc, /sys and /dev of another root, as /proc/PID/root of a container, for\n"
	"                           the machine's rows\n"
	"  --strict                 warnings count for the exit status\n"
	"  --json                   the same as JSON\n\n"
	"Exit status: 0, 1 if a row is bad (or warns, with --strict), 2 for wrong usage.\n";

enum { CONNECTION = 1, PLAN };

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt doctor: %s '%s'; `shunt doctor --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_pids(int count, char **words, pid_t *pids, struct shunt_doctor_wish *wish)
{
	for (; count--; words++) {
		char *end;
		long pid = strtol(*words, &end, 10);

		if (*end || end == *words || pid <= 0 || pid > INT_MAX)
			return usage_error("no process id:", *words);
		pids[wish->count++] = (pid_t)pid;
	}
	wish->pids = pids;
	return 0;
}

/* The word behind LOCAL. */
static int take_peer(int argc, char **argv, struct shunt_doctor_wish *wish)
{
	if (optind >= argc)
		return usage_error("no peer's address behind", wish->local);
	wish->peer = argv[optind++];
	if (!strchr(wish->local, ':') || !strchr(wish->peer, ':'))
		return usage_error("no ADDRESS:PORT:",
				   strchr(wish->local, ':') ? wish->peer : wish->local);
	return 0;
}

/* -1: go on. */
static int parse(int argc, char **argv, struct shunt_doctor_wish *wish, bool *json,
		 const char **plan)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "strict", no_argument, NULL, 's' },
		{ "all", no_argument, NULL, 'a' },
		{ "root", required_argument, NULL, 'r' },
		{ "connection", required_argument, NULL, CONNECTION },
		{ "plan", required_argument, NULL, PLAN },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'r':
			wish->root = optarg;
			break;
		case PLAN:
			*plan = optarg;
			break;
		case CONNECTION:
			wish->local = optarg;
			if (take_peer(argc, argv, wish))
				return EXIT_USAGE;
			break;
		case '?':
			return EXIT_USAGE;
		}
		*json |= c == 'j';
		wish->strict |= c == 's';
		wish->all |= c == 'a';
	}
	return -1;
}

int shunt_doctor(int argc, char **argv)
{
	struct shunt_doctor_wish wish = { .root = "" };
	pid_t *pids = calloc((size_t)argc + 1, sizeof(*pids));
	const char *plan = NULL;
	json_t *said = NULL;
	bool json = false;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "devices")) {
		free(pids);
		return shunt_devices(argc - 1, argv + 1);
	}
	if (!pids)
		abort();
	rc = parse(argc, argv, &wish, &json, &plan);
	if (rc < 0 && plan) {
		rc = optind < argc ? usage_error("--plan looks at no process:", argv[optind]) :
				     shunt_plan_say(plan, json, wish.strict);
	}
	if (rc < 0)
		rc = parse_pids(argc - optind, argv + optind, pids, &wish) ? EXIT_USAGE : -1;
	if (rc < 0) {
		rc = shunt_doctor_run(&wish, json ? &said : NULL);
		if (said)
			shunt_print_json(stdout, said, JSON_INDENT(2));
		json_decref(said);
	}
	free(pids);
	return rc;
}
