/* SPDX-License-Identifier: MIT */
/* The text of a configuration file. Every line that is taken is whole, printable and within its bounds. */
#include <string.h>
#include "core/base/conf_lines.h"
#include "tests/fuzz/fuzz.h"

static unsigned int last;

static void check_text(const char *text)
{
	size_t bytes = strlen(text);

	fuzz_check(bytes && bytes < SHUNT_CONF_LINE_MAX);
	for (size_t i = 0; i < bytes; i++)
		fuzz_check((unsigned char)text[i] >= ' ' ? text[i] != 0x7f : text[i] == '\t');
	fuzz_check(text[0] != ' ' && text[bytes - 1] != ' ');
}

static void take(const struct shunt_conf_line *line, void *arg)
{
	(void)arg;
	fuzz_check(line->number > last);
	last = line->number;
	check_text(line->value);
	if (line->name) {
		check_text(line->name);
		fuzz_check(!strncmp(line->name, "SHUNT_", 6));
	}
}

static void wrong(unsigned int number, const char *why, void *arg)
{
	(void)arg;
	fuzz_check(number > last && *why);
	last = number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct shunt_conf_reader reader = { take, wrong, NULL };

	last = 0;
	shunt_conf_lines((const char *)data, size, &reader);
	return 0;
}
