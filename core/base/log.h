/* SPDX-License-Identifier: MIT */
/*
 * Messages for people: one line each, one write(2) each, nothing below the configured level. Safe
 * from any thread; allocates nothing; waits for nobody; leaves errno alone.
 *
 * Standard error is what descriptor 2 was when the process started. Nothing is written while it is something else,
 * or when it was a socket: bytes there belong to a peer of the program. Only systemd's socket to the journal, known by
 * JOURNAL_STREAM, is written to. A pipe or a file may be another program's, which takes each line for the program's own.
 * It gets messages only if somebody has asked for them. A terminal has a person before it.
 */
#ifndef SHUNT_CORE_BASE_LOG_H
#define SHUNT_CORE_BASE_LOG_H

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* In the order of the words of SHUNT_LOG. */
enum shunt_log_level {
	SHUNT_LOG_NONE,
	SHUNT_LOG_ERROR,
	SHUNT_LOG_WARN,
	SHUNT_LOG_INFO,
	SHUNT_LOG_DEBUG,
};

/* In the order of the words of SHUNT_LOG_FORMAT. */
enum shunt_log_format {
	SHUNT_LOG_TEXT,
	SHUNT_LOG_JSON,
};

struct shunt_tuple;

/* The stream that a message is about. */
struct shunt_log_about {
	int fd;		/* -1: the text names the connection itself */
	const struct shunt_tuple *tuple;	/* as this process sees it; NULL: not known */
	bool accepted;	/* text names the connecting end first, on both sides */
};

/* A line is cut to this with its newline, so that it stays one write of less than PIPE_BUF. */
#define SHUNT_LOG_LINE_MAX 1024

/* The calls to use, NULL for libc's: the preload library gives the real ones. */
struct shunt_log_calls {
	ssize_t (*write)(int fd, const void *buf, size_t len);
	int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
};

/*
 * Whether messages may go to standard error where that is neither a terminal nor the journal. True until this is called.
 */
void shunt_log_set_asked(bool asked);

/* Remembers what descriptor 2 is. Called when the process starts; again only by tests. */
void shunt_log_begin(void);

/*
 * level: what is written at all. path: file to append to, or "" or NULL for standard error; not copied. A %p in it is
 * the process id. calls: or NULL. Forgets how many messages there have been lately. Not to be called while another
 * thread logs.
 */
void shunt_log_setup(enum shunt_log_level level, const char *path, const struct shunt_log_calls *calls);

/* May be called at any time. */
void shunt_log_set_level(enum shunt_log_level level);
int shunt_log_wants(enum shunt_log_level level);
/* Text unless this says otherwise. Not to be called while another thread logs. */
void shunt_log_set_format(enum shunt_log_format wanted_format);

/*
 * "TIME shunt[pid]: level: text\n", or a JSON object (log_line.h). Messages with the same format
 * are of one kind. If too many of a kind come at once, some are left out, and the next one that is
 * written says how many. Messages of level debug are never left out.
 */
void shunt_log_write(enum shunt_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));
/* shunt_log_write() about a stream: "descriptor 7, A to B: text", and a member "stream" in JSON. */
void shunt_log_write_about(enum shunt_log_level level, const struct shunt_log_about *about,
			   const char *format, ...) __attribute__((format(printf, 3, 4), cold));
void shunt_log_vwrite_about(enum shunt_log_level level, const struct shunt_log_about *about,
			    const char *format, va_list args)
	__attribute__((format(printf, 3, 0), cold));

/* Arguments are not evaluated when the level is not wanted. */
#define shunt_log(level, ...)                                   \
	do {                                                    \
		if (shunt_log_wants(level))                     \
			shunt_log_write(level, __VA_ARGS__);    \
	} while (0)

#endif
