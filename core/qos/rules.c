/* SPDX-License-Identifier: MIT */
#include "core/qos/rules.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/qos/tokens.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS "user, program, host, port, declared or limit"
#define RATES "a number up to 1000000 with at most three decimals, and Mbit, Gbit, Kops or Mops"

struct parser {
	const char *source, *text; /* all of it */
	struct shunt_qos_rules *rules;
	char *error;
	size_t bytes;
};

struct word {
	const char *at, *end;
};

static size_t length_of(struct word word)
{
	return (size_t)(word.end - word.at);
}

static bool is(struct word word, const char *text)
{
	return strlen(text) == length_of(word) && !memcmp(word.at, text, length_of(word));
}

/* A text of anybody's: what is no printable ASCII is shown as a question mark. */
static void show(struct word word, char text[32])
{
	size_t bytes = 0;

	for (; word.at < word.end && bytes < 31; word.at++)
		text[bytes++] = *word.at >= ' ' && *word.at <= '~' ? *word.at : '?';
	text[bytes] = 0;
}

__attribute__((format(printf, 3, 4))) static int wrong(const struct parser *parser, const char *at,
						       const char *format, ...)
{
	unsigned int line = 1, column = 1;
	va_list arguments;
	int length;

	if (!parser->error || !parser->bytes)
		return -EINVAL;
	for (const char *c = parser->text; c < at; c++) {
		column = *c == '\n' ? 1 : column + 1;
		line += *c == '\n';
	}
	length = snprintf(parser->error, parser->bytes, "%s:%u:%u: ", parser->source, line, column);
	va_start(arguments, format);
	if (length >= 0 && (size_t)length < parser->bytes)
		vsnprintf(parser->error + length, parser->bytes - (size_t)length, format,
			  arguments);
	va_end(arguments);
	return -EINVAL;
}

/* --- values --- */

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

static bool name(struct word word, char *to, size_t room)
{
	if (word.at == word.end || length_of(word) >= room)
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (!is_name_character(*c))
			return false;
	memset(to, 0, room);
	memcpy(to, word.at, length_of(word));
	return true;
}

bool shunt_qos_name_is_sound(const char text[SHUNT_QOS_NAME])
{
	size_t length = strnlen(text, SHUNT_QOS_NAME);

	for (size_t i = 0; i < length; i++)
		if (!is_name_character(text[i]))
			return false;
	for (size_t i = length; i < SHUNT_QOS_NAME; i++)
		if (text[i])
			return false;
	return length && length < SHUNT_QOS_NAME;
}

/* Digits and nothing else. */
static bool number(struct word word, uint64_t most, uint64_t *result)
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

/* "2.5": in thousandths. */
static bool thousandths(struct word word, uint64_t most, uint64_t *result)
{
	const char *point = memchr(word.at, '.', length_of(word));
	struct word whole = { word.at, point ? point : word.end },
		    rest = { point ? point + 1 : word.end, word.end };
	uint64_t n, part = 0;

	if (!number(whole, most, &n) ||
	    (point && (length_of(rest) > 3 || !number(rest, 999, &part))))
		return false;
	for (size_t i = length_of(rest); point && i < 3; i++)
		part *= 10;
	*result = n * 1000 + part;
	return true;
}

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

static bool rate(struct word word, uint64_t *result)
{
	struct word digits = word;
	uint64_t n;

	while (digits.end > digits.at && (digits.end[-1] < '0' || digits.end[-1] > '9'))
		digits.end--;
	for (size_t i = 0; i < COUNT(units); i++) {
		unsigned __int128 all;

		if (!is((struct word) { digits.end, word.end }, units[i].name) ||
		    !thousandths(digits, 1000000, &n))
			continue;
		all = (unsigned __int128)n * units[i].rate / 1000000000;
		*result = (uint64_t)all;
		return n && all >= SHUNT_RATE_MIN && all <= SHUNT_RATE_MAX;
	}
	return false;
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

/* "10.0.0.0/8", "::1": the address has no bit beyond those that count. */
static bool host(struct word word, struct shunt_qos_class *class)
{
	const char *slash = memchr(word.at, '/', length_of(word));
	struct word address = { word.at, slash ? slash : word.end };
	char text[INET6_ADDRSTRLEN];
	struct in_addr four;
	uint64_t bits = 128, first = 0;

	if (length_of(address) >= sizeof(text))
		return false;
	memcpy(text, address.at, length_of(address));
	text[length_of(address)] = 0;
	memset(class->host, 0, sizeof(class->host));
	if (inet_pton(AF_INET, text, &four) == 1) {
		class->host[10] = class->host[11] = 0xff;
		memcpy(class->host + 12, &four, 4);
		first = 96;
	} else if (inet_pton(AF_INET6, text, class->host) != 1) {
		return false;
	}
	if (slash && !number((struct word) { slash + 1, word.end }, 128 - first, &bits))
		return false;
	class->host_bits = (uint32_t)(slash ? bits + first : 128);
	for (uint32_t i = class->host_bits; i < 128; i++)
		if (class->host[i / 8] >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool user(struct word word, struct shunt_qos_class *class)
{
	uint64_t uid;

	if (!number(word, UINT32_MAX - 1, &uid))
		return name(word, class->user, sizeof(class->user)) &&
		       (*word.at < '0' || *word.at > '9');
	class->user[0] = 0;
	class->uid = (uint32_t)uid;
	return true;
}

/* As /proc has it: anything that is printable. */
static bool program(struct word word, struct shunt_qos_class *class)
{
	if (word.at == word.end || length_of(word) >= sizeof(class->program))
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			return false;
	memset(class->program, 0, sizeof(class->program));
	memcpy(class->program, word.at, length_of(word));
	return true;
}

static bool port(struct word word, struct shunt_qos_class *class)
{
	uint64_t n;

	if (!number(word, 65535, &n) || !n)
		return false;
	class->port = (uint16_t)n;
	return true;
}

static bool declared(struct word word, struct shunt_qos_class *class)
{
	return name(word, class->declared, sizeof(class->declared));
}

static bool limit(struct word word, struct shunt_qos_class *class)
{
	class->limit = 0;
	return is(word, "none") || rate(word, &class->limit);
}

/* --- statements --- */

#define LIMIT 0x80000000u /* beside SHUNT_QOS_BY_: the key has come */

static const struct key {
	const char *name;
	uint32_t by;
	bool (*set)(struct word word, struct shunt_qos_class *class);
	const char *allowed;
} keys[] = {
	{ "user", SHUNT_QOS_BY_USER, user, "a name of up to 32 characters, or a number" },
	{ "program", SHUNT_QOS_BY_PROGRAM, program,
	  "the name of an executable, without its folder, of up to 63 characters" },
	{ "host", SHUNT_QOS_BY_HOST, host,
	  "an address, or a network ADDRESS/BITS with no bit of the address beyond those" },
	{ "port", SHUNT_QOS_BY_PORT, port, "a number from 1 to 65535" },
	{ "declared", SHUNT_QOS_BY_DECLARED, declared,
	  "a name of up to 31 letters, digits, dots, dashes and underscores" },
	{ "limit", LIMIT, limit, "none, or " RATES },
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_statement(char c)
{
	return !c || c == '\n' || c == ';' || c == '#';
}

/* The next word of the statement; an empty one at its end. */
static struct word next(const char **text)
{
	struct word word;

	while (is_blank(**text))
		(*text)++;
	word.at = *text;
	while (!ends_statement(**text) && !is_blank(**text))
		(*text)++;
	word.end = *text;
	return word;
}

static int set(const struct parser *parser, struct shunt_qos_class *class, struct word pair)
{
	const char *equals = memchr(pair.at, '=', length_of(pair));
	struct word key = { pair.at, equals ? equals : pair.end },
		    value = { equals ? equals + 1 : pair.end, pair.end };
	char text[32];

	show(key, text);
	if (is(key, "reserve"))
		return wrong(parser, pair.at, "reservations are not served yet: %s is allowed",
			     KEYS);
	for (size_t i = 0; equals && i < COUNT(keys); i++) {
		if (!is(key, keys[i].name))
			continue;
		if (class->by & keys[i].by)
			return wrong(parser, pair.at, "'%s' comes twice, and may once", text);
		class->by |= keys[i].by;
		return keys[i].set(value, class) ?
			       0 :
			       wrong(parser, value.at, "%s is %s", keys[i].name, keys[i].allowed);
	}
	return wrong(parser, pair.at, "'%s' is not KEY=VALUE with the key %s", text, KEYS);
}

static int parse_class(const struct parser *parser, const char **text)
{
	struct shunt_qos_rules *rules = parser->rules;
	struct shunt_qos_class *class = &rules->classes[rules->count];
	struct word word = next(text);
	int result = 0;

	if (rules->count == SHUNT_QOS_CLASSES)
		return wrong(parser, word.at, "more than %d classes", SHUNT_QOS_CLASSES);
	memset(class, 0, sizeof(*class));
	if (!name(word, class->name, sizeof(class->name)))
		return wrong(parser, word.at, "a class has %s", keys[4].allowed);
	for (uint32_t i = 0; i < rules->count; i++)
		if (!strcmp(rules->classes[i].name, class->name))
			return wrong(parser, word.at, "the class '%s' is there already",
				     class->name);
	for (word = next(text); !result && word.at != word.end; word = next(text))
		result = set(parser, class, word);
	class->by &= ~LIMIT;
	rules->count++;
	return result;
}

/* "1s", "500ms" */
static int parse_period(const struct parser *parser, const char **text)
{
	struct word word = next(text), digits = word;
	uint64_t n = 0, unit = 0;

	while (digits.end > digits.at && (digits.end[-1] < '0' || digits.end[-1] > '9'))
		digits.end--;
	if (is((struct word) { digits.end, word.end }, "s"))
		unit = 1000;
	if (is((struct word) { digits.end, word.end }, "ms"))
		unit = 1;
	if (!unit || !number(digits, 10000, &n) || n * unit < 100 || n * unit > 10000)
		return wrong(parser, word.at, "a period is 100ms to 10s");
	parser->rules->period_ms = (uint32_t)(n * unit);
	return 0;
}

static int parse_statement(const struct parser *parser, const char **text)
{
	struct word word = next(text);
	char shown[32];
	int result = 0;

	if (word.at == word.end)
		return 0;
	show(word, shown);
	if (is(word, "class"))
		result = parse_class(parser, text);
	else if (is(word, "period"))
		result = parse_period(parser, text);
	else if (is(word, "capacity"))
		result = wrong(
			parser, word.at,
			"a capacity belongs to reservations, which are not served yet: class or period is allowed");
	else
		result = wrong(parser, word.at, "'%s' is no statement: class or period is allowed",
			       shown);
	if (result)
		return result;
	word = next(text);
	show(word, shown);
	return word.at == word.end ? 0 :
				     wrong(parser, word.at,
					   "'%s' is too much: the statement ends before it", shown);
}

int shunt_qos_parse(const char *text, const char *source, struct shunt_qos_rules *rules,
		    char *error, size_t bytes)
{
	struct parser parser = {
		.source = source, .text = text, .rules = rules, .error = error, .bytes = bytes
	};
	int result = 0;

	memset(rules, 0, sizeof(*rules));
	rules->period_ms = 1000;
	while (!result && *text) {
		result = parse_statement(&parser, &text);
		if (*text == '#')
			text += strcspn(text, "\n");
		text += *text == '\n' || *text == ';';
	}
	return result;
}

/* --- the client --- */

static bool is_of_host(const struct shunt_qos_class *class, const uint8_t address[16])
{
	uint32_t bytes = class->host_bits / 8, bits = class->host_bits % 8;

	return !memcmp(class->host, address, bytes) &&
	       (!bits || !((class->host[bytes] ^ address[bytes]) >> (8 - bits)));
}

/* A name of a user that nobody has looked up matches no client. */
static bool meets(const struct shunt_qos_class *class, const struct shunt_qos_client *client)
{
	if (class->by & SHUNT_QOS_BY_USER &&
	    (!client->has_user || class->user[0] || class->uid != client->uid))
		return false;
	if (class->by & SHUNT_QOS_BY_PROGRAM && strcmp(class->program, client->command) &&
	    strcmp(class->program, client->program))
		return false;
	if (class->by & SHUNT_QOS_BY_HOST && !is_of_host(class, client->host))
		return false;
	if (class->by & SHUNT_QOS_BY_PORT && class->port != client->port)
		return false;
	return !(class->by & SHUNT_QOS_BY_DECLARED) || !strcmp(class->declared, client->declared);
}

uint32_t shunt_qos_match(const struct shunt_qos_rules *rules, const struct shunt_qos_client *client)
{
	for (uint32_t i = 0; i < rules->count; i++)
		if (meets(&rules->classes[i], client))
			return i;
	return SHUNT_QOS_NO_CLASS;
}
