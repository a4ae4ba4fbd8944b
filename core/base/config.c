/* SPDX-License-Identifier: MIT */
#include "core/base/config.h"
#include "core/base/fault_rules.h"
#include "core/base/soft_model.h"
#include "shunt/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TUNE "SHUNT_TUNE: "	/* before a message about a word */

#define K (1ULL << 10)
#define M (1ULL << 20)
#define G (1ULL << 30)
#define LIVE SHUNT_CONFIG_LIVE
#define FIXED SHUNT_CONFIG_AT_START
#define LINK SHUNT_CONFIG_AT_LINK
#define SIZE SHUNT_CONFIG_SIZE
#define POW2 SHUNT_CONFIG_POW2
#define AUTO SHUNT_CONFIG_AUTO

#define BOOL(NAME, field, DEF, LV, HELP)                                                  \
	{ .name = PREFIX #NAME, .words = "0|1", .unit = "", .help = HELP, .max = 1,     \
	  .def = DEF, .type = SHUNT_CONFIG_BOOL, .live = LV,                              \
	  .offset = offsetof(struct shunt_config, field) },
#define ENUM(NAME, field, WORDS, DEF, LV, HELP)                                           \
	{ .name = PREFIX #NAME, .words = WORDS, .unit = "", .help = HELP, .def = DEF,   \
	  .type = SHUNT_CONFIG_ENUM, .live = LV,                                          \
	  .offset = offsetof(struct shunt_config, field) },
#define UINT(NAME, field, MIN, MAX, DEF, FLAGS, UNIT, LV, HELP)                           \
	{ .name = PREFIX #NAME, .unit = UNIT, .help = HELP, .min = MIN, .max = MAX,     \
	  .def = DEF, .flags = FLAGS, .type = SHUNT_CONFIG_UINT, .live = LV,              \
	  .offset = offsetof(struct shunt_config, field) },
#define PATH(NAME, field, LV, HELP)                                                       \
	{ .name = PREFIX #NAME, .unit = "", .help = HELP, .type = SHUNT_CONFIG_PATH,    \
	  .live = LV, .offset = offsetof(struct shunt_config, field) },

#define FORM(NAME, field, CHECK, WORDS, DEF, LV, HELP)                                    \
	{ .name = PREFIX #NAME, .words = WORDS, .check = CHECK, .unit = "", .text = DEF, \
	  .help = HELP, .type = SHUNT_CONFIG_FORM, .live = LV,                            \
	  .offset = offsetof(struct shunt_config, field) },

#define WORDS(NAME, FORM, HELP)                                                           \
	{ .name = PREFIX #NAME, .words = FORM, .unit = "", .help = HELP,                  \
	  .type = SHUNT_CONFIG_WORDS, .live = FIXED },

int shunt_config_device(const char *text, const char **name)
{
	static const char *const words[] = { "auto", "soft", "verbs", "none" };

	*name = NULL;
	if (!*text)
		return SHUNT_DEVICE_AUTO;
	for (int i = 0; i < 4; i++)
		if (!strcmp(text, words[i]))
			return i;
	if (strncmp(text, "verbs:", 6) || !text[6])
		return -1;
	*name = text + 6;
	return SHUNT_DEVICE_VERBS;
}

static int conf_check(const char *text, char *why, size_t bytes)
{
	(void)why, (void)bytes;
	return *text != '/' && strcmp(text, "none") != 0;
}

static int device_check(const char *text, char *why, size_t bytes)
{
	const char *name;

	(void)why, (void)bytes;
	return shunt_config_device(text, &name) < 0;
}

/* A port, and the text behind it; NULL: no port. */
static const char *port_of(const char *text, uint16_t *port)
{
	const char *p = text;
	unsigned int value = 0;

	while (*p >= '0' && *p <= '9' && value <= UINT16_MAX)
		value = value * 10 + (unsigned int)(*p++ - '0');
	*port = (uint16_t)value;
	return value && value <= UINT16_MAX ? p : NULL;
}

int shunt_config_ports(const char *text, uint16_t *first, uint16_t *last)
{
	const char *rest;

	*first = *last = 0;
	if (!*text || !strcmp(text, "auto"))
		return 0;
	rest = port_of(text, first);
	*last = *first;
	if (rest && *rest == '-')
		rest = port_of(rest + 1, last);
	return rest && !*rest && *first <= *last ? 0 : -1;
}

static int ports_check(const char *text, char *why, size_t bytes)
{
	uint16_t first, last;

	(void)why, (void)bytes;
	return shunt_config_ports(text, &first, &last);
}

static int model_check(const char *text, char *why, size_t bytes)
{
	struct soft_model model;

	(void)why, (void)bytes;
	return soft_model_parse(text, &model);
}

static int fault_check(const char *text, char *why, size_t bytes)
{
	struct shunt_fault_plan plan;

	return shunt_fault_parse(text, &plan, why, bytes);
}

static int name_check(const char *text, char *why, size_t bytes)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	(void)why, (void)bytes;
	return strlen(text) >= SHUNT_QOS_NAME || text[strspn(text, allowed)];
}

const struct shunt_config_row shunt_config_rows[] = {
#define PREFIX SHUNT_CONFIG_PREFIX
#include "core/base/config_table.h"
#undef PREFIX
#define PREFIX ""
#include "core/base/tune_table.h"
};

const size_t shunt_config_count = sizeof(shunt_config_rows) / sizeof(shunt_config_rows[0]);

static uint64_t *number_field(const struct shunt_config_row *row, struct shunt_config *c)
{
	return (uint64_t *)((char *)c + row->offset);
}

static uint64_t number_of(const struct shunt_config_row *row, const struct shunt_config *c)
{
	return *(const uint64_t *)((const char *)c + row->offset);
}

static int is_text(const struct shunt_config_row *row)
{
	return row->type == SHUNT_CONFIG_PATH || row->type == SHUNT_CONFIG_FORM;
}

int shunt_config_is_word(const struct shunt_config_row *row)
{
	return strncmp(row->name, SHUNT_CONFIG_PREFIX, sizeof(SHUNT_CONFIG_PREFIX) - 1) != 0;
}

static const char *default_text(const struct shunt_config_row *row)
{
	return row->text ? row->text : "";
}

static void set_default(const struct shunt_config_row *row, struct shunt_config *c)
{
	if (is_text(row))
		strcpy((char *)c + row->offset, default_text(row));
	else if (row->type != SHUNT_CONFIG_WORDS)
		*number_field(row, c) = row->def;
}

void shunt_config_defaults(struct shunt_config *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < shunt_config_count; i++)
		set_default(&shunt_config_rows[i], c);
}

/* The index of `text` in "a|b|c", or -1. */
static int word_index(const char *words, const char *text)
{
	size_t len = strlen(text);
	int index = 0;

	for (const char *word = words; word; index++) {
		size_t word_len = strcspn(word, "|");

		if (word_len == len && !memcmp(word, text, len))
			return index;
		word = word[word_len] ? word + word_len + 1 : NULL;
	}
	return -1;
}

static int word_copy(const char *words, uint64_t index, char *buf, size_t len)
{
	while (index-- && *words)
		words += strcspn(words, "|") + 1;
	return snprintf(buf, len, "%.*s", (int)strcspn(words, "|"), words);
}

static unsigned int suffix_shift(char c)
{
	switch (c) {
	case 'K': case 'k': return 10;
	case 'M': case 'm': return 20;
	case 'G': case 'g': return 30;
	}
	return 0;
}

/* Digits, and a suffix where allowed; nothing around them. 0, or -1 also where 64 bits overflow. */
static int parse_number(const char *text, int suffixes, uint64_t *number)
{
	uint64_t n = 0;
	unsigned int shift;

	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return -1;
	shift = suffixes ? suffix_shift(*text) : 0;
	if (shift)
		text++;
	if (*text || n > UINT64_MAX >> shift)
		return -1;
	*number = n << shift;
	return 0;
}

static uint64_t round_up_pow2(uint64_t n)
{
	return n <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(n - 1));
}

static int parse_uint(const struct shunt_config_row *row, const char *text, uint64_t *number)
{
	uint64_t n;

	if (row->flags & AUTO && !strcmp(text, "auto")) {
		*number = UINT64_MAX;
		return 0;
	}
	if (parse_number(text, row->flags & SIZE, &n) || n < row->min || n > row->max)
		return -1;
	*number = row->flags & POW2 ? round_up_pow2(n) : n;
	return 0;
}

static int parse_text(const struct shunt_config_row *row, const char *text, size_t room,
		      struct shunt_config *c)
{
	size_t len = strlen(text);

	if (len >= room)
		return -1;
	memcpy((char *)c + row->offset, text, len + 1);
	return 0;
}

/* Stores `text` in the row's field; -1 and nothing changed if it is not a value of the row. */
static int parse_value(const struct shunt_config_row *row, const char *text,
		       struct shunt_config *c)
{
	int word;

	switch (row->type) {
	case SHUNT_CONFIG_BOOL:
		word = word_index("0|1|no|yes|off|on|false|true", text);
		if (word < 0)
			return -1;
		*number_field(row, c) = (uint64_t)word & 1;
		return 0;
	case SHUNT_CONFIG_ENUM:
		word = word_index(row->words, text);
		if (word < 0)
			return -1;
		*number_field(row, c) = (uint64_t)word;
		return 0;
	case SHUNT_CONFIG_UINT:
		return parse_uint(row, text, number_field(row, c));
	case SHUNT_CONFIG_PATH:
		return parse_text(row, text, SHUNT_CONFIG_PATH_MAX, c);
	case SHUNT_CONFIG_FORM:
		return row->check(text, NULL, 0) ? -1 : parse_text(row, text, SHUNT_CONFIG_FORM_MAX, c);
	case SHUNT_CONFIG_WORDS:
		break;	/* its rows have the values */
	}
	return -1;
}

static const char *number_text(const struct shunt_config_row *row, uint64_t n, char *buf,
			       size_t len)
{
	static const char suffixes[] = "KMG";
	int step = -1;

	if (row->flags & AUTO && n == UINT64_MAX) {
		snprintf(buf, len, "auto");
		return buf;
	}
	if (row->flags & SIZE)
		for (; n && n % K == 0 && step < 2; step++)
			n /= K;
	if (step < 0)
		snprintf(buf, len, "%llu", (unsigned long long)n);
	else
		snprintf(buf, len, "%llu%c", (unsigned long long)n, suffixes[step]);
	return buf;
}

static const char *simple_text(const struct shunt_config_row *row, uint64_t n, char *buf,
			       size_t len)
{
	if (row->type == SHUNT_CONFIG_ENUM)
		word_copy(row->words, n, buf, len);
	else
		number_text(row, n, buf, len);
	return buf;
}

/* "poll=busy,window=1M" of those that are not the default, as far as there is room. */
static const char *words_text(const struct shunt_config *c, char *buf, size_t len)
{
	char value[64];
	size_t n = 0;

	*buf = '\0';
	for (size_t i = 0; i < shunt_config_count && n < len; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		if (shunt_config_is_word(row) && shunt_config_changed(row, c))
			n += (size_t)snprintf(
				buf + n, len - n, "%s%s=%s", n ? "," : "", row->name,
				simple_text(row, number_of(row, c), value, sizeof(value)));
	}
	return buf;
}

const char *shunt_config_value_text(const struct shunt_config_row *row,
				    const struct shunt_config *c, char *buf, size_t len)
{
	if (row->type == SHUNT_CONFIG_WORDS)
		return words_text(c, buf, len);
	if (!is_text(row))
		return simple_text(row, number_of(row, c), buf, len);
	snprintf(buf, len, "%s", (const char *)c + row->offset);
	return buf;
}

const char *shunt_config_default_text(const struct shunt_config_row *row, char *buf, size_t len)
{
	if (!is_text(row) && row->type != SHUNT_CONFIG_WORDS)
		return simple_text(row, row->def, buf, len);
	snprintf(buf, len, "%s", default_text(row));
	return buf;
}

const char *shunt_config_range_text(const struct shunt_config_row *row, char *buf, size_t len)
{
	char min[32], max[32];

	if (row->words)
		snprintf(buf, len, "%s", row->words);
	else if (row->type == SHUNT_CONFIG_PATH)
		snprintf(buf, len, "a path of at most %d bytes", SHUNT_CONFIG_PATH_MAX - 1);
	else
		snprintf(buf, len, "%s%s..%s%s%s", row->flags & AUTO ? "auto or " : "",
			 number_text(row, row->min, min, sizeof(min)), number_text(row, row->max, max, sizeof(max)), *row->unit ? " " : "",
			 row->unit);
	return buf;
}

static int any_word_changed(const struct shunt_config *c)
{
	for (size_t i = 0; i < shunt_config_count; i++)
		if (shunt_config_is_word(&shunt_config_rows[i]) &&
		    shunt_config_changed(&shunt_config_rows[i], c))
			return 1;
	return 0;
}

int shunt_config_changed(const struct shunt_config_row *row, const struct shunt_config *c)
{
	if (row->type == SHUNT_CONFIG_WORDS)
		return any_word_changed(c);
	if (is_text(row))
		return strcmp((const char *)c + row->offset, default_text(row)) != 0;
	return number_of(row, c) != row->def;
}

static const struct shunt_config_row *row_of(const char *name)
{
	for (size_t i = 0; i < shunt_config_count; i++)
		if (!strcmp(shunt_config_rows[i].name, name))
			return &shunt_config_rows[i];
	return NULL;
}

int shunt_config_known(const char *name)
{
	const struct shunt_config_row *row = row_of(name);

	return row && !shunt_config_is_word(row);
}

const char *shunt_config_word_of(const char *name, char *buf, size_t len)
{
	const struct shunt_config_row *row;
	size_t skip = sizeof(SHUNT_CONFIG_PREFIX) - 1, n = 0;

	if (strncmp(name, SHUNT_CONFIG_PREFIX, skip))
		return NULL;
	for (name += skip; name[n] && n + 1 < len; n++)
		buf[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] - 'A' + 'a') : name[n];
	buf[n] = '\0';
	row = name[n] ? NULL : row_of(buf);
	return row && shunt_config_is_word(row) ? row->name : NULL;
}

/* A value from the environment may be anything; a complaint is one short printable line. */
static const char *quotable(const char *text, char *buf, size_t len)
{
	size_t n = 0;

	for (; text[n] && n + 1 < len; n++)
		buf[n] = text[n] < ' ' || text[n] > '~' ? '?' : text[n];
	buf[n] = '\0';
	if (text[n] && len > 4)
		memcpy(buf + len - 4, "...", 4);
	return buf;
}

/* The value from below is used instead. */
static void say_invalid(const struct shunt_config_row *row, const struct shunt_config *c,
			const char *text, char *line, size_t len)
{
	char range[128], used[64], quoted[64], why[128] = "", printable[128];

	if (row->check)
		row->check(text, why, sizeof(why));
	shunt_config_value_text(row, c, used, sizeof(used));
	snprintf(line, len, "%s%s=%s is invalid: %s%sallowed is %s%s; the %s is used: %s",
		 shunt_config_is_word(row) ? TUNE : "", row->name,
		 quotable(text, quoted, sizeof(quoted)),
		 quotable(why, printable, sizeof(printable)), *why ? "; " : "",
		 shunt_config_range_text(row, range, sizeof(range)),
		 row->flags & SIZE ? " (suffixes K, M, G)" : "",
		 shunt_config_changed(row, c) ? "value before" : "default",
		 *used ? used : "none");
}

static void tell(const struct shunt_config_listener *listener, const char *line)
{
	if (listener && listener->complain)
		listener->complain(line, listener->arg);
}

/* One value of a row: 0, or 1 and a complaint. */
static int set_row(struct shunt_config *c, const struct shunt_config_row *row, const char *text,
		   const struct shunt_config_listener *listener)
{
	char line[SHUNT_CONFIG_LINE_MAX];

	if (parse_value(row, text, c)) {
		say_invalid(row, c, text, line, sizeof(line));
		tell(listener, line);
		return 1;
	}
	if (listener && listener->took)
		listener->took((size_t)(row - shunt_config_rows), listener->arg);
	return 0;
}

/* "spin_us=7", which is cut in two. */
static int set_word(struct shunt_config *c, char *word,
		    const struct shunt_config_listener *listener)
{
	char line[256], quoted[64], lower[64];
	const struct shunt_config_row *row;
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	row = row_of(word);
	if (row && value && *value && shunt_config_is_word(row))
		return set_row(c, row, value, listener);
	quotable(word, quoted, sizeof(quoted));
	if (row && shunt_config_is_word(row))
		snprintf(line, sizeof(line), TUNE "%s has no value: %s=VALUE", quoted, quoted);
	else if (row)
		snprintf(line, sizeof(line), TUNE "%s is a variable of its own", quoted);
	else if (shunt_config_word_of(word, lower, sizeof(lower)))
		snprintf(line, sizeof(line), TUNE "there is no word %s; it is %s", quoted, lower);
	else
		snprintf(line, sizeof(line), TUNE "there is no word %s; `shunt config` lists them",
			 quoted);
	tell(listener, line);
	return 1;
}

static int set_words(struct shunt_config *c, const char *text,
		     const struct shunt_config_listener *listener)
{
	static const char blanks[] = ", \t\r\n";
	char word[128];
	int invalid = 0;

	for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
		size_t length = strcspn(text, blanks),
		       kept = length < sizeof(word) ? length : sizeof(word) - 1;

		memcpy(word, text, kept);
		word[kept] = '\0';
		if (length > kept)
			strcpy(word + sizeof(word) - 4, "..."); /* no value */
		invalid += set_word(c, word, listener);
		text += length;
	}
	return invalid;
}

int shunt_config_set(struct shunt_config *c, const char *name, const char *text,
		     const struct shunt_config_listener *listener)
{
	const struct shunt_config_row *row = row_of(name);
	char line[256], quoted[64], lower[64];
	const char *word;

	if (row && row->type == SHUNT_CONFIG_WORDS)
		return set_words(c, text, listener);
	if (row && !shunt_config_is_word(row))
		return set_row(c, row, text, listener);
	quotable(name, quoted, sizeof(quoted));
	word = row ? row->name : shunt_config_word_of(name, lower, sizeof(lower));
	if (word)
		snprintf(line, sizeof(line),
			 "there is no variable %s: it is a word of SHUNT_TUNE, %s=VALUE", quoted,
			 word);
	else
		snprintf(line, sizeof(line), "there is no variable %s", quoted);
	tell(listener, line);
	return 1;
}

/* A ring cannot grow from more to less: such a pair counts as one invalid value. */
int shunt_config_check(struct shunt_config *c, void (*complain)(const char *, void *), void *carg)
{
	char line[SHUNT_CONFIG_LINE_MAX];
	uint64_t least, most;

	if (c->ring_min <= c->ring_max)
		return 0;
	least = row_of("ring_min")->def;
	most = row_of("ring_max")->def;
	snprintf(line, sizeof(line),
		 TUNE "ring_min=%lluK is invalid: allowed is at most ring_max, here %lluK; "
		 "the defaults of both are used: %lluK and %lluK",
		 (unsigned long long)(c->ring_min / K), (unsigned long long)(c->ring_max / K),
		 (unsigned long long)(least / K), (unsigned long long)(most / K));
	if (complain)
		complain(line, carg);
	c->ring_min = least;
	c->ring_max = most;
	return 1;
}

int shunt_config_take(struct shunt_config *c, const char *(*get)(const char *name, void *arg),
		      void *arg, const struct shunt_config_listener *listener)
{
	int invalid = 0;

	for (size_t i = 0; i < shunt_config_count && !shunt_config_is_word(&shunt_config_rows[i]);
	     i++) {
		const char *text = get(shunt_config_rows[i].name, arg);

		if (text && *text)
			invalid += shunt_config_set(c, shunt_config_rows[i].name, text, listener);
	}
	return invalid;
}

int shunt_config_load(struct shunt_config *c, const char *(*get)(const char *name, void *arg),
		      void *arg, void (*complain)(const char *line, void *arg), void *carg)
{
	const struct shunt_config_listener listener = { .complain = complain, .arg = carg };
	int invalid;

	shunt_config_defaults(c);
	invalid = shunt_config_take(c, get, arg, &listener);
	return invalid + shunt_config_check(c, complain, carg);
}

int shunt_config_change(struct shunt_config *c, const char *name, const char *text, char *why, size_t len)
{
	const struct shunt_config_row *row = row_of(name);
	char range[128], quoted[64], lower[64];
	struct shunt_config fresh;

	if (!row) {
		const char *word = shunt_config_word_of(name, lower, sizeof(lower));

		snprintf(why, len, "there is no variable %s%s%s",
			 quotable(name, quoted, sizeof(quoted)), word ? "; it is the word " : "",
			 word ? word : "");
		return -1;
	}
	if (row->type == SHUNT_CONFIG_WORDS) {
		snprintf(why, len, "%s is set by its words: set WORD VALUE", name);
		return -1;
	}
	if (row->live != SHUNT_CONFIG_LIVE || is_text(row)) {
		snprintf(why, len, "%s is read when %s, and stays: restart the program with it",
			 name,
			 row->live == SHUNT_CONFIG_AT_LINK ? "a link is made" : "a program starts");
		return -1;
	}
	if (parse_value(row, text, &fresh)) {
		snprintf(why, len, "%s=%s is invalid: allowed is %s", name, quotable(text, quoted, sizeof(quoted)),
			 shunt_config_range_text(row, range, sizeof(range)));
		return -1;
	}
	__atomic_store_n(number_field(row, c), number_of(row, &fresh), __ATOMIC_RELAXED);
	return 0;
}

void shunt_config_settle(struct shunt_config *c)
{
	if (c->mr_bytes < c->ring_max)
		c->mr_bytes = c->ring_max;
}

const char *shunt_config_path_text(const char *path, char *buf, size_t len)
{
	size_t n = 0;

	for (; *path; path++) {
		int put;

		if (path[0] == '%' && path[1] == 'p') {
			put = snprintf(buf + n, len - n, "%d", (int)getpid());
			path++;
		} else {
			put = snprintf(buf + n, len - n, "%c", *path);
		}
		if (put < 0 || (size_t)put >= len - n)
			return NULL;
		n += (size_t)put;
	}
	buf[n] = '\0';
	return buf;
}
