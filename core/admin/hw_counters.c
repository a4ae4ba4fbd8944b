/* SPDX-License-Identifier: MIT */
#include "core/admin/hw_counters.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH 256

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* A component of a path that leads nowhere else. */
static bool is_device(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= SHUNT_HW_NAME || name[0] == '.')
		return false;
	while (is_word(*name) || *name == '-' || *name == '.')
		name++;
	return !*name;
}

static bool is_counter(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= SHUNT_HW_NAME || !strcmp(name, "lifespan"))	/* ms, and no count of anything */
		return false;
	while (is_word(*name))
		name++;
	return !*name;
}

/* The text of a regular file, without the newline at its end. False: none, or it is as long as `room`. */
static bool read_text(int dir, const char *name, char *text, size_t room)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t got = -1;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		got = read(fd, text, room);
	close(fd);
	if (got <= 0 || (size_t)got >= room || memchr(text, '\0', (size_t)got))
		return false;
	text[text[got - 1] == '\n' ? got - 1 : got] = '\0';
	return true;
}

/* Digits alone, and no more than 64 bits. */
static bool read_number(int dir, const char *name, uint64_t *value)
{
	char text[32];
	uint64_t sum = 0;

	if (!read_text(dir, name, text, sizeof(text)) || !*text)
		return false;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*c - '0'), &sum))
			return false;
	}
	*value = sum;
	return true;
}

/* "4: ACTIVE" is ACTIVE; what is not a name is nothing. */
static void read_word(int dir, const char *name, char word[SHUNT_HW_NAME])
{
	char text[SHUNT_HW_NAME], *from = text, *colon;

	word[0] = '\0';
	if (!read_text(dir, name, text, sizeof(text)))
		return;
	colon = strchr(text, ':');
	if (colon)
		from = colon + 1 + strspn(colon + 1, " ");
	for (const char *c = from; *c; c++)
		if (!is_word(*c) && *c != ' ' && *c != '-')
			return;
	memmove(word, from, strlen(from) + 1);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct shunt_hw_counter *)a)->name,
		      ((const struct shunt_hw_counter *)b)->name);
}

/* The descriptor is the list's, which closes it. */
static void read_counters(int fd, struct shunt_hw_port *port)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	for (int i = 0;
	     i < SHUNT_HW_ENTRIES && port->count < SHUNT_HW_MAX && (entry = readdir(dir)) != NULL;
	     i++) {
		struct shunt_hw_counter *counter = &port->counters[port->count];

		if (!is_counter(entry->d_name) || !read_number(fd, entry->d_name, &counter->value))
			continue;
		memcpy(counter->name, entry->d_name, strlen(entry->d_name) + 1);
		port->count++;
	}
	closedir(dir);
	qsort(port->counters, port->count, sizeof(port->counters[0]), by_name);
}

int shunt_hw_counters_read(const char *root, const char *device, uint32_t number,
			   struct shunt_hw_port *port)
{
	char path[PATH];
	int dir, counters, length;

	memset(port, 0, sizeof(*port));
	if (!is_device(device))
		return -EINVAL;
	length = snprintf(path, sizeof(path), "%s/%s/ports/%u", root, device, number);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	read_word(dir, "state", port->state);
	read_word(dir, "link_layer", port->link_layer);
	counters = openat(dir, "hw_counters", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (counters >= 0)
		read_counters(counters, port);
	close(dir);
	return 0;
}
