/* SPDX-License-Identifier: MIT */
/*
 * The statistics of a process as one JSON object. Clients of its statistics socket get it, if they
 * are of the same user; and so does a file at exit.
 */
#ifndef SHUNT_CORE_ADMIN_STATS_H
#define SHUNT_CORE_ADMIN_STATS_H

#include <stddef.h>
#include <stdint.h>

struct shunt_engine;
struct shunt_source;

char *shunt_stats_json(struct shunt_engine *engine, size_t *bytes);
void shunt_stats_write(struct shunt_engine *engine);
int shunt_stats_listen(struct shunt_engine *engine);
/* A reader has come: see loop.h. */
void shunt_stats_serve(struct shunt_source *source, uint32_t events);

#endif
