/* SPDX-License-Identifier: MIT */
#include "core/base/log_line.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/base/program.h"
#include "shunt/wire.h"

#define DAY 86400
#define PROGRAM_MAX 64	/* bytes of the program's name that are shown */

static const char *const names[] = { "none", "error", "warn", "info", "debug" };

/* --- time --- */

/* Day 0 is 1970-01-01. Years begin in March here, so that a leap day is the last of its year. */
static void write_date(int64_t days, int64_t *year, int *month, int *day)
{
	int64_t since = days + 719468, era = since / 146097;	/* days since 0000-03-01 */
	int64_t of_era = since - era * 146097;
	int64_t of_years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * of_years + of_years / 4 - of_years / 100);
	int64_t from_march = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
	*month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
	*year = era * 400 + of_years + (*month <= 2);
}

void shunt_log_time(const struct timespec *time, char text[SHUNT_LOG_TIME_ROOM])
{
	int64_t seconds = time->tv_sec < 0 ? 0 : time->tv_sec, year;
	int of_day = (int)(seconds % DAY), month, day;

	write_date(seconds / DAY, &year, &month, &day);
	snprintf(text, SHUNT_LOG_TIME_ROOM, "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ",
		 (int)(year % 10000), month, day, of_day / 3600, of_day / 60 % 60, of_day % 60,
		 (unsigned int)(time->tv_nsec / 1000 % 1000000));
}

/* --- parts --- */

struct out {
	char *line;
	size_t length, room;	/* a part that has no room is cut off */
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...)
{
	size_t left = out->room - out->length;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out->line + out->length, left, format, args);
	va_end(args);
	if (n > 0)
		out->length += (size_t)n < left ? (size_t)n : left - 1;
}

/* Text that came with a message may be a peer's: it must not start lines or move the cursor. */
static char printable(char c)
{
	return c < ' ' || c > '~' ? '?' : c;
}

/* At most `most` bytes of it, no escape cut in two. */
static void put_escaped(struct out *out, const char *text, size_t most)
{
	for (; *text && most; text++, most--) {
		char c = printable(*text);
		bool escaped = c == '"' || c == '\\';

		if (out->room - out->length <= 1u + escaped)
			return;
		if (escaped)
			out->line[out->length++] = '\\';
		out->line[out->length++] = c;
	}
}

struct ends {
	char local[SHUNT_ADDRESS_ROOM], peer[SHUNT_ADDRESS_ROOM];
};

static void write_ends(struct ends *ends, const struct shunt_tuple *tuple)
{
	shunt_address_text(tuple->local, tuple->local_port, ends->local);
	shunt_address_text(tuple->peer, tuple->peer_port, ends->peer);
}

/* --- text --- */

static void put_about(struct out *out, const struct shunt_log_about *about)
{
	struct ends ends;

	put(out, "descriptor %d", about->fd);
	if (about->tuple) {
		write_ends(&ends, about->tuple);
		put(out, ", %s to %s", about->accepted ? ends.peer : ends.local,
		    about->accepted ? ends.local : ends.peer);
	}
	put(out, ": ");
}

static void put_text_line(struct out *out, const struct shunt_log_line *line)
{
	char time[SHUNT_LOG_TIME_ROOM];

	if (line->timed) {
		shunt_log_time(&line->time, time);
		put(out, "%s ", time);
	}
	put(out, "shunt[%d]: %s: ", (int)getpid(), names[line->level]);
	if (line->left_out)
		put(out, "(after %u like it that were not written) ", line->left_out);
	if (line->about && line->about->fd >= 0)
		put_about(out, line->about);
	put(out, "%s", line->text);
	for (size_t i = 0; i < out->length; i++)
		out->line[i] = printable(out->line[i]);
}

/* --- JSON --- */

static void put_stream(struct out *out, const struct shunt_log_about *about)
{
	struct ends ends;

	put(out, "\"stream\":{");
	if (about->fd >= 0)
		put(out, "\"fd\":%d%s", about->fd, about->tuple ? "," : "");
	if (about->tuple) {
		write_ends(&ends, about->tuple);
		put(out, "\"local\":\"%s\",\"peer\":\"%s\"", ends.local, ends.peer);
	}
	put(out, "},");
}

/* All parts before the text have room, whatever they hold. */
static void put_json_line(struct out *out, const struct shunt_log_line *line)
{
	char time[SHUNT_LOG_TIME_ROOM];

	shunt_log_time(&line->time, time);
	put(out, "{\"time\":\"%s\",\"pid\":%d,\"program\":\"", time, (int)getpid());
	put_escaped(out, shunt_program_name(), PROGRAM_MAX);
	put(out, "\",\"level\":\"%s\",", names[line->level]);
	if (line->left_out)
		put(out, "\"left_out\":%u,", line->left_out);
	if (line->about)
		put_stream(out, line->about);
	put(out, "\"text\":\"");
	out->room -= 2;
	put_escaped(out, line->text, SIZE_MAX);
	out->room += 2;
	put(out, "\"}");
}

size_t shunt_log_line(enum shunt_log_format format, const struct shunt_log_line *line,
		      char text[SHUNT_LOG_LINE_MAX])
{
	struct out out = { .line = text, .room = SHUNT_LOG_LINE_MAX };

	if (format == SHUNT_LOG_JSON)
		put_json_line(&out, line);
	else
		put_text_line(&out, line);
	text[out.length] = '\n';	/* in the place of the final 0 */
	return out.length + 1;
}
