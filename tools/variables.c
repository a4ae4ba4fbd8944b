/* The variables SHUNT_* of our own environment, for the commands that start programs. */
#include "tools/shunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"

static const char *get_variable(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static void complain(const char *line, void *arg)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, line);
}

int shunt_variables_load(const char *who, struct shunt_config *config)
{
	return shunt_config_load(config, get_variable, NULL, complain, (void *)who);
}

static void warn_unknown(const char *who)
{
	for (char **variable = environ; *variable; variable++) {
		char name[64];

		if (strncmp(*variable, "SHUNT_", 6))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variable, "="), *variable);
		if (!shunt_config_known(name))
			fprintf(stderr, "%s: warning: there is no variable %s; `shunt config` lists "
					"them\n", who, name);
	}
}

int shunt_variables_check(const char *who)
{
	struct shunt_config config;

	warn_unknown(who);
	if (!shunt_variables_load(who, &config))
		return 0;
	fprintf(stderr, "%s: nothing was started: correct or unset the above\n", who);
	return -1;
}
