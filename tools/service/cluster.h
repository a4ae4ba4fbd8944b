/* SPDX-License-Identifier: MIT */
/*
 * Clusters of PostgreSQL, as Debian has them. pg_ctlcluster gives the server the variables of the cluster's own file
 * (/etc/postgresql/VERSION/CLUSTER/environment) and no others, so a drop-in has no effect.
 */
#ifndef SHUNT_TOOLS_SERVICE_CLUSTER_H
#define SHUNT_TOOLS_SERVICE_CLUSTER_H

#include <glob.h>
#include <stdio.h>
#include "tools/service/unit_file.h"

/* Is it a unit of such a cluster? */
bool shunt_cluster_is(const struct shunt_unit *unit);
/* The exit status. Errors are said on standard error. */
int shunt_cluster_enable(const char *root, const char *unit, const char *library);
int shunt_cluster_disable(const char *root, const char *unit);
void shunt_cluster_show(FILE *out, const char *library);
/* Adds the files of all clusters to what was found. */
void shunt_cluster_find(const char *root, glob_t *found);
/* Finds the unit of a cluster's file: empty if the file lacks our line. Returns false for other paths. */
bool shunt_cluster_unit(const char *path, char name[NAME_MAX + 1]);

#endif
