/* SPDX-License-Identifier: MIT */
/*
 * The configuration of an engine: environment variables SHUNT_*, all of them rows of
 * core/base/config_table.h. The words of one of them, SHUNT_TUNE, are rows of core/base/tune_table.h. Nothing here allocates memory or uses stdio streams, because the values are
 * read in a library constructor inside other people's programs.
 */
#ifndef SHUNT_CORE_BASE_CONFIG_H
#define SHUNT_CORE_BASE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define SHUNT_CONFIG_PREFIX "SHUNT_"	/* of a variable's name */
#define SHUNT_CONFIG_PATH_MAX 1024	/* a path value with its final 0 */
#define SHUNT_CONFIG_FORM_MAX 256	/* the same of a form */
#define SHUNT_CONFIG_RULES_MAX 4096	/* lines of rules with their final 0 */
#define SHUNT_CONFIG_TEXT_MAX 1600	/* room for any value as text; all words of SHUNT_TUNE are the longest */
#define SHUNT_CONFIG_LINE_MAX 1536	/* room for any complaint */

/* SHUNT_DEVICE, and the text behind "verbs:" (NULL: nothing). -1: no such device. */
enum shunt_device_choice { SHUNT_DEVICE_AUTO, SHUNT_DEVICE_SOFT, SHUNT_DEVICE_VERBS, SHUNT_DEVICE_NONE };
enum shunt_trust_choice { SHUNT_TRUST_USER, SHUNT_TRUST_HOST, SHUNT_TRUST_KEY };	/* words of SHUNT_TRUST */
enum shunt_gate_choice { SHUNT_GATE_AUTO, SHUNT_GATE_NAMES, SHUNT_GATE_CALLS };	/* words of SHUNT_GATE */
enum shunt_go_choice { SHUNT_GO_AUTO, SHUNT_GO_OFF };	/* words of `go` */
enum shunt_pages_choice { SHUNT_PAGES_ORDINARY, SHUNT_PAGES_TRANSPARENT, SHUNT_PAGES_HUGE };	/* words of `pages` */
enum shunt_born_choice { SHUNT_BORN_OFF, SHUNT_BORN_AUTO };	/* words of `born` */
int shunt_config_device(const char *text, const char **name);
/* The first and the last port of SHUNT_PORTS; both 0: any. -1: invalid. */
int shunt_config_ports(const char *text, uint16_t *first, uint16_t *last);

/* One field a row, in the units that the row says. Enums hold the index of their word. */
struct shunt_config {
#define BOOL(name, field, def, live, help) uint64_t field;
#define ENUM(name, field, words, def, live, help) uint64_t field;
#define UINT(name, field, min, max, def, flags, unit, live, help) uint64_t field;
#define PATH(name, field, live, help) char field[SHUNT_CONFIG_PATH_MAX];
#define FORM(name, field, check, form, def, live, help) char field[SHUNT_CONFIG_FORM_MAX];
#define WORDS(name, form, help)
#include "core/base/config_table.h"
#include "core/base/tune_table.h"
#undef WORDS
#undef BOOL
#undef ENUM
#undef UINT
#undef PATH
#undef FORM
	char rule_lines[SHUNT_CONFIG_RULES_MAX];	/* of files (core/base/rule.h), the user's first; SHUNT_RULES counts before them */
};

enum shunt_config_type {
	SHUNT_CONFIG_BOOL,
	SHUNT_CONFIG_ENUM,
	SHUNT_CONFIG_UINT,
	SHUNT_CONFIG_PATH,
	SHUNT_CONFIG_FORM,
	SHUNT_CONFIG_WORDS,	/* no field: its words have */
};

enum {
	SHUNT_CONFIG_SIZE = 1,	/* takes and shows the suffixes K, M and G */
	SHUNT_CONFIG_POW2 = 2,	/* rounded up to a power of two */
	SHUNT_CONFIG_AUTO = 4,	/* "auto" is UINT64_MAX */
};

enum shunt_config_change { /* whether a running engine may be told a new value */
			   SHUNT_CONFIG_AT_LINK = -1, /* no: links are made with it */
			   SHUNT_CONFIG_AT_START, /* no */
			   SHUNT_CONFIG_LIVE,
};

/* A row as data. */
struct shunt_config_row {
	const char *name;	/* with SHUNT_; or a word of SHUNT_TUNE */
	const char *words;	/* ENUM: "a|b|c"; FORM, WORDS: what it looks like */
	int (*check)(const char *text, char *why, size_t bytes);	/* FORM: 0 for a good one; perhaps what is wrong */
	const char *unit;	/* what a plain number counts, or "" */
	const char *help;
	const char *text;	/* FORM: the default */
	uint64_t min, max, def;
	size_t offset;		/* of the field in struct shunt_config */
	enum shunt_config_type type;
	int flags;
	int live; /* enum shunt_config_change */
};

/* The variables, and behind them the words of SHUNT_TUNE. */
extern const struct shunt_config_row shunt_config_rows[];
extern const size_t shunt_config_count;

/* All defaults. */
void shunt_config_defaults(struct shunt_config *c);

int shunt_config_is_word(const struct shunt_config_row *row);

/*
 * All defaults, then shunt_config_take(). An invalid value is replaced by the default, and complain() gets one line
 * (without a newline) that says so; complain may be NULL. Returns the number of invalid values.
 */
int shunt_config_load(struct shunt_config *c, const char *(*get)(const char *name, void *arg),
		      void *arg, void (*complain)(const char *line, void *arg), void *carg);

/* The calls that follow a value; each may be NULL. */
struct shunt_config_listener {
	void (*took)(size_t row, void *arg);	/* the row has it */
	void (*complain)(const char *line, void *arg);	/* without a newline; nothing has changed */
	void *arg;
};

/*
 * The value of a variable of that name. SHUNT_TUNE has words with commas or blanks between them, "poll=busy,window=1M":
 * of two with one name the later counts. How many values are invalid. Before there is an engine.
 */
int shunt_config_set(struct shunt_config *c, const char *name, const char *text,
		     const struct shunt_config_listener *listener);
/*
 * Every variable that get(name, arg) has; NULL and "" count as not set. How many values are invalid. Before there is an
 * engine.
 */
int shunt_config_take(struct shunt_config *c, const char *(*get)(const char *name, void *arg),
		      void *arg, const struct shunt_config_listener *listener);
/* Values that exclude each other give way to their defaults; the number of such pairs. As above. */
int shunt_config_check(struct shunt_config *c, void (*complain)(const char *line, void *arg),
		       void *carg);

/*
 * A new value of a variable or word for a running engine, whose other threads read it. 0; or -1, `why` is one line, and nothing has
 * changed.
 */
int shunt_config_change(struct shunt_config *c, const char *name, const char *text, char *why, size_t len);

/* A number of a row that is LIVE, for a thread other than the service thread, which alone changes it. */
static inline uint64_t shunt_config_live(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Whether `name` ("SHUNT_…") is a variable of the table. */
int shunt_config_known(const char *name);

/* The word of SHUNT_TUNE with this name ("SHUNT_SPIN_US": "spin_us"); NULL: there is no word of this name. `buf` is for its letters. */
const char *shunt_config_word_of(const char *name, char *buf, size_t len);

/* Value, default and allowed range of a row as text; all return buf. */
const char *shunt_config_value_text(const struct shunt_config_row *row,
				    const struct shunt_config *c, char *buf, size_t len);
const char *shunt_config_default_text(const struct shunt_config_row *row, char *buf, size_t len);
const char *shunt_config_range_text(const struct shunt_config_row *row, char *buf, size_t len);

/*
 * Changes what has to follow another value: a memory region, of which rings are carved out, is as large as the largest
 * ring. After the values have been reviewed (config_review.h).
 */
void shunt_config_settle(struct shunt_config *c);

/* `path` with %p replaced by the process id, or NULL where that does not fit. */
const char *shunt_config_path_text(const char *path, char *buf, size_t len);

/* Whether the row's value differs from its default. */
int shunt_config_changed(const struct shunt_config_row *row, const struct shunt_config *c);

#endif
