/* SPDX-License-Identifier: MIT */
/* shunt advise --pid: what running processes show in some seconds. Nothing is tried here. */
#include "tools/advise/advise.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/advice.h"
#include "tools/ask/door.h"
#include "tools/common/output.h"
#include "tools/common/proc.h"
#include "tools/shunt.h"
#include "tools/stat/stat.h"

/* CPU seconds so far. */
struct cpu {
	double all, service;
};

struct watched {
	const struct shunt_stat *before, *now;
	struct cpu cpu; /* in the time of watching */
	double seconds;
	json_t *signs; /* growth of the statistics */
	struct shunt_share share;
	struct advise_cause causes[ADVISE_CAUSES_MAX];
	size_t cause_count;
};

/* ---- CPU time ---- */

/* The service thread blocks every signal that can be blocked, as few others do; a device's thread does, too. */
static bool is_service(pid_t pid, const char *task)
{
	char name[64], *line;
	unsigned long long blocked = 0;

	snprintf(name, sizeof(name), "task/%.16s/status", task);
	line = shunt_proc_line(pid, name, "SigBlk:");
	if (line)
		blocked = strtoull(line + strlen("SigBlk:"), NULL, 16);
	free(line);
	return (blocked & 0x7fffffff) == (0x7fffffff & ~((1ULL << 8) | (1ULL << 18)));
}

/* Run time in nanoseconds is the first word of schedstat. */
static double task_cpu(pid_t pid, const char *task)
{
	unsigned long long ns = 0;
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "task/%.16s/schedstat", task);
	file = shunt_proc_open(pid, name);
	if (file && fscanf(file, "%llu", &ns) != 1)
		ns = 0;
	if (file)
		fclose(file);
	return (double)ns / 1e9;
}

static struct cpu read_cpu(pid_t pid)
{
	struct cpu cpu = { 0 };
	const struct dirent *entry;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		double seconds;

		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		seconds = task_cpu(pid, entry->d_name);
		cpu.all += seconds;
		if (is_service(pid, entry->d_name))
			cpu.service += seconds;
	}
	if (dir)
		closedir(dir);
	return cpu;
}

/* ---- growth ---- */

static void compare(struct watched *watched)
{
	watched->signs = json_object();
	advise_signs_add(watched->signs, watched->now->process, 1);
	advise_signs_add(watched->signs, watched->before->process, -1);
	watched->seconds = watched->now->at - watched->before->at;
	shunt_share_of(json_object_get(watched->signs, "totals"), &watched->share);
	if (!watched->share.known)
		snprintf(watched->share.why, sizeof(watched->share.why),
			 "no byte was counted in that time");
	watched->cause_count = advise_causes(watched->signs, NULL, watched->causes);
}

/* ---- showing ---- */

static void say_item(advise_say *sink, void *arg, const char *a, const char *b, const char *c)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s%s%s", a, b, c);
	sink(arg, text);
}

/* Streams that are on TCP now, by reason. */
static void say_reasons(const struct watched *watched, advise_say *sink, void *arg)
{
	json_t *counts = json_object(), *value;
	const char *key;
	size_t index;

	json_array_foreach(json_object_get(watched->now->process, "streams"), index, value)
	{
		const char *reason = json_string_value(json_object_get(value, "reason"));

		if (reason && *reason)
			json_object_set_new(counts, reason,
					    json_integer(1 + json_integer_value(json_object_get(
								     counts, reason))));
	}
	json_object_foreach(counts, key, value)
	{
		const char *advice = shunt_advice_for(key);
		char reason[160], count[64];

		snprintf(count, sizeof(count), "%" JSON_INTEGER_FORMAT " connections are on TCP: ",
			 json_integer_value(value));
		shunt_escape(key, reason, sizeof(reason) - 16);
		if (advice)
			strcat(reason, ". Remedy: ");
		say_item(sink, arg, count, reason, advice ? advice : "");
	}
	json_decref(counts);
}

static void say_all(const struct watched *watched, advise_say *sink, void *arg)
{
	const char *bound = advise_bound(watched->signs, NULL);
	char name[32];

	say_reasons(watched, sink, arg);
	if (bound)
		say_item(sink, arg,
			 "sends waited most often for: ", shunt_escape(bound, name, sizeof(name)),
			 "");
	for (size_t i = 0; i < watched->cause_count; i++)
		say_item(sink, arg, watched->causes[i].settings,
			 " could help: ", watched->causes[i].text);
	if (watched->cause_count)
		sink(arg,
		     "`shunt advise COMMAND` tries such settings with a client; `shunt adm PID set NAME VALUE` changes those "
		     "that `shunt config` marks with a plus");
	else if (watched->share.known && watched->share.share > 0.99)
		sink(arg, "nothing in the statistics speaks for another setting");
}

static void print_item(void *arg, const char *text)
{
	(void)arg;
	printf("- ");
	shunt_print_wrapped(2, 2, text);
}

static void show(const struct watched *watched)
{
	char program[32], name[SHUNT_DOOR_TEXT], share[24];

	shunt_escape(json_string_value(json_object_get(watched->now->process, "program")) ?: "",
		     program, sizeof(program));
	printf("%s (%s), %.1f s: %s of the bytes on the link%s%s, CPU %.3f s, of it %.3f s the service thread\n",
	       program, shunt_door_text(&watched->now->door, name), watched->seconds,
	       shunt_share_text(&watched->share, share), watched->share.known ? "" : ", because ",
	       watched->share.why, watched->cpu.all, watched->cpu.service);
	say_all(watched, print_item, NULL);
}

static void add_word(void *array, const char *text)
{
	json_array_append_new(array, json_string(text));
}

static json_t *watched_json(const struct watched *watched)
{
	json_t *words = json_array(), *settings = json_array();
	const char *bound = advise_bound(watched->signs, NULL);

	say_all(watched, add_word, words);
	for (size_t i = 0; i < watched->cause_count; i++)
		json_array_append_new(settings, json_pack("{s:s, s:s}", "settings",
							  watched->causes[i].settings, "because",
							  watched->causes[i].text));
	return json_pack(
		"{s:I, s:f, s:o, s:f, s:f, s:s?, s:o, s:o}", "pid",
		(json_int_t)watched->now->door.pid, "seconds", watched->seconds, "link_share",
		watched->share.known ? json_real(watched->share.share) : json_null(), "cpu_seconds",
		watched->cpu.all, "service_cpu_seconds", watched->cpu.service, "bound_by", bound,
		"settings", settings, "advice", words);
}

/* ---- all of them ---- */

/* One process in both looks, or a word that there is none. */
static int watch_one(const struct shunt_look *before, const struct shunt_stat *now,
		     const struct cpu *cpu, json_t *array)
{
	struct watched watched = { .now = now,
				   .before = now->process ? shunt_look_find(before, now) : NULL };
	char name[SHUNT_DOOR_TEXT];
	struct cpu after;

	if (!watched.before || !watched.before->process) {
		fprintf(stderr, "shunt advise: %s: %s\n", shunt_door_text(&now->door, name),
			*now->why ? now->why : "it was not there at the beginning");
		return 0;
	}
	after = read_cpu(now->door.pid);
	watched.cpu = (struct cpu) { after.all - cpu->all, after.service - cpu->service };
	compare(&watched);
	if (array)
		json_array_append_new(array, watched_json(&watched));
	else
		show(&watched);
	json_decref(watched.signs);
	return 1;
}

static int watch_all(const struct shunt_door *wanted, size_t count, double seconds, json_t *array)
{
	struct timespec left = { .tv_sec = (time_t)seconds };
	struct shunt_look before, now;
	struct cpu cpus[ADVISE_SERVERS_MAX];
	int known = 0;

	if (shunt_look_ask(&before, wanted, count))
		return 0;
	for (size_t i = 0; i < count; i++)
		cpus[i] = read_cpu(wanted[i].pid);
	while (nanosleep(&left, &left))
		;
	if (!shunt_look_ask(&now, wanted, count)) {
		for (size_t i = 0; i < now.count; i++) {
			size_t which = 0;

			while (which + 1 < count && wanted[which].pid != now.processes[i].door.pid)
				which++;
			known += watch_one(&before, &now.processes[i], &cpus[which], array);
		}
		shunt_look_free(&now);
	}
	shunt_look_free(&before);
	return known;
}

int advise_watch(char *const *pids, size_t count, double seconds, bool json)
{
	struct shunt_door wanted[ADVISE_SERVERS_MAX];
	json_t *array = json ? json_array() : NULL, *root;
	int known;

	for (size_t i = 0; i < count; i++) {
		if (shunt_door_parse(pids[i], &wanted[i]) && wanted[i].pid)
			continue;
		fprintf(stderr,
			"shunt advise: '%s' is no process id; `shunt stat` lists shunted processes\n",
			pids[i]);
		json_decref(array);
		return EXIT_USAGE;
	}
	known = watch_all(wanted, count, seconds, array);
	if (json) {
		root = json_pack("{s:i, s:s, s:o}", "schema", SHUNT_JSON_SCHEMA, "version",
				 PACKAGE_VERSION, "processes", array);
		shunt_print_json(stdout, root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
		json_decref(root);
	}
	return known ? 0 : EXIT_FAILED;
}
