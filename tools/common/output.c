/* SPDX-License-Identifier: MIT */
/* Output of the command: nothing that moves a cursor, and an error where it does not arrive. */
#include "tools/common/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shunt.h"

/* ---- escaping ---- */

/* The length of a byte as it is shown, and the byte in `cell`. */
static size_t escape(unsigned char byte, char cell[8])
{
	if (byte >= ' ' && byte <= '~' && byte != '\\') {
		cell[0] = (char)byte;
		return 1;
	}
	return (size_t)snprintf(cell, 8, byte == '\\' ? "\\\\" : "\\x%02x", byte);
}

const char *shunt_escape(const char *text, char *buf, size_t room)
{
	size_t length = 0, cut = 0;	/* cut: where "..." has room */
	char cell[8];

	for (; *text; text++) {
		size_t n = escape((unsigned char)*text, cell);

		if (length + n >= room) {
			snprintf(buf + cut, room - cut, "...");
			return buf;
		}
		memcpy(buf + length, cell, n);
		length += n;
		if (length + 3 < room)
			cut = length;
	}
	buf[length] = '\0';
	return buf;
}

void shunt_print_escaped(FILE *file, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		char cell[8] = { '\n' };
		size_t n = text[i] == '\n' ? 1 : escape((unsigned char)text[i], cell);

		fwrite(cell, 1, n, file);
	}
}

const char *shunt_member_text(const json_t *object, const char *key, char *buf, size_t room)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (!json_is_integer(value))
		return shunt_escape(text ? text : "", buf, room);
	snprintf(buf, room, "%lld", (long long)json_integer_value(value));
	return buf;
}

/* jansson leaves DEL as it is; outside of strings there is none. */
static int put_json(const char *text, size_t length, void *file)
{
	for (size_t i = 0; i < length; i++)
		if ((text[i] == 0x7f ? fputs("\\u007f", file) : putc(text[i], file)) == EOF)
			return -1;
	return 0;
}

int shunt_print_json(FILE *file, const json_t *root, size_t flags)
{
	int failed = json_dump_callback(root, put_json, file, flags | JSON_ENSURE_ASCII);

	return putc('\n', file) == EOF || failed ? -1 : 0;
}

/* ---- wrapping ---- */

void shunt_print_wrapped(int indent, int column, const char *text)
{
	while (*text) {
		int room = SHUNT_COLUMNS - column, length = (int)strlen(text);

		if (length > room) {
			for (length = room; length > 0 && text[length] != ' '; length--)
				;
			if (!length)
				length = room;	/* a word that is longer than a line */
		}
		printf("%.*s\n", length, text);
		text += length;
		text += strspn(text, " ");
		column = indent;
		if (*text)
			printf("%*s", indent, "");
	}
}

/* ---- reasons ---- */

const char *shunt_reason_said(const json_t *stream, char *buf, size_t room)
{
	const char *reason = json_string_value(json_object_get(stream, "reason"));
	const char *detail = json_string_value(json_object_get(stream, "detail"));

	snprintf(buf, room, "%s%s%s", reason ? reason : "", detail && *detail ? ": " : "",
		 detail ? detail : "");
	return buf;
}

/* ---- the end ---- */

/* Also of what libc has buffered, and of what a file system says only when a file is closed. */
static void close_output(void)
{
	int failed = ferror(stdout), pending = !failed && fflush(stdout);

	if (pending)
		failed = 1;
	/* Not open at all is no error where there was nothing to say. */
	if (fclose(stdout) && errno != EBADF)
		failed = 1;
	if (!failed)
		return;
	fprintf(stderr, "shunt: the output could not be written%s%s\n", errno ? ": " : "", errno ? strerror(errno) : "");
	_exit(EXIT_FAILED);
}

void shunt_output_begin(void)
{
	if (atexit(close_output))
		abort();
}
