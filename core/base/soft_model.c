/* SPDX-License-Identifier: MIT */
/*
 * The text of a cost model: "PRESET", "KEY=VALUE,…" or "PRESET,KEY=VALUE,…", later values winning.
 * The keys are explained at struct soft_model.
 */
#include "core/base/soft_model.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define K (1ull << 10)
#define G (1ull << 30)
#define SECOND 1000000000ull

static const struct {
	const char *name;
	struct soft_model model;
} presets[] = {
	/*
	 * A NIC of the ConnectX-3 class on FDR InfiniBand. The rate and the delay are of its announcement (56 Gbit/s,
	 * less than a microsecond). The other four are assumptions, set so that RDMAbox's Figure 1 has its peak where
	 * the paper has it. A model of a shape, not a measurement.
	 */
	{ "connectx3", { .on = 1, .doorbell = 100, .wqe = 30, .gbit = 56, .delay = 850, .cache = 128,
			 .miss = 400, .mr = 20000, .page = 320 } },
};

static const struct key {
	const char *name;
	size_t offset;
	uint64_t max;
	int size; /* takes the suffixes K, M and G */
} keys[] = {
#define KEY(name, max, size) { #name, offsetof(struct soft_model, name), max, size }
	KEY(doorbell, SECOND, 0), KEY(wqe, SECOND, 0),	 KEY(gbit, 100 * K, 0),
	KEY(delay, SECOND, 0),	  KEY(cache, K *K, 0),	 KEY(miss, SECOND, 0),
	KEY(queue, 64 * G, 1),	  KEY(pause, SECOND, 0), KEY(mr, SECOND, 0),
	KEY(page, SECOND, 0),	  KEY(qp, SECOND, 0),	 KEY(sink, SECOND, 0),
	KEY(block, SECOND, 0),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One item of the list: [at, end). */
struct item {
	const char *at, *end;
};

static int is_word(struct item item, const char *word)
{
	size_t length = (size_t)(item.end - item.at);

	return strlen(word) == length && !memcmp(item.at, word, length);
}

static unsigned int suffix_shift(struct item item)
{
	if (item.end - item.at < 2)
		return 0;
	switch (item.end[-1]) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	}
	return 0;
}

/* Digits and nothing else, except one suffix where the key has them. */
static int parse_number(struct item item, const struct key *key, uint64_t *number)
{
	unsigned int shift = key->size ? suffix_shift(item) : 0;
	uint64_t n = 0;

	if (shift)
		item.end--;
	if (item.at == item.end)
		return -EINVAL;
	for (; item.at < item.end; item.at++) {
		if (*item.at < '0' || *item.at > '9')
			return -EINVAL;
		n = n * 10 + (uint64_t)(*item.at - '0');
		if (n > key->max >> shift)
			return -EINVAL;
	}
	*number = n << shift;
	return 0;
}

static int parse_path(struct item item, char path[SOFT_SINKFILE])
{
	size_t length = (size_t)(item.end - item.at);

	if (!length || length >= SOFT_SINKFILE || *item.at != '/')
		return -EINVAL;
	memcpy(path, item.at, length);
	path[length] = '\0';
	return 0;
}

static int parse_pair(struct item item, struct soft_model *model)
{
	const char *equals = memchr(item.at, '=', (size_t)(item.end - item.at));
	struct item key, value;

	if (!equals)
		return -EINVAL;
	key = (struct item) { item.at, equals };
	value = (struct item) { equals + 1, item.end };
	if (is_word(key, "sinkfile"))
		return parse_path(value, model->sinkfile);
	for (size_t i = 0; i < COUNT(keys); i++) {
		if (is_word(key, keys[i].name))
			return parse_number(value, &keys[i],
					    (uint64_t *)((char *)model + keys[i].offset));
	}
	return -EINVAL;
}

/* Only the first item may name a preset: behind pairs it would undo them. */
static int parse_first(struct item item, struct soft_model *model)
{
	for (size_t i = 0; i < COUNT(presets); i++) {
		if (is_word(item, presets[i].name)) {
			*model = presets[i].model;
			return 0;
		}
	}
	return parse_pair(item, model);
}

int soft_model_parse(const char *text, struct soft_model *model)
{
	struct soft_model parsed = { .on = *text != '\0' };
	struct item item = { text, text };
	int err = 0;

	for (int first = 1; parsed.on && !err; first = 0) {
		item.end = item.at + strcspn(item.at, ",");
		err = first ? parse_first(item, &parsed) : parse_pair(item, &parsed);
		if (!*item.end)
			break;
		item.at = item.end + 1;
	}
	if (!err)
		*model = parsed;
	return err;
}
