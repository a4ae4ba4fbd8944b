/* SPDX-License-Identifier: MIT */
/*
 * Words of a text of rules, and the values that a word may be. A statement ends with a line, a
 * semicolon or a comment, which begins with "#". Pure. Functions that return a bool write their
 * result only where they return true, except those of networks.
 */
#ifndef SHUNT_CORE_BASE_WORD_H
#define SHUNT_CORE_BASE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shunt_word {
	const char *at, *end;
};

/* The next word of a statement; an empty one at its end. */
struct shunt_word shunt_word_next(const char **text);
size_t shunt_word_length(struct shunt_word word);
bool shunt_word_is(struct shunt_word word, const char *text);
/* For a complaint: what is no printable ASCII is a question mark. */
void shunt_word_show(struct shunt_word word, char text[32]);
/* Splits a value from its unit, which begins behind the last digit. */
struct shunt_word shunt_word_digits(struct shunt_word word);

bool shunt_word_name(struct shunt_word word, char *to, size_t room);
bool shunt_word_number(struct shunt_word word, uint64_t most, uint64_t *result);
/* "2.5", in thousandths. */
bool shunt_word_thousandths(struct shunt_word word, uint64_t most, uint64_t *result);

/* A name, for which *name is set, or a number, for which it is "". */
bool shunt_word_user(struct shunt_word word, char *name, size_t room, uint32_t *uid);
/* The name of an executable, without its folder. */
bool shunt_word_program(struct shunt_word word, char *to, size_t room);

struct shunt_network {
	uint8_t address[16]; /* IPv4 as v4-mapped IPv6 */
	uint32_t bits; /* of it that count */
};

#define SHUNT_NETWORK_TEXT 64 /* room for any */

/* "10.0.0.0/8", "::1": the address has no bit beyond those that count. */
bool shunt_word_network(struct shunt_word word, struct shunt_network *network);
bool shunt_network_has(const struct shunt_network *network, const uint8_t address[16]);
/* Returns `text`. */
const char *shunt_network_text(const struct shunt_network *network, char *text, size_t room);

#endif
