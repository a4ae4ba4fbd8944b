/* SPDX-License-Identifier: MIT */
/*
 * The environment: some of the variables have any text as their value, and SHUNT_TUNE perhaps words. Input: rows and
 * values, each ended by a 0.
 */
#include "core/base/config.h"
#include "core/base/config_review.h"
#include "tests/fuzz/fuzz.h"

#define ROWS 128

static struct given {
	const char *value[ROWS];
	int complaints;
	unsigned int asked;	/* rows, which is done in order */
} given;

static const char *get(const char *name, void *arg)
{
	(void)arg;
	fuzz_check(name == shunt_config_rows[given.asked].name);
	return given.value[given.asked++];
}

/* Rows behind them are words of SHUNT_TUNE. */
static size_t variables(void)
{
	size_t count = 0;

	while (count < shunt_config_count && !shunt_config_is_word(&shunt_config_rows[count]))
		count++;
	return count;
}

static int load(struct shunt_config *c, void (*complain)(const char *line, void *arg))
{
	given.asked = 0;
	return shunt_config_load(c, get, NULL, complain, NULL);
}

/* One short printable line. */
static void complain(const char *line, void *arg)
{
	(void)arg;
	given.complaints++;
	fuzz_check(strlen(line) < SHUNT_CONFIG_LINE_MAX);
	for (; *line; line++)
		fuzz_check(*line >= ' ' && *line <= '~');
}

static bool is_text(const struct shunt_config_row *row)
{
	return row->type == SHUNT_CONFIG_PATH || row->type == SHUNT_CONFIG_FORM;
}

static uint64_t number_of(const struct shunt_config_row *row, const struct shunt_config *c)
{
	return *(const uint64_t *)((const char *)c + row->offset);
}

/* The last one's number. */
static uint64_t words_of(const struct shunt_config_row *row)
{
	uint64_t count = 0;

	for (const char *at = row->words; *at; at++)
		count += *at == '|';
	return count;
}

static void check_row(const struct shunt_config_row *row, const struct shunt_config *c)
{
	const char *text = (const char *)c + row->offset;
	char why[64];

	switch (row->type) {
	case SHUNT_CONFIG_BOOL:
		fuzz_check(number_of(row, c) <= 1);
		break;
	case SHUNT_CONFIG_ENUM:
		fuzz_check(number_of(row, c) <= words_of(row));
		break;
	case SHUNT_CONFIG_UINT:
		fuzz_check(number_of(row, c) >= row->min || row->flags & SHUNT_CONFIG_AUTO);
		fuzz_check(number_of(row, c) <= row->max || (row->flags & SHUNT_CONFIG_AUTO && number_of(row, c) == UINT64_MAX));
		fuzz_check(!(row->flags & SHUNT_CONFIG_POW2) || !(number_of(row, c) & (number_of(row, c) - 1)));
		break;
	case SHUNT_CONFIG_PATH:
		fuzz_check(strlen(text) < SHUNT_CONFIG_PATH_MAX);
		break;
	case SHUNT_CONFIG_FORM:
		fuzz_check(strlen(text) < SHUNT_CONFIG_FORM_MAX && (!*text || !row->check(text, why, sizeof(why))));
		break;
	case SHUNT_CONFIG_WORDS:
		break;
	}
}

/* A configuration's text makes the same configuration. */
static void show_and_read(const struct shunt_config *c)
{
	static char text[ROWS][SHUNT_CONFIG_TEXT_MAX];
	struct shunt_config again;

	for (size_t i = 0; i < variables(); i++)
		given.value[i] = shunt_config_value_text(&shunt_config_rows[i], c, text[i], sizeof(text[i]));
	fuzz_check(load(&again, complain) == 0);
	for (size_t i = 0; i < shunt_config_count; i++)
		fuzz_check(is_text(&shunt_config_rows[i]) ?
				   !strcmp((const char *)&again + shunt_config_rows[i].offset,
					   text[i]) :
				   shunt_config_rows[i].type == SHUNT_CONFIG_WORDS ||
					   number_of(&shunt_config_rows[i], &again) ==
						   number_of(&shunt_config_rows[i], c));
}

static void check_path(const struct shunt_config *c)
{
	char text[SHUNT_CONFIG_PATH_MAX + 32];

	for (size_t room = 1; room <= sizeof(text); room += room < 8 ? 1 : 500) {
		const char *path = shunt_config_path_text(c->stats_path, text, room);

		fuzz_check(!path || strlen(path) < room);
	}
}

/* Values as names, too. */
static void review(const struct shunt_config *c)
{
	shunt_config_contradictions(c, complain, NULL);
	for (size_t i = 0; i < variables(); i++) {
		char *environment[2] = { NULL };

		if (!given.value[i])
			continue;
		fuzz_check(asprintf(&environment[0], "SHUNT_%s", given.value[i]) >= 0);
		shunt_config_unknown(environment, complain, NULL);
		free(environment[0]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = malloc(size + 1), *at = bytes;
	struct shunt_config c;

	fuzz_check(bytes && shunt_config_count <= ROWS);
	memcpy(bytes, data, size);
	bytes[size] = 0;
	memset(&given, 0, sizeof(given));
	while (at < bytes + size) {
		unsigned int row = (uint8_t)*at++ % variables();

		given.value[row] = at;
		at += strlen(at) + 1;
	}
	fuzz_check(load(&c, complain) == given.complaints);
	review(&c);
	for (size_t i = 0; i < shunt_config_count; i++)
		check_row(&shunt_config_rows[i], &c);
	check_path(&c);
	show_and_read(&c);
	free(bytes);
	return 0;
}
