/* SPDX-License-Identifier: MIT */
/*
 * Settings that are valid and probably not meant. Names that are no variables, and values of which one leaves another
 * without effect or is cut by it. For people; nothing is changed. Allocates nothing.
 */
#ifndef SHUNT_CORE_BASE_CONFIG_REVIEW_H
#define SHUNT_CORE_BASE_CONFIG_REVIEW_H

struct shunt_config;

/*
 * Names in `environment` that begin with SHUNT_ and are no variables, each with the closest variable, if any. For
 * each, complain() gets a line without a newline for each. How many.
 */
int shunt_config_unknown(char *const *environment, void (*complain)(const char *line, void *arg), void *arg);

/* How many of these names are words of SHUNT_TUNE, which were variables once. */
int shunt_config_former(char *const *environment);

/* The same of settings that contradict each other. A value that is the default does not contradict anything. */
int shunt_config_contradictions(const struct shunt_config *c, void (*complain)(const char *line, void *arg), void *arg);

#endif
