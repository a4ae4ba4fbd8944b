/* SPDX-License-Identifier: MIT */
/*
 * Units of systemd, from their files (systemd.unit(5)): nothing is asked of a manager, so it works in a folder of an image,
 * too. A unit is the settings of its section Service, those of drop-ins behind them.
 */
#ifndef SHUNT_TOOLS_SERVICE_UNIT_FILE_H
#define SHUNT_TOOLS_SERVICE_UNIT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SHUNT_DROP_IN "shunt.conf" /* the name of ours, in the unit's folder */

struct shunt_unit_setting {
	char *key, *value;
};

struct shunt_unit {
	char name[NAME_MAX + 1];	/* with .service; an alias has the name of what it stands for */
	char path[PATH_MAX];
	struct shunt_unit_setting *settings;
	size_t count;
};

/*
 * Reads the unit of that name, with or without ".service", below the folder `root` ("" for this machine's). SHUNT_DROP_IN is
 * left out. 0, or -errno: -ENOENT if it is missing, -EINVAL if the name is not a service's, -ENOTSUP if it is masked.
 * The caller frees it in each case.
 */
int shunt_unit_read(const char *root, const char *name, struct shunt_unit *unit);
void shunt_unit_free(struct shunt_unit *unit);

/* The last value of a key, or NULL if the key is missing. */
const char *shunt_unit_value(const struct shunt_unit *unit, const char *key);
bool shunt_unit_is_true(const struct shunt_unit *unit, const char *key);
/*
 * Calls take() for each word of each value of a key, quotes removed, from the last empty value on, which clears those before.
 * False: it has ended that by returning false.
 */
bool shunt_unit_words(const struct shunt_unit *unit, const char *key,
		      bool (*take)(const char *word, void *arg), void *arg);

#endif
