/* SPDX-License-Identifier: MIT */
/*
 * A configuration file as the library reads it inside somebody else's process. Only the owner may
 * have written it, no name leads elsewhere, and nothing waits. Allocates nothing.
 */
#ifndef SHUNT_CORE_BASE_CONF_FILE_H
#define SHUNT_CORE_BASE_CONF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define SHUNT_CONF_BYTES 16384 /* of a file, at most */

enum shunt_conf_owner { /* whose the file must be */
			SHUNT_CONF_ROOT,
			SHUNT_CONF_USER, /* the effective user's */
			SHUNT_CONF_EITHER,
};

/*
 * The length of the text, all of it or none. -ENOENT: there is no file. Other -errno: it does not count, and *why is
 * a phrase.
 */
int shunt_conf_file_read(const char *path, enum shunt_conf_owner owner, char text[SHUNT_CONF_BYTES],
			 const char **why);

#endif
