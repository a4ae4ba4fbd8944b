/* SPDX-License-Identifier: MIT */
#include "preload/settings.h"
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "core/base/conf.h"
#include "core/base/config_review.h"
#include "core/base/keyfile.h"
#include "core/base/log.h"
#include "core/device/fault.h"
#include "preload/once.h"

static _Atomic int state;
static struct shunt_config config;
static struct shunt_conf conf; /* no page of it is touched where there are no files */
static struct shunt_settings_key key;

static const char *environment(const char *name, void *arg)
{
	(void)arg;
	return secure_getenv(name);
}

static void complain(const char *line, void *arg)
{
	(void)arg;
	shunt_log_write(SHUNT_LOG_WARN, "%s", line);
}

/* Names that are no variables, and settings that contradict each other. */
static void review_config(void)
{
	if (!config.enable)
		return;
	if (!getauxval(AT_SECURE))	/* else the environment does not count */
		shunt_config_unknown(environ, complain, NULL);
	shunt_config_contradictions(&config, complain, NULL);
}

/* Before the program changes its user or its root directory. */
static void read_key(void)
{
	char path[SHUNT_CONFIG_PATH_MAX];
	const char *name, *why = "its name is too long";

	key.lacks = config.trust == SHUNT_TRUST_KEY;
	if (!config.enable || !config.key_file[0])
		return;
	name = shunt_config_path_text(config.key_file, path, sizeof(path));
	key.bytes = name ? shunt_keyfile_read(name, &why) : NULL;
	key.lacks = !key.bytes;
	if (!key.bytes)
		shunt_log_write(SHUNT_LOG_WARN,
				"there are no links between hosts: SHUNT_KEY=%s: %s",
				config.key_file, why);
}

/* A filter may forbid to look, and a process that has changed its user in exec(2) takes nothing from outside. */
static void read_files(const struct shunt_conf_asker *asker)
{
	if (!shunt_process_confined() && !getauxval(AT_SECURE))
		shunt_conf_read(&conf, asker);
}

/* SHUNT_LOG asks for messages wherever standard error leads, and SHUNT_LOG_FILE for messages elsewhere. */
static bool wants_messages(const struct shunt_conf_asker *asker)
{
	const char *level = asker->get("SHUNT_LOG", asker->arg);

	return ((level && *level) || shunt_conf_has(&conf, "SHUNT_LOG")) && !config.log_file[0];
}

static void load_config(void)
{
	struct shunt_conf_asker quiet = { .get = environment },
				asker = { .get = environment, .complain = complain };
	struct shunt_log_calls calls;
	int saved = errno;

	if (!shunt_real.write)
		shunt_calls_resolve();
	calls = (struct shunt_log_calls) { .write = shunt_real.write, .poll = shunt_real.poll };
	/* Twice, because the values say where complaints about them go. */
	read_files(&quiet);
	shunt_conf_load(&conf, &config, &quiet, NULL);
	shunt_log_setup((enum shunt_log_level)config.log_level, config.log_file, &calls);
	shunt_log_set_asked(wants_messages(&quiet));
	shunt_log_set_format((enum shunt_log_format)config.log_format);
	shunt_conf_load(&conf, &config, &asker, NULL);
	review_config();
	read_key();
	shunt_config_settle(&config);
	shunt_fault_set_memory(config.fault);
	errno = saved;
}

bool shunt_process_enabled(void)
{
	if (unlikely(atomic_load(&state) != SHUNT_ONCE_READY))
		shunt_inside_do(shunt_once_make(&state, load_config));
	return config.enable;
}

const struct shunt_config *shunt_process_config(void)
{
	return shunt_process_enabled() ? &config : NULL;
}

struct shunt_settings_key shunt_settings_key(void)
{
	return key;
}

void shunt_settings_forget(void)
{
	if (atomic_load(&state) == SHUNT_ONCE_MAKING)
		atomic_store(&state, SHUNT_ONCE_NONE);
}
