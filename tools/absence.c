/* SPDX-License-Identifier: MIT */
/* Why a process has no door to be asked at: what /proc tells of it. */
#include "tools/shunt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/conf.h"
#include "core/base/space.h"

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

/* The first line that holds `text`, to be freed; NULL: none, or errno says why it cannot be read. */
static char *find_line(pid_t pid, const char *name, const char *text)
{
	FILE *file = open_proc(pid, name);
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	if (!file)
		return NULL;
	while (!found && getline(&line, &room, file) > 0)
		found = strstr(line, text) != NULL;
	fclose(file);
	if (found)
		return line;
	free(line);
	errno = 0;
	return NULL;
}

static int in_other_network(pid_t pid)
{
	char path[64], ours[64] = "", its[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return readlink(path, its, sizeof(its) - 1) > 0 && readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0 &&
	       strcmp(ours, its);
}

struct environment {
	char *text;	/* "NAME=VALUE", each with its 0 */
	size_t len;
};

static const char *get_variable(const char *name, void *arg)
{
	struct environment *environment = arg;
	size_t len = strlen(name);

	for (size_t at = 0; at < environment->len; at += strlen(environment->text + at) + 1) {
		const char *entry = environment->text + at;

		if (!strncmp(entry, name, len) && entry[len] == '=')
			return entry + len + 1;
	}
	return NULL;
}

/* As it was at the start. A program that writes its title over its environment shows nothing. */
static void read_environment(pid_t pid, struct environment *environment)
{
	FILE *file = open_proc(pid, "environ"), *to = open_memstream(&environment->text, &environment->len);
	int c;

	while (file && to && (c = getc(file)) != EOF)
		putc(c, to);
	if (to)
		fclose(to);
	if (file)
		fclose(file);
}

/* A setting under which it makes no engine, or one that nobody can ask. NULL: none is known. */
static const char *setting(pid_t pid)
{
	struct environment environment = { 0 };
	const struct shunt_conf_asker asker = { .get = get_variable, .arg = &environment };
	static struct shunt_conf conf;
	struct shunt_config config;
	const char *device, *why = NULL;

	read_environment(pid, &environment);
	shunt_conf_read(&conf, &asker);
	shunt_conf_load(&conf, &config, &asker, NULL);
	if (!config.enable)
		why = "Shunt is loaded, but switched off: SHUNT_ENABLE=0 in its environment or a shunt.conf";
	else if (shunt_config_device(config.device, &device) == SHUNT_DEVICE_NONE)
		why = "Shunt is loaded, but offers and takes no links: SHUNT_DEVICE=none in its environment or a shunt.conf";
	free(environment.text);
	return why;
}

/* "Max address space         unlimited            unlimited            bytes" */
static int is_confined(pid_t pid)
{
	char *line = find_line(pid, "limits", "Max address space");
	char *pages = find_line(pid, "statm", " ");
	struct shunt_space space = { .limit = SHUNT_SPACE_UNLIMITED };
	char soft[32] = "";

	if (line && pages && sscanf(line, "Max address space %31s", soft) == 1 &&
	    strcmp(soft, "unlimited")) {
		space.limit = strtoull(soft, NULL, 10);
		space.present = strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	free(line);
	free(pages);
	return !shunt_space_thread(shunt_space_spare(&space, 0));
}

const char *shunt_process_absence(pid_t pid, bool shut)
{
	const char *why;
	char *line;

	if (kill(pid, 0) && errno == ESRCH)
		return "there is no such process";
	line = find_line(pid, "maps", "/libshunt.so");
	if (!line)
		return errno ? "the process may not be examined; only its user and root may ask" :
			       "the process runs without Shunt; start it with `shunt run`";
	free(line);
	if (in_other_network(pid))
		return "the process is in another network namespace; ask there (nsenter --net --target PID shunt stat)";
	why = setting(pid);
	if (why)
		return why;
	if (is_confined(pid))
		return "Shunt is loaded, but RLIMIT_AS leaves the process too little address space for a link, so its "
		       "connections stay on TCP; raise ulimit -v, or LimitAS= of its systemd unit";
	if (shut)
		return "Shunt is loaded, but no door that lets us in is the process's (stopped?)";
	return "Shunt is loaded, but no connection has needed its engine yet, or its service thread could not start; its "
	       "log says which (SHUNT_LOG)";
}
