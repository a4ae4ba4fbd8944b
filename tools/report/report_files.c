/* SPDX-License-Identifier: MIT */
/*
 * The files of a report. Of an environment it has variables of the table and LD_PRELOAD alone, and of SHUNT_KEY at most a
 * path. No memory, no file of a program and no bytes of a connection are read.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/config.h"
#include "tools/ask/ask.h"
#include "tools/doctor/devices.h"
#include "tools/doctor/probe.h"
#include "tools/doctor/doctor.h"
#include "tools/common/output.h"
#include "tools/report/report.h"
#include "tools/shunt.h"

/* ---- texts ---- */

static void put_json(struct shunt_report *report, const json_t *root, const char *name)
{
	size_t length = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &length);

	if (!to)
		abort();
	shunt_print_json(to, root, JSON_INDENT(2));
	if (fclose(to))
		abort();
	shunt_report_put(report, text, length, "%s", name);
	free(text);
}

/* Lines of a file for which `wanted` is true, or all. One that cannot be read is left out. */
static void put_file(struct shunt_report *report, const char *path,
		     bool (*wanted)(const char *line), const char *name)
{
	FILE *from = fopen(path, "re"), *to;
	char *line = NULL, *text = NULL;
	size_t room = 0, length = 0;

	if (!from)
		return;
	to = open_memstream(&text, &length);
	if (!to)
		abort();
	while (getline(&line, &room, from) > 0)
		if (!wanted || wanted(line))
			fputs(line, to);
	fclose(from);
	if (fclose(to))
		abort();
	shunt_report_put(report, text, length, "%s", name);
	free(line);
	free(text);
}

/* ---- the machine ---- */

/* The name of the host is no part of it. */
static void put_versions(struct shunt_report *report)
{
	char text[1024], library[PATH_MAX];
	struct utsname system;
	int length;

	if (uname(&system))
		return;
	if (shunt_library_locate(library))
		snprintf(library, sizeof(library), "not found");
	length = snprintf(text, sizeof(text),
			  "shunt %s\nlibrary %.512s\n%s %s %s %s\nprocessors %ld\n",
			  PACKAGE_VERSION, library, system.sysname, system.release, system.version,
			  system.machine, sysconf(_SC_NPROCESSORS_ONLN));
	shunt_report_put(report, text, (size_t)length, "versions.txt");
}

static bool is_module(const char *line)
{
	static const char *const words[] = { "rdma", "ib_",  "mlx", "rxe", "siw",   "irdma",
					     "iw_",  "bnxt", "efa", "hns", "_diag", "smc" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

static void put_devices(struct shunt_report *report)
{
	json_t *devices = shunt_devices_list("");

	put_json(report, devices, "devices.json");
	json_decref(devices);
	if (shunt_devices_verbs_fault())
		return;
	devices = shunt_probe(NULL);
	if (devices)
		put_json(report, devices, "probe.json");
	json_decref(devices);
}

static void put_doctor(struct shunt_report *report)
{
	const struct shunt_doctor_wish wish = { .root = "", .all = true };
	json_t *said = NULL;

	shunt_doctor_run(&wish, &said);
	if (said)
		put_json(report, said, "doctor.json");
	json_decref(said);
}

/* ---- processes ---- */

static void put_variable(FILE *to, const char *entry)
{
	char name[64];
	size_t length = strcspn(entry, "=");

	snprintf(name, sizeof(name), "%.*s", (int)length, entry);
	if (strncmp(name, "SHUNT_", 6) && strcmp(name, "LD_PRELOAD"))
		return;
	if ((strcmp(name, "LD_PRELOAD") && !shunt_config_known(name)) ||
	    (!strcmp(name, "SHUNT_KEY") && entry[length] && entry[length + 1] != '/'))
		fprintf(to, "%s=(not shown)\n", name);
	else
		fprintf(to, "%s\n", entry);
}

static void put_environment(struct shunt_report *report, pid_t pid, const char *name)
{
	struct shunt_environment environment = { 0 };
	char *text = NULL, **list;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);

	if (!to)
		abort();
	shunt_environment_read(pid, &environment);
	list = shunt_environment_list(&environment);
	for (char **entry = list; *entry; entry++)
		put_variable(to, *entry);
	if (fclose(to))
		abort();
	shunt_report_put(report, text, length, "%s", name);
	free(text);
	free(list);
	shunt_environment_free(&environment);
}

static bool is_ours(const char *line)
{
	return strstr(line, "libshunt") || strstr(line, "libibverbs") ||
	       strstr(line, "librdmacm") || strstr(line, "-rdmav");
}

static void put_namespaces(struct shunt_report *report, pid_t pid)
{
	static const char *const kinds[] = { "net", "user", "pid", "mnt", "ipc", "cgroup" };
	char text[512] = "", target[64], name[32];
	size_t length = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(name, sizeof(name), "ns/%s", kinds[i]);
		if (shunt_proc_link(pid, name, target, sizeof(target)))
			length += (size_t)snprintf(
				text + length, sizeof(text) - length, "%s%s\n", target,
				shunt_proc_is_apart(pid, kinds[i]) ? " (not that of the report)" :
								     "");
	}
	shunt_report_put(report, text, length, "processes/%d/namespaces.txt", (int)pid);
}

static void put_process(struct shunt_report *report, pid_t pid)
{
	static const struct {
		const char *file;
		bool (*wanted)(const char *line);
	} files[] = {
		{ "status", NULL }, { "limits", NULL }, { "maps", is_ours }, { "cgroup", NULL }
	};
	char path[64], name[80];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i].file);
		snprintf(name, sizeof(name), "processes/%d/%s", (int)pid, files[i].file);
		put_file(report, path, files[i].wanted, name);
	}
	snprintf(name, sizeof(name), "processes/%d/environment.txt", (int)pid);
	put_environment(report, pid, name);
	put_namespaces(report, pid);
}

/* Processes that do not know the command refuse it. */
static void put_answers(struct shunt_report *report, const char *command)
{
	struct shunt_replies replies;
	char name[SHUNT_DOOR_TEXT];

	if (shunt_ask(NULL, 0, command, &replies))
		return;
	for (size_t i = 0; i < replies.count; i++)
		if (replies.of[i].text && !replies.of[i].refused)
			shunt_report_put(report, replies.of[i].text, replies.of[i].length,
					 "processes/%s/%s.json",
					 shunt_door_text(&replies.of[i].door, name), command);
	shunt_ask_free(&replies);
}

static int put_processes(struct shunt_report *report)
{
	static const char *const commands[] = { "log", "trace" };
	json_t *answers = json_array();
	struct shunt_look look;

	if (shunt_look_ask(&look, NULL, 0)) {
		json_decref(answers);
		return -1;
	}
	for (size_t i = 0; i < look.count; i++)
		if (look.processes[i].process)
			json_array_append(answers, look.processes[i].process);
	put_json(report, answers, "stat.json");
	for (size_t i = 0; i < look.count; i++)
		if (look.processes[i].process && look.processes[i].door.pid)
			put_process(report, look.processes[i].door.pid);
	shunt_look_free(&look);
	json_decref(answers);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		put_answers(report, commands[i]);
	return 0;
}

int shunt_report_gather(struct shunt_report *report)
{
	put_versions(report);
	put_devices(report);
	put_doctor(report);
	put_environment(report, getpid(), "environment.txt");
	put_file(report, "/proc/modules", is_module, "modules.txt");
	put_file(report, "/proc/self/limits", NULL, "limits.txt");
	put_file(report, "/proc/net/sockstat", NULL, "sockets.txt");
	put_file(report, "/proc/net/sockstat6", NULL, "sockets6.txt");
	return put_processes(report);
}
