/* SPDX-License-Identifier: MIT */
#include "core/qos/facts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"

#define PASSWD_MAX (1u << 20) /* bytes of /etc/passwd that are looked at */

/* All of a file, as a string that is the caller's. NULL: errno says why; EFBIG: it is longer than `most`. */
static char *read_all(struct shunt_engine *engine, const char *path, size_t most, bool regular)
{
	char *text = malloc(most + 1);
	struct stat about;
	ssize_t got = 0;
	size_t bytes = 0;
	int fd = -1, error = text ? 0 : ENOMEM;

	shunt_own_fds_begin(&engine->fds);
	if (!error && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0)
		error = errno;
	if (!error && regular && (fstat(fd, &about) || !S_ISREG(about.st_mode)))
		error = EINVAL;
	while (!error && bytes <= most && (got = read(fd, text + bytes, most + 1 - bytes)) > 0)
		bytes += (size_t)got;
	if (!error && got < 0)
		error = errno;
	if (!error && bytes > most)
		error = EFBIG;
	if (fd >= 0)
		engine->sys->close(fd);
	shunt_own_fds_end(&engine->fds);
	if (!error) {
		text[bytes] = 0;
		return text;
	}
	free(text);
	errno = error;
	return NULL;
}

/* passwd(5): NAME:PASSWORD:UID:… */
static bool find_user(const char *line, const char *name, uint32_t *uid)
{
	size_t length = strlen(name);

	for (; line; line = strchr(line, '\n'), line += line != NULL) {
		const char *number = strncmp(line, name, length) || line[length] != ':' ?
					     NULL :
					     strchr(line + length + 1, ':');
		char *end;
		unsigned long n = number ? strtoul(number + 1, &end, 10) : 0;

		if (!number || end == number + 1 || *end != ':' || n >= UINT32_MAX)
			continue;
		*uid = (uint32_t)n;
		return true;
	}
	return false;
}

bool shunt_facts_user(struct shunt_engine *engine, const char *name, uint32_t *uid)
{
	char *passwd = read_all(engine, "/etc/passwd", PASSWD_MAX, true);
	bool found = passwd && find_user(passwd, name, uid);

	free(passwd);
	return found;
}

static int find_users(struct shunt_engine *engine, struct shunt_qos_rules *rules,
		      const char *source, char *error, size_t bytes)
{
	int result = 0;

	for (uint32_t i = 0; i < rules->count && !result; i++) {
		struct shunt_qos_class *class = &rules->classes[i];

		if (!(class->by & SHUNT_QOS_BY_USER) || !class->user[0])
			continue;
		if (!shunt_facts_user(engine, class->user, &class->uid)) {
			snprintf(
				error, bytes,
				"%s: class %s: user %s is not in /etc/passwd: its number is allowed",
				source, class->name, class->user);
			result = -ENOENT;
		}
		class->user[0] = 0;
	}
	return result;
}

/* A message has printable ASCII alone. */
static void printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

char *shunt_facts_file(struct shunt_engine *engine, const char *path, char *error, size_t bytes)
{
	char *file = read_all(engine, path, SHUNT_QOS_FILE_MAX, true);

	if (!file)
		snprintf(error, bytes, "%s: %s", path,
			 errno == EFBIG	 ? "longer than 16 KiB" :
			 errno == EINVAL ? "no regular file" :
					   strerror(errno));
	return file;
}

int shunt_facts_rules(struct shunt_engine *engine, const char *text, struct shunt_qos_rules *rules,
		      char *error, size_t bytes)
{
	const char *source = text[0] == '/' ? text : "rules";
	char *file = NULL;
	int result;

	if (text[0] == '/') {
		file = shunt_facts_file(engine, text, error, bytes);
		if (!file)
			return -ENOENT;
	}
	result = shunt_qos_parse(file ? file : text, source, rules, error, bytes);
	free(file);
	return result ? result : find_users(engine, rules, source, error, bytes);
}

static void find_command(struct shunt_engine *engine, uint32_t pid, struct shunt_qos_client *client)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	text = read_all(engine, path, SHUNT_QOS_PROGRAM - 1, false);
	if (text) {
		text[strcspn(text, "\n")] = 0;
		snprintf(client->command, sizeof(client->command), "%s", text);
		printable(client->command);
	}
	free(text);
}

/* By what the kernel knows of the file already: its file system may be another user's (FUSE), and never answer. */
static bool look_at(const char *path, struct statx *about)
{
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
		      about);
}

/*
 * In a mount namespace of its own a process gives its file any path. So the same file must be there in ours, where other
 * users mount nothing in these folders.
 */
static bool is_installed(const char *exe, const char *target)
{
	static const char *const folders[] = { "/usr/", "/bin/", "/sbin/", "/opt/" };
	struct statx running, installed;
	bool known = false;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		known |= !strncmp(target, folders[i], strlen(folders[i]));
	return known && look_at(exe, &running) && look_at(target, &installed) &&
	       running.stx_ino == installed.stx_ino &&
	       running.stx_dev_major == installed.stx_dev_major &&
	       running.stx_dev_minor == installed.stx_dev_minor && !installed.stx_uid &&
	       !(installed.stx_mode & (S_IWGRP | S_IWOTH));
}

void shunt_facts_program(struct shunt_engine *engine, uint32_t pid, struct shunt_qos_client *client)
{
	bool equal = client->uid == geteuid() || !client->uid;
	char path[64], target[1024], *name;
	ssize_t length;

	client->command[0] = client->program[0] = 0;
	if (!pid)
		return;
	if (equal)
		find_command(engine, pid, client);
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	length = engine->sys->readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = 0;
	name = strrchr(target, '/');
	if (name && strlen(name + 1) < sizeof(client->program) &&
	    (equal || is_installed(path, target)))
		memcpy(client->program, name + 1, strlen(name + 1) + 1);
}
