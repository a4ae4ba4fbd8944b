/* SPDX-License-Identifier: MIT */
/*
 * Facts from files: the rules themselves, the number of a user (/etc/passwd), the program of a process (/proc). Errors
 * are -errno. No library of the system is asked, because it would load others into the program.
 */
#ifndef SHUNT_CORE_QOS_FACTS_H
#define SHUNT_CORE_QOS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/qos/rules.h"

struct shunt_engine;

#define SHUNT_QOS_FILE_MAX 16384 /* of a file of rules */

/* The number of a user of /etc/passwd. False: no such user. */
bool shunt_facts_user(struct shunt_engine *engine, const char *name, uint32_t *uid);
/* All of a file of rules, as a string that is the caller's. NULL, and one line. */
char *shunt_facts_file(struct shunt_engine *engine, const char *path, char *error, size_t bytes);

/*
 * Rules from a text, or from the file that it names: then it begins with a slash. Users that are names are looked up.
 * 0, or -errno and one line.
 */
int shunt_facts_rules(struct shunt_engine *engine, const char *text, struct shunt_qos_rules *rules,
		      char *error, size_t bytes);
/*
 * Both names of the program of client->uid's process; "" where the kernel does not say. A process names itself as it
 * likes. Of another user's process only an installed executable counts: below /usr, /bin, /sbin or /opt, where only
 * root may change it.
 */
void shunt_facts_program(struct shunt_engine *engine, uint32_t pid,
			 struct shunt_qos_client *client);

#endif
