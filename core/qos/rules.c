/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "core/qos/rules_words.h"

/* "1s", "500ms" */
static int parse_period(const struct shunt_rules_parser *parser, const char **text)
{
	struct shunt_word word = shunt_word_next(text), digits = shunt_word_digits(word);
	uint64_t n = 0, unit = 0;

	if (shunt_word_is((struct shunt_word) { digits.end, word.end }, "s"))
		unit = 1000;
	if (shunt_word_is((struct shunt_word) { digits.end, word.end }, "ms"))
		unit = 1;
	if (!unit || !shunt_word_number(digits, 10000, &n) || n * unit < 100 || n * unit > 10000)
		return shunt_rules_wrong(parser, word.at, "a period is 100ms to 10s");
	parser->rules->period_ms = (uint32_t)(n * unit);
	return 0;
}

static int parse_batch(struct shunt_rules_parser *parser, const char **text)
{
	struct shunt_word word = shunt_word_next(text);
	uint64_t n;

	if (parser->batch_at)
		return shunt_rules_wrong(parser, word.at, "a batch comes twice, and may once");
	if (!shunt_word_number(word, SHUNT_QOS_BATCH, &n) || !n)
		return shunt_rules_wrong(parser, word.at, "a batch is 1 to %d tokens",
					 SHUNT_QOS_BATCH);
	parser->batch_at = word.at;
	parser->rules->batch = (uint32_t)n;
	return 0;
}

static int parse_statement(struct shunt_rules_parser *parser, const char **text)
{
	struct shunt_word word = shunt_word_next(text);
	char shown[32];
	int result = 0;

	if (word.at == word.end)
		return 0;
	shunt_word_show(word, shown);
	if (shunt_word_is(word, "class"))
		result = shunt_rules_class(parser, text);
	else if (shunt_word_is(word, "period"))
		result = parse_period(parser, text);
	else if (shunt_word_is(word, "capacity"))
		result = shunt_rules_capacity(parser, text);
	else if (shunt_word_is(word, "batch"))
		result = parse_batch(parser, text);
	else
		result = shunt_rules_wrong(
			parser, word.at,
			"'%s' is no statement: class, period, capacity or batch is allowed", shown);
	if (result)
		return result;
	word = shunt_word_next(text);
	shunt_word_show(word, shown);
	return word.at == word.end ?
		       0 :
		       shunt_rules_wrong(parser, word.at,
					 "'%s' is too much: the statement ends before it", shown);
}

int shunt_qos_parse(const char *text, const char *source, struct shunt_qos_rules *rules,
		    char *error, size_t bytes)
{
	struct shunt_rules_parser parser = {
		.source = source, .text = text, .rules = rules, .error = error, .bytes = bytes
	};
	int result = 0;

	memset(rules, 0, sizeof(*rules));
	rules->period_ms = 1000;
	rules->batch = SHUNT_QOS_BATCH;
	while (!result && *text) {
		result = parse_statement(&parser, &text);
		if (*text == '#')
			text += strcspn(text, "\n");
		text += *text == '\n' || *text == ';';
	}
	return result ? result : shunt_rules_check(&parser);
}
