/* SPDX-License-Identifier: MIT */
#include "core/base/word.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

size_t shunt_word_length(struct shunt_word word)
{
	return (size_t)(word.end - word.at);
}

bool shunt_word_is(struct shunt_word word, const char *text)
{
	return strlen(text) == shunt_word_length(word) &&
	       !memcmp(word.at, text, shunt_word_length(word));
}

void shunt_word_show(struct shunt_word word, char text[32])
{
	size_t bytes = 0;

	for (; word.at < word.end && bytes < 31; word.at++)
		text[bytes++] = *word.at >= ' ' && *word.at <= '~' ? *word.at : '?';
	text[bytes] = 0;
}

struct shunt_word shunt_word_digits(struct shunt_word word)
{
	while (word.end > word.at && (word.end[-1] < '0' || word.end[-1] > '9'))
		word.end--;
	return word;
}

/* --- values --- */

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

bool shunt_word_name(struct shunt_word word, char *to, size_t room)
{
	if (word.at == word.end || shunt_word_length(word) >= room)
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (!is_name_character(*c))
			return false;
	memset(to, 0, room);
	memcpy(to, word.at, shunt_word_length(word));
	return true;
}

/* Digits and nothing else. */
bool shunt_word_number(struct shunt_word word, uint64_t most, uint64_t *result)
{
	uint64_t n = 0;

	if (word.at == word.end)
		return false;
	for (; word.at < word.end; word.at++) {
		if (*word.at < '0' || *word.at > '9')
			return false;
		n = n * 10 + (uint64_t)(*word.at - '0');
		if (n > most)
			return false;
	}
	*result = n;
	return true;
}

bool shunt_word_thousandths(struct shunt_word word, uint64_t most, uint64_t *result)
{
	const char *point = memchr(word.at, '.', shunt_word_length(word));
	struct shunt_word whole = { word.at, point ? point : word.end },
			  rest = { point ? point + 1 : word.end, word.end };
	uint64_t n, part = 0;

	if (!shunt_word_number(whole, most, &n) ||
	    (point && (shunt_word_length(rest) > 3 || !shunt_word_number(rest, 999, &part))))
		return false;
	for (size_t i = shunt_word_length(rest); point && i < 3; i++)
		part *= 10;
	*result = n * 1000 + part;
	return true;
}

/* --- who and where --- */

bool shunt_word_user(struct shunt_word word, char *name, size_t room, uint32_t *uid)
{
	uint64_t number;

	if (!shunt_word_number(word, UINT32_MAX - 1, &number))
		return (word.at == word.end || *word.at < '0' || *word.at > '9') &&
		       shunt_word_name(word, name, room);
	*name = 0;
	*uid = (uint32_t)number;
	return true;
}

/* As /proc has it: anything that is printable. */
bool shunt_word_program(struct shunt_word word, char *to, size_t room)
{
	if (word.at == word.end || shunt_word_length(word) >= room)
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			return false;
	memset(to, 0, room);
	memcpy(to, word.at, shunt_word_length(word));
	return true;
}

static bool parse_address(struct shunt_word word, struct shunt_network *network, uint64_t *first)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr four;

	if (shunt_word_length(word) >= sizeof(text))
		return false;
	memcpy(text, word.at, shunt_word_length(word));
	text[shunt_word_length(word)] = 0;
	memset(network->address, 0, sizeof(network->address));
	*first = 0;
	if (inet_pton(AF_INET, text, &four) != 1)
		return inet_pton(AF_INET6, text, network->address) == 1;
	network->address[10] = network->address[11] = 0xff;
	memcpy(network->address + 12, &four, 4);
	*first = 96;
	return true;
}

bool shunt_word_network(struct shunt_word word, struct shunt_network *network)
{
	const char *slash = memchr(word.at, '/', shunt_word_length(word));
	struct shunt_word address = { word.at, slash ? slash : word.end };
	uint64_t bits = 128, first;

	if (!parse_address(address, network, &first))
		return false;
	if (slash &&
	    !shunt_word_number((struct shunt_word) { slash + 1, word.end }, 128 - first, &bits))
		return false;
	network->bits = (uint32_t)(slash ? bits + first : 128);
	for (uint32_t i = network->bits; i < 128; i++)
		if (network->address[i / 8] >> (7 - i % 8) & 1)
			return false;
	return true;
}

bool shunt_network_has(const struct shunt_network *network, const uint8_t address[16])
{
	uint32_t bytes = network->bits / 8, bits = network->bits % 8;

	return !memcmp(network->address, address, bytes) &&
	       (!bits || !((network->address[bytes] ^ address[bytes]) >> (8 - bits)));
}

const char *shunt_network_text(const struct shunt_network *network, char *text, size_t room)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = network->bits >= 96 && !memcmp(network->address, mapped, sizeof(mapped));
	char host[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? network->address + 12 : network->address, host,
		  sizeof(host));
	snprintf(text, room, "%s/%u", host, network->bits - (v4 ? 96 : 0));
	return text;
}

/* --- the next one --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_statement(char c)
{
	return !c || c == '\n' || c == ';' || c == '#';
}

struct shunt_word shunt_word_next(const char **text)
{
	struct shunt_word word;

	while (is_blank(**text))
		(*text)++;
	word.at = *text;
	while (!ends_statement(**text) && !is_blank(**text))
		(*text)++;
	word.end = *text;
	return word;
}
