/* SPDX-License-Identifier: MIT */
/* The variables SHUNT_* of an environment, and the files that they name. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/conf.h"
#include "core/base/config_review.h"
#include "core/base/keyfile.h"

static void add_invalid(const char *line, void *arg)
{
	shunt_findings_add(arg, SHUNT_BAD, "setting", "%s", line);
	shunt_findings_advise(
		arg,
		"correct or unset it (`shunt config` has what is allowed), and start the program anew");
}

static void add_doubt(const char *line, void *arg)
{
	shunt_findings_add(arg, SHUNT_WARN, "setting", "%s", line);
	shunt_findings_advise(arg, "see `shunt config`");
}

/* As core/peer/meeting_dir.c takes it. */
static const char *directory_fault(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return "it is no directory";
	if (st.st_uid && st.st_uid != geteuid())
		return "it belongs neither to root nor to this user";
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		return "others may write in it, and it is not sticky";
	return access(path, W_OK) ? "this user may not write in it" : NULL;
}

static void check_dir(struct shunt_findings *findings, const struct shunt_config *config,
		      const char *inside)
{
	char path[PATH_MAX];
	const char *fault = "it is no absolute path";

	if (!config->dir[0])
		return;
	if (config->dir[0] == '/') {
		snprintf(path, sizeof(path), "%s%s", inside, config->dir);
		fault = directory_fault(path);
	}
	if (!fault) {
		shunt_findings_add(findings, SHUNT_WELL, "dir", "SHUNT_DIR=%s", config->dir);
		return;
	}
	shunt_findings_add(findings, SHUNT_BAD, "dir", "SHUNT_DIR=%s is not used: %s", config->dir,
			   fault);
	shunt_findings_advise(
		findings,
		"make it a directory of root's with mode 1777, and mount it in each container");
}

static void check_key(struct shunt_findings *findings, const struct shunt_config *config,
		      const char *inside)
{
	char path[PATH_MAX];
	const char *why = NULL, *shown = config->key_file;

	if (!config->key_file[0])
		return;
	if (*shown != '/')
		shown = "(not shown)"; /* perhaps the secret itself, by mistake */
	snprintf(path, sizeof(path), "%s%s", config->key_file[0] == '/' ? inside : "",
		 config->key_file);
	if (shunt_keyfile_read(path, &why)) {
		shunt_findings_add(findings, SHUNT_WELL, "key", "SHUNT_KEY=%s is a good file",
				   shown);
		return;
	}
	shunt_findings_add(findings, SHUNT_BAD, "key",
			   "SHUNT_KEY=%s: %s; there are no links between hosts", shown, why);
	shunt_findings_advise(
		findings,
		"a regular file of at least 16 bytes, of this user with mode 600 or of root with 640");
}

/* Settings that leave connections on TCP, each for its reason. */
static void check_policy(struct shunt_findings *findings, const struct shunt_config *config)
{
	const char *device;

	if (!config->enable)
		shunt_findings_add(findings, SHUNT_BAD, "policy",
				   "SHUNT_ENABLE=0: every connection is on TCP");
	else if (shunt_config_device(config->device, &device) == SHUNT_DEVICE_NONE)
		shunt_findings_add(findings, SHUNT_BAD, "policy",
				   "SHUNT_DEVICE=none: there are no links");
	else if (shunt_config_device(config->device, &device) == SHUNT_DEVICE_SOFT)
		shunt_findings_add(findings, SHUNT_WARN, "policy",
				   "SHUNT_DEVICE=soft: no links to other hosts");
	else
		return;
	shunt_findings_advise(findings, "unset it, and start the program anew");
}

/* Settings that a person may have forgotten. */
static void check_choices(struct shunt_findings *findings, const struct shunt_config *config)
{
	char value[SHUNT_CONFIG_TEXT_MAX];

	for (size_t i = 0; config->enable && i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		shunt_config_value_text(row, config, value, sizeof(value));
		if (!strcmp(row->name, "SHUNT_MOCK") && !strcmp(value, "tcp")) {
			shunt_findings_add(
				findings, SHUNT_WARN, "policy",
				"SHUNT_MOCK=tcp: streams stay on TCP until they are told otherwise");
			shunt_findings_advise(findings, "shunt adm PROCESS mock auto");
		} else if (!strcmp(row->name, "SHUNT_FAULT") && *value) {
			shunt_findings_add(findings, SHUNT_WARN, "policy",
					   "SHUNT_FAULT=%s: there are faults on purpose", value);
			shunt_findings_advise(findings, "unset it, and start the program anew");
		}
	}
}

void shunt_doctor_settings(struct shunt_findings *findings,
			   const struct shunt_environment *environment, const char *inside)
{
	char **list = shunt_environment_list(environment);
	size_t before = findings->count;
	const struct shunt_conf_asker asker = { .get = shunt_environment_get,
						.arg = (void *)environment,
						.complain = add_invalid,
						.carg = findings };
	static struct shunt_conf conf;
	struct shunt_config config;

	shunt_conf_read(&conf, &asker);
	shunt_conf_load(&conf, &config, &asker, NULL);
	shunt_config_unknown(list, shunt_config_former(list) ? add_invalid : add_doubt, findings);
	shunt_config_contradictions(&config, add_doubt, findings);
	check_policy(findings, &config);
	check_choices(findings, &config);
	if (inside) {
		check_dir(findings, &config, inside);
		check_key(findings, &config, inside);
	}
	if (findings->count == before)
		shunt_findings_add(findings, SHUNT_WELL, "setting",
				   "the variables SHUNT_* are valid");
	free(list);
}
