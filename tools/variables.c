/* SPDX-License-Identifier: MIT */
/* The variables SHUNT_* of our own environment, for the commands that start programs. */
#include "tools/shunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/conf.h"
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

struct shunt_conf_wrong shunt_variables_load(const char *who, struct shunt_config *config,
					     struct shunt_conf_origin *origins,
					     const struct shunt_conf **files)
{
	const struct shunt_conf_asker asker = { .get = get_variable,
						.complain = complain,
						.carg = (void *)who };
	static struct shunt_conf conf; /* the origins' paths lie in it */
	struct shunt_conf_wrong wrong;

	shunt_conf_read(&conf, &asker);
	wrong = shunt_conf_load(&conf, config, &asker, origins);
	shunt_config_unknown(environ, warn, (void *)who);
	wrong.values += shunt_config_former(environ); /* what they ask for would not be done */
	shunt_config_contradictions(config, warn, (void *)who);
	shunt_config_settle(config);
	if (files)
		*files = &conf;
	return wrong;
}

/* The environment is the caller's own; a file's line keeps no program from starting. */
int shunt_variables_check(const char *who)
{
	struct shunt_config config;

	if (!shunt_variables_load(who, &config, NULL, NULL).values)
		return 0;
	fprintf(stderr, "%s: nothing was started: correct or unset the above\n", who);
	return -1;
}
