/* SPDX-License-Identifier: MIT */
/*
 * Where settings come from. The defaults are the ground; /etc/shunt.conf, the user's file and the environment lie on
 * it in this order, and what lies higher counts. SHUNT_CONF in the environment names another file in the place of
 * both, or none.
 *
 * Nothing here allocates memory or uses stdio streams (config.h). A process that changes its user in exec(2) has
 * neither environment nor files.
 */
#ifndef SHUNT_CORE_BASE_CONF_H
#define SHUNT_CORE_BASE_CONF_H

#include <stdbool.h>
#include "core/base/conf_file.h"
#include "core/base/conf_lines.h"
#include "core/base/config.h"

#define SHUNT_CONF_SYSTEM "/etc/shunt.conf"
#define SHUNT_CONF_FILES 2

struct shunt_conf_text {
	char path[SHUNT_CONFIG_PATH_MAX];
	const char *why; /* a phrase: it does not count; NULL: it does */
	size_t bytes;
	char text[SHUNT_CONF_BYTES];
};

struct shunt_conf {
	unsigned int count;
	struct shunt_conf_text file[SHUNT_CONF_FILES]; /* the lowest first; those that are there */
	bool missing; /* the file of SHUNT_CONF is not there */
};

/* The environment, as in config.h, and who hears of what is wrong with it or with a file; `complain` may be NULL. */
struct shunt_conf_asker {
	const char *(*get)(const char *name, void *arg);
	void *arg;
	void (*complain)(const char *line, void *arg);
	void *carg;
};

/* Reads the files that there are. */
void shunt_conf_read(struct shunt_conf *conf, const struct shunt_conf_asker *asker);

struct shunt_conf_origin {
	const char *path; /* NULL: no file */
	unsigned int line; /* of it */
	bool environment;
};

struct shunt_conf_wrong { /* how many do not count */
	int lines; /* of files, and whole files */
	int values; /* of the environment; and pairs that exclude each other */
};

/* Does one of the files set this variable? */
bool shunt_conf_has(const struct shunt_conf *conf, const char *name);
/* All layers. `origins`, of shunt_config_count places, may be NULL: where each variable was set. */
struct shunt_conf_wrong shunt_conf_load(const struct shunt_conf *conf, struct shunt_config *config,
					const struct shunt_conf_asker *asker,
					struct shunt_conf_origin *origins);

#endif
