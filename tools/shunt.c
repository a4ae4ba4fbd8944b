/* SPDX-License-Identifier: MIT */
/* shunt: one command, a file for each subcommand. */
#include "tools/shunt.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/output.h"

static const struct shunt_subcommand commands[] = {
	{ "run", shunt_run, "run a program with its TCP connections accelerated" },
	{ "service", shunt_service, "have services of systemd run under Shunt" },
	{ "stat", shunt_stat, "show the connections and counters of shunted processes" },
	{ "trace", shunt_trace, "show where the time of sends went, and which steps were slow" },
	{ "dump", shunt_dump, "write the bytes of streams as packets, for Wireshark and tcpdump" },
	{ "monitor", shunt_monitor, "answer HTTP with the statistics of all processes of this host" },
	{ "top", shunt_top, "show processes and streams by their rates, live" },
	{ "adm", shunt_adm, "tell a shunted process what to do" },
	{ "config", shunt_config, "show the variables SHUNT_*, their values and their meaning" },
	{ "doctor", shunt_doctor, "find what keeps connections on TCP; show the RDMA devices" },
	{ "report", shunt_report, "put all of it into one file for a bug report" },
	{ "advise", shunt_advise, "say whether Shunt pays for a program, and which settings help" },
	{ "perf", shunt_perf, "measure redis, iperf3 and models of traffic over plain TCP and shunted" },
	{ "complete", shunt_complete, NULL },	/* what shells ask */
	{ "perf-end", shunt_perf_end, NULL },	/* what perf starts */
	{ "ping", shunt_ping, "measure the way to a host, and say why it is not on the link" },
	{ "ping-end", shunt_ping_end, NULL },	/* what ping starts */
};

static const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct shunt_subcommand *shunt_subcommand_at(size_t i)
{
	return i < command_count ? &commands[i] : NULL;
}

/* Commands that are words of others now. */
static const struct {
	const char *name, *now;
} former[] = {
	{ "compare", "perf programs" },
	{ "devices", "doctor devices" },
	{ "log", "trace slow" },
};

static void usage(FILE *out)
{
	fprintf(out,
		"Usage: shunt COMMAND [ARGUMENTS]\n"
		"       shunt --help | --version\n\n"
		"Carries the TCP streams of unmodified programs over shared memory or RDMA.\n\n");
	for (size_t i = 0; i < command_count; i++)
		if (commands[i].help)
			fprintf(out, "  %-9s%s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n`shunt COMMAND --help` says more; shunt(1) says everything.\n");
}

int main(int argc, char **argv)
{
	shunt_output_begin();
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("shunt %s\n", PACKAGE_VERSION);
		return 0;
	}
	for (size_t i = 0; i < command_count; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	for (size_t i = 0; i < sizeof(former) / sizeof(former[0]); i++)
		if (!strcmp(argv[1], former[i].name)) {
			fprintf(stderr, "shunt: no command '%s': it is `shunt %s`\n", argv[1], former[i].now);
			return EXIT_USAGE;
		}
	fprintf(stderr, "shunt: no command '%s'; `shunt --help` lists them\n", argv[1]);
	return EXIT_USAGE;
}
