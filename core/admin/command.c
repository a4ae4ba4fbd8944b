/* SPDX-License-Identifier: MIT */
#include "core/admin/command.h"
#include "core/admin/dump.h"
#include "core/admin/events.h"
#include "core/admin/live.h"
#include "core/admin/trace_show.h"
#include "core/base/answer.h"
#include "core/lane/fault_device.h"
#include "core/recovery/failover.h"
#include "core/recovery/probe.h"
#include <stdio.h>
#include <string.h>
#include "core/device/fault.h"
#include "core/peer/mock.h"
#include "core/peer/verdict.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/traced.h"

struct shunt_command {
	const char *name;
	const char *form;	/* of its arguments */
	const char *help;
	int least, most;	/* how many of them */
	int (*run)(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer);
};

/* --- the commands --- */

static int run_help(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer);

static int run_set(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer)
{
	char why[SHUNT_CONFIG_LINE_MAX];

	(void)count;
	if (shunt_live_set(engine, words[0], words[1], why, sizeof(why))) {
		shunt_answer_put(answer, "%s\n", why);
		return -1;
	}
	shunt_traced_config(engine);
	if (engine->service)
		shunt_loop_post(&engine->loop, &engine->loop.requests.trace);
	shunt_answer_put(answer, "%s=%s\n", words[0], words[1]);
	return 0;
}

static int run_failover(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer)
{
	(void)words;
	count = shunt_failover_all(engine);
	if (count)
		shunt_answer_put(answer, "failover: %d links\n", count);
	else
		shunt_answer_put(
			answer,
			"there is no link of which both ends keep what they have sent (SHUNT_TUNE=retain=always)\n");
	return count ? 0 : -1;
}

static int run_fault(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer)
{
	char why[SHUNT_CONFIG_LINE_MAX];

	if (shunt_fault_device_set(&engine->group, count ? words[0] : "", why, sizeof(why))) {
		shunt_answer_put(answer, "%s\n", why);
		return -1;
	}
	shunt_answer_put(answer, "%s\n", count ? words[0] : "no faults");
	return 0;
}

/* The words of a line are parts of it, with a 0 for each space. */
static int run_qos(struct shunt_engine *engine, int count, char **words,
		   struct shunt_answer *answer)
{
	static const struct {
		const char *word;
		void (*show)(struct shunt_service *service, struct shunt_answer *answer);
	} shows[] = { { "periods", shunt_qos_show_periods }, { "rules", shunt_qos_show_rules } };
	char why[SHUNT_QOS_ERROR];

	for (size_t i = 0; count == 1 && i < sizeof(shows) / sizeof(shows[0]); i++)
		if (!strcmp(words[0], shows[i].word)) {
			shows[i].show(engine->service, answer);
			return 0;
		}
	for (int i = 1; i < count; i++)
		words[i][-1] = ' ';
	if (count && shunt_qos_set(engine->service, !strcmp(words[0], "off") ? "" : words[0], why,
				   sizeof(why))) {
		shunt_answer_put(answer, "%s\n", why);
		return -1;
	}
	shunt_qos_show(engine->service, answer);
	return 0;
}

static int run_trace(struct shunt_engine *engine, int count, char **words,
		     struct shunt_answer *answer)
{
	(void)count;
	(void)words;
	return shunt_trace_show(engine, answer);
}

static const struct shunt_command commands[] = {
	{ "dump", "", "for `shunt dump`: gives it a copy of the bytes of all streams from now on",
	  0, 0, shunt_dump_command },
	{ "failover", "",
	  "gives up the queue pair of each link: its streams go on over TCP, and return as return_ms says",
	  0, 0, run_failover },
	{ "fault", "[RULES]",
	  "faults on purpose by these rules (docs/dev/FAULTS.md) and no others; without any: no faults",
	  0, 1, run_fault },
	{ "help", "", "lists the commands", 0, 0, run_help },
	{ "log", "[NUMBER]",
	  "slow steps and gaps between polls (slow_us, poll_warn_us) as JSON, behind that number if there is one",
	  0, 1, shunt_events_command },
	{ "mock", "auto|tcp|rdma [FD | LOCAL PEER]",
	  "which track carries all streams, or one that `shunt stat` shows", 1, 3,
	  shunt_mock_command },
	{ "probe", "",
	  "asks the peer's device of each link for a sign of life, and tells how long it took; as JSON",
	  0, 0, shunt_probe_command },
	{ "qos", "[RULES | off | rules | periods]",
	  "puts these rules (docs/QOS.md), or those of a file, in force; without any: shows the classes; "
	  "rules: says them again; periods: what classes had in the last ones",
	  0, SHUNT_COMMAND_WORDS - 1, run_qos },
	{ "rules", "[RULES | off | show]",
	  "puts these rules (shunt.conf(5)), or those of a file, in force for connections from now on; off: none; "
	  "without any: shows them",
	  0, SHUNT_COMMAND_WORDS - 1, shunt_verdict_command },
	{ "set", "NAME VALUE", "changes one of those that `shunt config` marks with a plus", 2, 2,
	  run_set },
	{ "trace", "", "shows the last sends of peers that were followed, as JSON (`shunt trace`)",
	  0, 0, run_trace },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const char *shunt_command_name(size_t i, const char **help)
{
	if (i >= COMMANDS)
		return NULL;
	*help = commands[i].help;
	return commands[i].name;
}

static int run_help(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer)
{
	(void)engine;
	(void)count;
	(void)words;
	for (size_t i = 0; i < COMMANDS; i++)
		shunt_answer_put(answer, "%s%s%s\n    %s\n", commands[i].name, *commands[i].form ? " " : "",
				 commands[i].form, commands[i].help);
	return 0;
}

/* --- the line --- */

/* Cuts it into words. How many there are, or -1. */
static int cut(char *line, size_t bytes, char **words)
{
	int count = 0;
	bool inside = false;

	for (size_t i = 0; i < bytes; i++) {
		if (line[i] < ' ' || line[i] > '~' || (line[i] == ' ' && !inside))
			return -1;
		if (line[i] == ' ') {
			line[i] = '\0';
			inside = false;
		} else if (!inside) {
			if (count == SHUNT_COMMAND_WORDS)
				return -1;
			words[count++] = line + i;
			inside = true;
		}
	}
	line[bytes] = '\0';
	return inside ? count : -1;
}

static const struct shunt_command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

int shunt_command_run(struct shunt_engine *engine, const char *line, size_t bytes, struct shunt_answer *answer)
{
	char copy[SHUNT_COMMAND_MAX + 1], *words[SHUNT_COMMAND_WORDS];
	const struct shunt_command *command;
	int count = -1;

	shunt_answer_begin(answer);
	if (bytes <= SHUNT_COMMAND_MAX) {
		memcpy(copy, line, bytes);
		count = cut(copy, bytes, words);
	}
	if (count < 0) {
		shunt_answer_put(answer, "a command is at most %d printable characters in at most %d words, with one "
				 "space between them\n", SHUNT_COMMAND_MAX, SHUNT_COMMAND_WORDS);
		return -1;
	}
	command = command_find(words[0]);
	if (!command) {
		shunt_answer_put(answer, "no command '%s'; `help` lists them\n", words[0]);
		return -1;
	}
	if (count - 1 < command->least || count - 1 > command->most) {
		shunt_answer_put(answer, "it is: %s %s\n", command->name, command->form);
		return -1;
	}
	engine->grow_young(engine, false);
	return command->run(engine, count - 1, words + 1, answer);
}
