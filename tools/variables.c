/* SPDX-License-Identifier: MIT */
/* The variables SHUNT_* of our own environment, for the commands that start programs. */
#include "tools/shunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/config.h"
#include "core/base/config_review.h"

static const char *get_variable(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static void complain(const char *line, void *arg)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, line);
}

static void warn(const char *line, void *arg)
{
	fprintf(stderr, "%s: warning: %s\n", (const char *)arg, line);
}

int shunt_variables_load(const char *who, struct shunt_config *config)
{
	int invalid = shunt_config_load(config, get_variable, NULL, complain, (void *)who);

	shunt_config_unknown(environ, warn, (void *)who);
	shunt_config_contradictions(config, warn, (void *)who);
	shunt_config_settle(config);
	return invalid;
}

int shunt_variables_check(const char *who)
{
	struct shunt_config config;

	if (!shunt_variables_load(who, &config))
		return 0;
	fprintf(stderr, "%s: nothing was started: correct or unset the above\n", who);
	return -1;
}
