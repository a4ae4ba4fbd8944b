/* SPDX-License-Identifier: MIT */
#include "tools/common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *shunt_proc_open(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

char *shunt_proc_line(pid_t pid, const char *name, const char *text)
{
	FILE *file = shunt_proc_open(pid, name);
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	if (!file)
		return NULL;
	while (!found && getline(&line, &room, file) > 0)
		found = strstr(line, text) != NULL;
	fclose(file);
	if (found)
		return line;
	free(line);
	errno = 0;
	return NULL;
}

long long shunt_proc_status(pid_t pid, const char *name, int base)
{
	FILE *file = shunt_proc_open(pid, "status");
	size_t room = 0, length = strlen(name);
	long long value = -1;
	char *line = NULL;

	while (file && value < 0 && getline(&line, &room, file) > 0)
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtoll(line + length + 1, NULL, base);
	if (file)
		fclose(file);
	free(line);
	return value;
}

bool shunt_proc_link(pid_t pid, const char *name, char *target, size_t room)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	got = readlink(path, target, room - 1);
	target[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool shunt_proc_is_apart(pid_t pid, const char *kind)
{
	char name[16], ours[64], its[64];

	snprintf(name, sizeof(name), "ns/%s", kind);
	return shunt_proc_link(getpid(), name, ours, sizeof(ours)) &&
	       shunt_proc_link(pid, name, its, sizeof(its)) && strcmp(ours, its);
}

const char *shunt_proc_name(pid_t pid, char *buf, size_t room)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (shunt_tree_read(path, buf, room, "/comm") <= 0)
		snprintf(buf, room, "?");
	return buf;
}

/* ---- the environment ---- */

const char *shunt_environment_get(const char *name, void *arg)
{
	struct shunt_environment *environment = arg;
	size_t len = strlen(name);

	for (size_t at = 0; at < environment->len; at += strlen(environment->text + at) + 1) {
		const char *entry = environment->text + at;

		if (!strncmp(entry, name, len) && entry[len] == '=')
			return entry + len + 1;
	}
	return NULL;
}

void shunt_environment_read(pid_t pid, struct shunt_environment *environment)
{
	FILE *file = shunt_proc_open(pid, "environ");
	FILE *to = open_memstream(&environment->text, &environment->len);
	int c;

	while (file && to && (c = getc(file)) != EOF)
		putc(c, to);
	if (to)
		fclose(to);
	if (file)
		fclose(file);
}

void shunt_environment_free(struct shunt_environment *environment)
{
	free(environment->text);
	*environment = (struct shunt_environment) { 0 };
}

char **shunt_environment_list(const struct shunt_environment *environment)
{
	char **list = calloc(environment->len + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		abort();
	for (size_t at = 0; at < environment->len; at += strlen(environment->text + at) + 1)
		list[count++] = environment->text + at;
	return list;
}

/* ---- a tree ---- */

__attribute__((format(printf, 3, 0))) static int make_path(char path[PATH_MAX], const char *root,
							   const char *format, va_list args)
{
	int length = snprintf(path, PATH_MAX, "%s", root);

	if (length < PATH_MAX)
		length += vsnprintf(path + length, (size_t)(PATH_MAX - length), format, args);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

ssize_t shunt_tree_read(const char *root, char *buf, size_t room, const char *format, ...)
{
	char path[PATH_MAX];
	ssize_t got = 0;
	va_list args;
	int fd = -1;

	va_start(args, format);
	*buf = '\0';
	got = make_path(path, root, format, args);
	va_end(args);
	fd = got ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return got ? got : -errno;
	got = read(fd, buf, room - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	while (got > 0 && strchr(" \t\n", buf[got - 1]))
		got--;
	buf[got > 0 ? got : 0] = '\0';
	return got;
}

ssize_t shunt_tree_link(const char *root, char *buf, size_t room, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	va_list args;
	ssize_t got;

	va_start(args, format);
	*buf = '\0';
	got = make_path(path, root, format, args);
	va_end(args);
	if (!got)
		got = readlink(path, target, sizeof(target) - 1);
	if (got <= 0)
		return got ? -errno : -ENOENT;
	target[got] = '\0';
	slash = strrchr(target, '/');
	return snprintf(buf, room, "%s", slash ? slash + 1 : target);
}
