/* shunt stat: fetching statistics (stat_fetch.c) and showing them (stat_show.c). */
#ifndef SHUNT_TOOLS_STAT_H
#define SHUNT_TOOLS_STAT_H

#include <jansson.h>
#include <sys/types.h>

/* Longest `why` that shunt_stat_fetch() writes. */
#define SHUNT_STAT_WHY_MAX 256

/*
 * The processes of this network namespace that offer statistics, in ascending order. Returns their
 * number, *pids to be freed; or -1 after saying why.
 */
ssize_t shunt_stat_list(pid_t **pids);

/* One process' statistics; NULL and the reason in `why` if there are none to be had. */
json_t *shunt_stat_fetch(pid_t pid, char why[SHUNT_STAT_WHY_MAX]);

void shunt_stat_show(const json_t *process);

#endif
