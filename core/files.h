/* SPDX-License-Identifier: MIT */
/* The table of descriptors, for the engine's own use; api.h has what the libc boundary may ask. */
#ifndef SHUNT_CORE_FILES_H
#define SHUNT_CORE_FILES_H

#include <stdint.h>

struct shunt_engine;
struct shunt_stream;

/* The stream of a socket that is connected, or about to be, may be claimed from now on. role: enum shunt_role. */
void shunt_file_candidate(struct shunt_engine *engine, struct shunt_stream *stream, uint8_t role);

#endif
