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
#include "tools/common/proc.h"

/* A setting under which it makes no engine, or one that nobody can ask. NULL: none is known. */
static const char *setting(pid_t pid)
{
	struct shunt_environment environment = { 0 };
	const struct shunt_conf_asker asker = { .get = shunt_environment_get, .arg = &environment };
	static struct shunt_conf conf;
	struct shunt_config config;
	const char *device, *why = NULL;

	shunt_environment_read(pid, &environment);
	shunt_conf_read(&conf, &asker);
	shunt_conf_load(&conf, &config, &asker, NULL);
	if (!config.enable)
		why = "Shunt is loaded, but switched off: SHUNT_ENABLE=0 in its environment or a shunt.conf";
	else if (shunt_config_device(config.device, &device) == SHUNT_DEVICE_NONE)
		why = "Shunt is loaded, but offers and takes no links: SHUNT_DEVICE=none in its environment or a shunt.conf";
	shunt_environment_free(&environment);
	return why;
}

/* "Max address space         unlimited            unlimited            bytes" */
static int is_confined(pid_t pid)
{
	char *line = shunt_proc_line(pid, "limits", "Max address space");
	char *pages = shunt_proc_line(pid, "statm", " ");
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
	line = shunt_proc_line(pid, "maps", "/libshunt.so");
	if (!line)
		return errno ? "the process may not be examined; only its user and root may ask" :
			       "the process runs without Shunt; start it with `shunt run`";
	free(line);
	if (shunt_proc_is_apart(pid, "net"))
		return "the process is in another network namespace; ask there (nsenter --net --target PID shunt stat)";
	why = setting(pid);
	if (why)
		return why;
	if (is_confined(pid))
		return "Shunt is loaded, but RLIMIT_AS leaves the process too little address space for a link, so its "
		       "connections stay on TCP; raise ulimit -v, or LimitAS= of its systemd unit";
	if (shut)
		return "Shunt is loaded, but no door that lets us in is the process's (stopped?)";
	if (shunt_proc_status(pid, "Seccomp", 10) > 0)
		return "Shunt is loaded, but no connection has needed its engine yet, or the process had confined itself before "
		       "one did (it has a filter of system calls); its log says which (SHUNT_LOG)";
	return "Shunt is loaded, but no connection has needed its engine yet, or its service thread could not start; its "
	       "log says which (SHUNT_LOG)";
}
