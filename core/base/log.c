/* SPDX-License-Identifier: MIT */
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/config.h"
#include "core/base/kernel_clock.h"
#include "core/base/log_line.h"
#include "core/base/outfile.h"
#include "core/base/write_nosig.h"

/*
 * One log a process, whatever the number of engines, so these are the file's own. Set before there
 * are threads; the level may change later, and then nobody minds a message more or less.
 */
static enum shunt_log_level wanted = SHUNT_LOG_WARN;
static struct shunt_log_calls call = { write, poll };
static char file[2 * SHUNT_CONFIG_PATH_MAX];
static enum shunt_log_format format;	/* of standard error and of the file */
static int file_failed;	/* it has been said that messages go to standard error instead */

/* --- standard error --- */

static struct {
	dev_t device;
	ino_t inode;
	mode_t type;	/* 0: there was none, or a socket of the program's */
	bool shown; /* to a person: a terminal, or the journal */
} standard_error;
static _Atomic bool asked = true; /* somebody wants messages in a pipe or a file, too */
static int begun;

/* systemd(1) names the socket to its journal, so that a service can tell it from a client's (systemd.exec(5)). */
static int is_journal(const struct stat *st)
{
	const char *named = getenv("JOURNAL_STREAM");
	char text[64];

	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
	return named && !strcmp(named, text);
}

__attribute__((constructor)) void shunt_log_begin(void)
{
	int saved = errno;
	struct stat st;

	begun = 1;
	standard_error.type = 0;
	if (!fstat(STDERR_FILENO, &st) && (!S_ISSOCK(st.st_mode) || is_journal(&st))) {
		standard_error.device = st.st_dev;
		standard_error.inode = st.st_ino;
		standard_error.type = st.st_mode & S_IFMT;
		standard_error.shown = S_ISSOCK(st.st_mode) || isatty(STDERR_FILENO);
	}
	errno = saved;
}

/* Also with room for a line: the writer may hold any lock, and must not wait for a reader. */
static int have_standard_error(void)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct stat st;

	return standard_error.type && (asked || standard_error.shown) &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == standard_error.device &&
	       st.st_ino == standard_error.inode && (st.st_mode & S_IFMT) == standard_error.type &&
	       call.poll(&room, 1, 0) == 1 && room.revents & POLLOUT;
}

/* --- how many --- */

/*
 * A kind of message is a format. Each has a token bucket, kept as the time at which it would be full again. Two formats
 * may share one, by chance.
 */
#define KINDS 64

static struct {
	_Atomic uint64_t full_at;	/* CLOCK_MONOTONIC, ns */
	_Atomic unsigned int left_out;	/* since the last that was written */
} kinds[KINDS];

static const struct {
	uint64_t burst, interval_ns;	/* so many at once, then one each interval; burst 0: no limit */
} limits[] = {
	[SHUNT_LOG_ERROR] = { 64, 5000000000 },
	[SHUNT_LOG_WARN] = { 64, 5000000000 },
	[SHUNT_LOG_INFO] = { 1024, 10000000 },
	[SHUNT_LOG_DEBUG] = { 0, 0 },
};

static unsigned int kind_of(const char *message)
{
	return (unsigned int)(((uintptr_t)message * 0x9e3779b97f4a7c15) >> 58) % KINDS;
}

/* Whether a message may be written; *left_out is how many of its kind were not. */
static int may_write(enum shunt_log_level level, const char *message, unsigned int *left_out)
{
	unsigned int kind = kind_of(message);
	uint64_t full_at, then, time;

	*left_out = 0;
	if (!limits[level].burst)
		return 1;
	time = shunt_kernel_clock_now();
	full_at = kinds[kind].full_at;
	do {
		then = (full_at > time ? full_at : time) + limits[level].interval_ns;
		if (then - time > limits[level].burst * limits[level].interval_ns) {
			kinds[kind].left_out++;
			return 0;
		}
	} while (!atomic_compare_exchange_strong(&kinds[kind].full_at, &full_at, then));
	*left_out = atomic_exchange(&kinds[kind].left_out, 0);
	return 1;
}

/* --- setup --- */

/* An absolute path, so that the file stays the same one when the program changes its directory. */
static void set_file(const char *path)
{
	size_t len = 0;

	if (*path != '/' && getcwd(file, sizeof(file) - 1)) {
		len = strlen(file);
		file[len++] = '/';
	}
	if (snprintf(file + len, sizeof(file) - len, "%s", path) >= (int)(sizeof(file) - len))
		file[0] = '\0';
}

void shunt_log_setup(enum shunt_log_level level, const char *path, const struct shunt_log_calls *calls)
{
	int saved = errno;

	if (!begun)	/* another library's constructor came first */
		shunt_log_begin();
	file[0] = '\0';
	file_failed = 0;
	if (path && *path)
		set_file(path);
	memset(kinds, 0, sizeof(kinds));
	call.write = calls && calls->write ? calls->write : write;
	call.poll = calls && calls->poll ? calls->poll : poll;
	shunt_log_set_level(level);
	errno = saved;
}

void shunt_log_set_asked(bool now_asked)
{
	asked = now_asked;
}

void shunt_log_set_format(enum shunt_log_format wanted_format)
{
	format = wanted_format;
}

void shunt_log_set_level(enum shunt_log_level level)
{
	__atomic_store_n(&wanted, level, __ATOMIC_RELAXED);
}

int shunt_log_wants(enum shunt_log_level level)
{
	return level != SHUNT_LOG_NONE && level <= __atomic_load_n(&wanted, __ATOMIC_RELAXED);
}

/* --- writing --- */

/* The journal has times of its own, so text there has none. */
static enum shunt_log_format format_of(struct shunt_log_line *line, bool to_file)
{
	shunt_kernel_clock(CLOCK_REALTIME, &line->time);
	line->timed = to_file || standard_error.type != S_IFSOCK;
	return format;
}

/* A line that cannot be written is lost: there is nobody to tell. */
static void write_to_standard_error(const char *line, size_t len)
{
	if (have_standard_error())
		shunt_write_nosig(call.write, STDERR_FILENO, line, len);
}

static void log_say_why(const char *path, const char *why)
{
	struct shunt_log_line said = { .level = SHUNT_LOG_WARN };
	char line[SHUNT_LOG_LINE_MAX], text[SHUNT_LOG_LINE_MAX];

	if (__atomic_exchange_n(&file_failed, 1, __ATOMIC_RELAXED))
		return;
	snprintf(text, sizeof(text), "messages go to standard error, not to %.800s: %s", path, why);
	said.text = text;
	write_to_standard_error(line, shunt_log_line(format_of(&said, false), &said, line));
}

/*
 * The file is opened for each message, because messages are rare. A descriptor kept open could be
 * closed or reused by the program, and would hinder rotation of the log.
 */
static int open_file(void)
{
	char path[sizeof(file) + 16];
	const char *why;
	int fd;

	if (!file[0] || !shunt_config_path_text(file, path, sizeof(path)))
		return -1;
	fd = shunt_outfile_append(path, &why);
	if (fd < 0)
		log_say_why(path, why);
	return fd;
}

static void write_line(struct shunt_log_line *said)
{
	int state;
	char line[SHUNT_LOG_LINE_MAX];
	size_t len;
	int fd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);	/* any lock may be held */
	fd = open_file();
	len = shunt_log_line(format_of(said, fd >= 0), said, line);
	if (fd >= 0) {
		shunt_write_nosig(call.write, fd, line, len);
		close(fd);
	} else {
		write_to_standard_error(line, len);
	}
	pthread_setcancelstate(state, NULL);
}

void shunt_log_vwrite_about(enum shunt_log_level level, const struct shunt_log_about *about,
			    const char *message, va_list args)
{
	struct shunt_log_line line = { .level = level, .about = about };
	char text[SHUNT_LOG_LINE_MAX];
	int saved = errno;

	if (shunt_log_wants(level) && may_write(level, message, &line.left_out)) {
		errno = saved;	/* for %m */
		if (vsnprintf(text, sizeof(text), message, args) < 0)
			text[0] = '\0';
		line.text = text;
		write_line(&line);
	}
	errno = saved;
}

void shunt_log_write_about(enum shunt_log_level level, const struct shunt_log_about *about,
			   const char *message, ...)
{
	va_list args;

	va_start(args, message);
	shunt_log_vwrite_about(level, about, message, args);
	va_end(args);
}

void shunt_log_write(enum shunt_log_level level, const char *message, ...)
{
	va_list args;

	va_start(args, message);
	shunt_log_vwrite_about(level, NULL, message, args);
	va_end(args);
}
