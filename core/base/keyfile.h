/* SPDX-License-Identifier: MIT */
/*
 * The key of SHUNT_KEY. The file is read once, and a key is derived from all its bytes. That key lies where no core
 * dump has it.
 */
#ifndef SHUNT_CORE_BASE_KEYFILE_H
#define SHUNT_CORE_BASE_KEYFILE_H

#include <stdint.h>

#define SHUNT_KEY_BYTES 32	/* of the derived key */
#define SHUNT_KEYFILE_MIN 16	/* bytes of the file */
#define SHUNT_KEYFILE_MAX 4096

/*
 * The key of the file, in memory that stays as long as the process; or NULL, and *why is a phrase.
 * The file must be regular, and no symbolic link. It is the effective user's, with no rights for
 * any other, or root's, which its group may read, too.
 */
const uint8_t *shunt_keyfile_read(const char *path, const char **why);

#endif
