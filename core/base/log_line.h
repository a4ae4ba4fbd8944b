/* SPDX-License-Identifier: MIT */
/*
 * One line of the log, as text or as JSON. Allocates nothing, asks no time zone and takes no lock, so
 * a signal handler may use it.
 */
#ifndef SHUNT_CORE_BASE_LOG_LINE_H
#define SHUNT_CORE_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include "core/base/log.h"

#define SHUNT_LOG_TIME_ROOM 48	/* "2026-11-25T20:15:01.123456Z" with its 0, whatever the clock says */

struct shunt_log_line {
	enum shunt_log_level level;
	struct timespec time;		/* of CLOCK_REALTIME */
	bool timed;			/* text has the time */
	unsigned int left_out;		/* messages like it that were not written */
	const struct shunt_log_about *about;	/* NULL: no stream */
	const char *text;
};

/* UTC, to the microsecond (ISO 8601). Years from 0 to 9999. */
void shunt_log_time(const struct timespec *time, char text[SHUNT_LOG_TIME_ROOM]);
/*
 * The line with its newline and no 0. Its length, at most SHUNT_LOG_LINE_MAX: of a longer text the
 * end is cut off, and JSON is valid all the same.
 */
size_t shunt_log_line(enum shunt_log_format format, const struct shunt_log_line *line,
		      char out[SHUNT_LOG_LINE_MAX]);

#endif
