/* SPDX-License-Identifier: MIT */
#include "core/base/config_review.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/config.h"

#define PREFIX SHUNT_CONFIG_PREFIX
#define NAME_MAX_BYTES 64	/* of a name that is looked for; a longer one is misspelt beyond recognition */

#define LINE_MAX_BYTES 800	/* of a complaint; the caller's stack may be a thread's smallest */

typedef void complain_call(const char *line, void *arg);

/* A line may quote what the environment holds. */
static void review_say(char *line, complain_call *complain, void *arg)
{
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = '?';
	complain(line, arg);
}

/* ---- names ---- */

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters are missing, too many, wrong, or in each other's place; upper and lower case are the same. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int rows[3][NAME_MAX_BYTES + 1];
	unsigned int *before = rows[0], *last = rows[1], *row = rows[2];
	size_t width = strlen(b);

	for (unsigned int j = 0; j <= width; j++)
		last[j] = j;
	for (unsigned int i = 1; i <= strlen(a); i++) {
		unsigned int *spare = before;

		row[0] = i;
		for (unsigned int j = 1; j <= width; j++) {
			int x = toupper((unsigned char)a[i - 1]), y = toupper((unsigned char)b[j - 1]);

			row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == toupper((unsigned char)b[j - 2]) &&
			    y == toupper((unsigned char)a[i - 2]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[width];
}

/* "LOG_LEVEL" and "LOG", "DEAD" and "DEAD_MS". */
static bool extends(const char *longer, const char *name)
{
	size_t length = strlen(name);

	return length && !strncasecmp(longer, name, length) && longer[length] == '_';
}

/* Without SHUNT_. */
static const char *bare(const struct shunt_config_row *row)
{
	return row->name + (shunt_config_is_word(row) ? 0 : sizeof(PREFIX) - 1);
}

/* The variable or word that is meant, or NULL: a third of the letters may be wrong, or a word missing or too many. */
static const struct shunt_config_row *nearest(const char *name)
{
	size_t length = strlen(name);
	unsigned int best = (unsigned int)(length < 3 ? 1 : length / 3 < 3 ? length / 3 : 3) + 1;
	const struct shunt_config_row *found = NULL, *related = NULL;

	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];
		unsigned int far = distance(name, bare(row));

		if (far < best) {
			best = far;
			found = row;
		}
		if (!related && (extends(name, bare(row)) || extends(bare(row), name)))
			related = row;
	}
	return found ? found : related;
}

static void complain_name(const char *name, complain_call *complain, void *arg)
{
	char line[LINE_MAX_BYTES], lower[NAME_MAX_BYTES];
	const struct shunt_config_row *meant = nearest(name + sizeof(PREFIX) - 1);

	if (shunt_config_word_of(name, lower, sizeof(lower)))
		snprintf(line, sizeof(line),
			 "%s does not count: it is a word of SHUNT_TUNE: SHUNT_TUNE=%s=VALUE", name,
			 lower);
	else if (meant)
		snprintf(line, sizeof(line), "there is no variable %s; is it %s%s that is meant?",
			 name, shunt_config_is_word(meant) ? "SHUNT_TUNE=" : "", meant->name);
	else
		snprintf(line, sizeof(line), "there is no variable %s; `shunt config` lists them", name);
	review_say(line, complain, arg);
}

/* The name in "SHUNT_NAME=VALUE", cut to the buffer; NULL: it does not begin with SHUNT_, or it is a variable. */
static const char *unknown_name(const char *entry, char name[NAME_MAX_BYTES])
{
	size_t length = strcspn(entry, "=");

	if (strncmp(entry, PREFIX, sizeof(PREFIX) - 1))
		return NULL;
	if (length >= NAME_MAX_BYTES)
		length = NAME_MAX_BYTES - 1;
	memcpy(name, entry, length);
	name[length] = '\0';
	return shunt_config_known(name) ? NULL : name;
}

int shunt_config_unknown(char *const *environment, complain_call *complain, void *arg)
{
	char name[NAME_MAX_BYTES];
	int count = 0;

	for (; environment && *environment; environment++) {
		if (!unknown_name(*environment, name))
			continue;
		complain_name(name, complain, arg);
		count++;
	}
	return count;
}

int shunt_config_former(char *const *environment)
{
	char name[NAME_MAX_BYTES], lower[NAME_MAX_BYTES];
	int count = 0;

	for (; environment && *environment; environment++)
		count += unknown_name(*environment, name) &&
			 shunt_config_word_of(name, lower, sizeof(lower));
	return count;
}

/* ---- values ---- */

/* A name of these tables: a word, or a variable without SHUNT_. */
static const struct shunt_config_row *row_of(const char *name)
{
	size_t i = 0;

	while (strcmp(bare(&shunt_config_rows[i]), name))
		i++;
	return &shunt_config_rows[i];
}

static bool is_none(const struct shunt_config *c)
{
	const char *name;

	return shunt_config_device(c->device, &name) == SHUNT_DEVICE_NONE;
}

static bool is_verbs(const struct shunt_config *c)
{
	const char *name;

	return shunt_config_device(c->device, &name) == SHUNT_DEVICE_VERBS;
}

static bool is_soft(const struct shunt_config *c)
{
	const char *name;

	return shunt_config_device(c->device, &name) == SHUNT_DEVICE_SOFT;
}

/* Whether an ENUM's value is this word. */
static bool is_word(const struct shunt_config *c, const char *name, const char *word)
{
	char value[64];

	return !strcmp(shunt_config_value_text(row_of(name), c, value, sizeof(value)), word);
}

static bool is_off(const struct shunt_config *c)
{
	return !c->enable;
}

static bool is_silent(const struct shunt_config *c)
{
	return is_word(c, "LOG", "none");
}

static bool does_not_adapt(const struct shunt_config *c)
{
	return !is_word(c, "poll", "adaptive");
}

static bool does_not_spin(const struct shunt_config *c)
{
	return !does_not_adapt(c) && !c->spin_us;
}

static bool does_not_retry(const struct shunt_config *c)
{
	return !does_not_adapt(c) && !c->poll_retry;
}

static bool does_not_chain(const struct shunt_config *c)
{
	return is_word(c, "batch", "single") || is_word(c, "batch", "merge");
}

static bool admits_all(const struct shunt_config *c)
{
	return is_word(c, "admit", "none");
}

static bool is_never_slow(const struct shunt_config *c)
{
	return !c->slow_ms;
}

static bool stays_on_link(const struct shunt_config *c)
{
	return is_word(c, "MOCK", "rdma");
}

static bool stays_on_tcp(const struct shunt_config *c)
{
	return is_word(c, "MOCK", "tcp");
}

static bool does_not_return(const struct shunt_config *c)
{
	return !c->return_ms;
}

/*
 * A setting (by) that leaves others without effect while when() holds: those in `names`, or with a leading "-" all but
 * those. Separated by spaces, without SHUNT_.
 */
static const struct {
	const char *by;
	bool (*when)(const struct shunt_config *c);
	const char *names;
} idle[] = {
	{ "ENABLE", is_off, "- ENABLE CONF LOG LOG_FILE" },
	{ "DEVICE", is_none, "- ENABLE CONF DEVICE LOG LOG_FILE STATS seed FAULT" },
	{ "DEVICE", is_verbs, "SOFT_MODEL" },
	{ "DEVICE", is_soft, "silence_s KEY TOS PORTS" },
	{ "LOG", is_silent, "LOG_FILE" },
	{ "poll", does_not_adapt, "spin_us poll_retry" },
	{ "spin_us", does_not_spin, "poll_retry" },
	{ "poll_retry", does_not_retry, "spin_us" },
	{ "batch", does_not_chain, "chain" },
	{ "admit", admits_all, "window window_wr" },
	{ "MOCK", stays_on_link, "slow_ms slow_times" },
	{ "MOCK", stays_on_tcp, "flip" },
	{ "slow_ms", is_never_slow, "slow_times" },
	{ "return_ms", does_not_return, "return_max_ms" },
};

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (; *words; words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		if (n == length && !memcmp(words, word, n))
			return true;
		words += n;
	}
	return false;
}

/* 0 switches something off, and contradicts nothing that leaves it without effect. */
static bool is_set(const struct shunt_config *c, const struct shunt_config_row *row)
{
	const uint64_t *number = (const uint64_t *)((const char *)c + row->offset);

	return row->type != SHUNT_CONFIG_WORDS && shunt_config_changed(row, c) &&
	       (row->type != SHUNT_CONFIG_UINT || *number);
}

/* "SHUNT_A, SHUNT_B" of those that are set and idle; how many. */
static int list_idle(const struct shunt_config *c, const char *names, char *buf, size_t room)
{
	size_t length = 0;
	int count = 0;

	*buf = '\0';
	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];
		bool named = has_word(names, bare(row));

		if (named == (*names == '-') || !is_set(c, row))
			continue;
		if (length < room)
			length += (size_t)snprintf(buf + length, room - length, "%s%s", count ? ", " : "", row->name);
		count++;
	}
	return count;
}

static int find_idle(const struct shunt_config *c, complain_call *complain, void *arg)
{
	char names[LINE_MAX_BYTES - 128], line[LINE_MAX_BYTES], value[64];
	int count = 0;

	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
		int found = idle[i].when(c) ? list_idle(c, idle[i].names, names, sizeof(names)) : 0;

		if (!found)
			continue;
		snprintf(line, sizeof(line), "%s ha%s no effect: %s=%.32s", names,
			 found > 1 ? "ve" : "s", row_of(idle[i].by)->name,
			 shunt_config_value_text(row_of(idle[i].by), c, value, sizeof(value)));
		review_say(line, complain, arg);
		count++;
		if (!c->enable || is_none(c))
			break;	/* that says it of all */
	}
	return count;
}

/* ---- pairs ---- */

static uint64_t number_of(const struct shunt_config *c, const char *name)
{
	return *(const uint64_t *)((const char *)c + row_of(name)->offset);
}

/* A number that is more than a part of another: it is cut, or is never reached. */
static const struct {
	const char *name, *other, *so;
	uint64_t part;	/* 2: half of the other */
	bool equal;	/* as much is too much, too */
} excessive[] = {
	{ "ring_min", "arena", "no ring has room, and connections stay on TCP", 2, true },
	{ "ring_max", "arena", "rings do not grow so far", 2, true },
	{ "return_ms", "return_max_ms", "that is the longest time", 1, false },
	{ "signal_every", "sq", "one in half of that queue is taken", 2, false },
	{ "window_wr", "sq", "that queue is full before", 1, false },
};

static int find_excessive(const struct shunt_config *c, complain_call *complain, void *arg)
{
	char line[LINE_MAX_BYTES], value[64], other[64];
	int count = 0;

	for (size_t i = 0; i < sizeof(excessive) / sizeof(excessive[0]); i++) {
		const struct shunt_config_row *a = row_of(excessive[i].name), *b = row_of(excessive[i].other);
		uint64_t number = number_of(c, excessive[i].name), limit = number_of(c, excessive[i].other);

		limit /= excessive[i].part;
		if (number < limit || (number == limit && !excessive[i].equal) ||
		    !shunt_config_changed(a, c))
			continue;
		snprintf(line, sizeof(line), "%s=%s is too much beside %s=%s: %s", a->name,
			 shunt_config_value_text(a, c, value, sizeof(value)), b->name,
			 shunt_config_value_text(b, c, other, sizeof(other)), excessive[i].so);
		review_say(line, complain, arg);
		count++;
	}
	return count;
}

static int find_small_region(const struct shunt_config *c, complain_call *complain, void *arg)
{
	char line[LINE_MAX_BYTES], value[64], most[64];

	if (c->mr_bytes >= c->ring_max || !shunt_config_changed(row_of("mr"), c))
		return 0;
	snprintf(line, sizeof(line), "mr=%s is less than ring_max=%s, which is used instead",
		 shunt_config_value_text(row_of("mr"), c, value, sizeof(value)),
		 shunt_config_value_text(row_of("ring_max"), c, most, sizeof(most)));
	review_say(line, complain, arg);
	return 1;
}

/* Statistics would take the messages' place. */
static int find_one_file(const struct shunt_config *c, complain_call *complain, void *arg)
{
	if (!c->stats_path[0] || strcmp(c->stats_path, c->log_file))
		return 0;
	complain("SHUNT_STATS and SHUNT_LOG_FILE are one file: the statistics replace the messages", arg);
	return 1;
}

static int find_no_key(const struct shunt_config *c, complain_call *complain, void *arg)
{
	if (c->trust != SHUNT_TRUST_KEY || c->key_file[0] || is_soft(c))
		return 0;
	complain("SHUNT_TRUST=key without SHUNT_KEY: there are no links between hosts", arg);
	return 1;
}

int shunt_config_contradictions(const struct shunt_config *c, complain_call *complain, void *arg)
{
	int count = find_idle(c, complain, arg);

	if (!c->enable || is_none(c))
		return count;
	return count + find_excessive(c, complain, arg) + find_small_region(c, complain, arg) +
	       find_one_file(c, complain, arg) + find_no_key(c, complain, arg);
}
