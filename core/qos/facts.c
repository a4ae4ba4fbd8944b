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

	shunt_own_fds_begin(engine);
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
	shunt_own_fds_end(engine);
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

void shunt_facts_program(struct shunt_engine *engine, uint32_t pid, struct shunt_qos_client *client)
{
	char path[64], target[1024], *text;
	ssize_t length;

	client->command[0] = client->program[0] = 0;
	if (!pid)
		return;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	text = read_all(engine, path, SHUNT_QOS_PROGRAM - 1, false);
	if (text) {
		text[strcspn(text, "\n")] = 0;
		snprintf(client->command, sizeof(client->command), "%s", text);
		printable(client->command);
	}
	free(text);
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	length = engine->sys->readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = 0;
	text = strrchr(target, '/');
	if (text && strlen(text + 1) < sizeof(client->program))
		memcpy(client->program, text + 1, strlen(text + 1) + 1);
}
