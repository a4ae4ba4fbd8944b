/* SPDX-License-Identifier: MIT */
/* Rates and shares: their text, and tokens of a period. */
#include <stdio.h>
#include <string.h>
#include "core/qos/rules_words.h"
#include "core/qos/tokens.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Units as rates of tokens.h: a bit is 1 / (8 * SHUNT_TOKEN_BYTES) of a token. */
static const struct unit {
	const char *name;
	uint64_t rate; /* of 10^6 units */
} units[] = {
	{ "Mbit", 1000000000000000ull / (8 * SHUNT_TOKEN_BYTES) },
	{ "Gbit", 1000000000000000000ull / (8 * SHUNT_TOKEN_BYTES) },
	{ "Kops", 1000000000000ull },
	{ "Mops", 1000000000000000ull },
};

bool shunt_word_rate(struct shunt_word word, uint64_t *result)
{
	struct shunt_word digits = shunt_word_digits(word);
	uint64_t n;

	for (size_t i = 0; i < COUNT(units); i++) {
		unsigned __int128 all;

		if (!shunt_word_is((struct shunt_word) { digits.end, word.end }, units[i].name) ||
		    !shunt_word_thousandths(digits, 1000000, &n))
			continue;
		all = (unsigned __int128)n * units[i].rate / 1000000000;
		if (!n || all < SHUNT_RATE_MIN || all > SHUNT_RATE_MAX)
			return false;
		*result = (uint64_t)all;
		return true;
	}
	return false;
}

/* "2.5", of 2500. */
static void put_thousandths(uint64_t n, char *text, size_t room)
{
	unsigned int part = (unsigned int)(n % 1000);
	int digits = 3;

	while (digits && part % 10 == 0) {
		part /= 10;
		digits--;
	}
	if (digits)
		snprintf(text, room, "%llu.%0*u", (unsigned long long)(n / 1000), digits, part);
	else
		snprintf(text, room, "%llu", (unsigned long long)(n / 1000));
}

const char *shunt_qos_exact_text(uint64_t value, char *text, size_t room)
{
	char said[32];

	snprintf(text, room, "none");
	for (size_t i = 0, best = SIZE_MAX; value && i < COUNT(units); i++) {
		/* The least number of the unit that is parsed to no less. */
		unsigned __int128 n = ((unsigned __int128)value * 1000000000 + units[i].rate - 1) /
				      units[i].rate;

		if (n > 1000000999 || n * units[i].rate / 1000000000 != value)
			continue;
		put_thousandths((uint64_t)n, said, sizeof(said));
		if (strlen(said) >= best)
			continue;
		best = strlen(said);
		snprintf(text, room, "%s%s", said, units[i].name);
	}
	return text;
}

const char *shunt_qos_rate_text(uint64_t value, char *text, size_t room)
{
	double mbit = (double)value * 8 * SHUNT_TOKEN_BYTES / 1e9;

	if (!value)
		snprintf(text, room, "none");
	else if (mbit >= 999.9995)
		snprintf(text, room, "%.5gGbit", mbit / 1000);
	else
		snprintf(text, room, "%.5gMbit", mbit);
	return text;
}

bool shunt_word_share(struct shunt_word word, uint32_t *result)
{
	struct shunt_word digits = shunt_word_digits(word);
	uint64_t n;

	if (!shunt_word_is((struct shunt_word) { digits.end, word.end }, "%") ||
	    !shunt_word_thousandths(digits, 100, &n) || n > 100000 || n % 100)
		return false;
	*result = (uint32_t)(n / 100);
	return true;
}

uint64_t shunt_qos_tokens(uint64_t rate, uint32_t period_ms)
{
	return (uint64_t)((unsigned __int128)rate * period_ms / 1000000);
}

uint64_t shunt_qos_reserved(const struct shunt_qos_class *class, uint64_t capacity)
{
	return class->reserve_share ?
		       (uint64_t)((unsigned __int128)capacity * class->reserve_share / 1000) :
		       class->reserve;
}
