/* SPDX-License-Identifier: MIT */
/* Reading small files of the kernel: those of a process in /proc, and those below a root that may be another one. */
#ifndef SHUNT_TOOLS_PROC_H
#define SHUNT_TOOLS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* A file below /proc/PID. NULL, and errno. */
FILE *shunt_proc_open(pid_t pid, const char *name);
/* The first line that holds `text`, to be freed. NULL: errno says why it cannot be read, 0 that no line does. */
char *shunt_proc_line(pid_t pid, const char *name, const char *text);
/* The number behind "NAME:" in /proc/PID/status, in the base that it is written in, or -1. */
long long shunt_proc_status(pid_t pid, const char *name, int base);
/* The target of a link below /proc/PID. False, and "": it cannot be read. */
bool shunt_proc_link(pid_t pid, const char *name, char *target, size_t room);
/* Is the process in another namespace of this kind ("net") than this command? Unreadable: no. */
bool shunt_proc_is_apart(pid_t pid, const char *kind);
/* The name of its program (comm), or "?". Returns buf. */
const char *shunt_proc_name(pid_t pid, char *buf, size_t room);

/* The variables with which the process was started. A program that writes its title over them shows nothing. */
struct shunt_environment {
	char *text; /* "NAME=VALUE", each with its 0 */
	size_t len;
};
void shunt_environment_read(pid_t pid, struct shunt_environment *environment);
void shunt_environment_free(struct shunt_environment *environment);
/* A variable's value, or NULL; arg is the environment (config.h, `get`). */
const char *shunt_environment_get(const char *name, void *arg);
/* "NAME=VALUE" each, and NULL, to be freed: pointers into the environment's text. */
char **shunt_environment_list(const struct shunt_environment *environment);

/*
 * Reads a small file of a tree; `format` makes its path behind `root`. Its text without trailing
 * white space is in buf. The length, or -errno and "".
 */
ssize_t shunt_tree_read(const char *root, char *buf, size_t room, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The last component of a link's target there. The same results. */
ssize_t shunt_tree_link(const char *root, char *buf, size_t room, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
