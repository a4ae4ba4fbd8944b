/* SPDX-License-Identifier: MIT */
#include "core/peer/verdict.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/answer.h"
#include "core/base/rule.h"
#include "core/peer/mock.h"
#include "core/peer/rendezvous.h"
#include "core/qos/facts.h"
#include "core/service.h"
#include "core/stream/traced.h"
#include "core/stream/tuple.h"

struct shunt_verdict { /* hangs off the engine; NULL: no rules */
	struct shunt_rule_list list;
	struct shunt_qos_client self; /* its names alone */
	uint64_t left, mocked; /* connections */
};

/* --- rules come into force --- */

static int find_users(struct shunt_engine *engine, struct shunt_rule_list *list, char *error,
		      size_t bytes)
{
	for (uint32_t i = 0; i < list->count; i++) {
		struct shunt_rule *rule = &list->rules[i];

		if (!rule->user[0])
			continue;
		if (!shunt_facts_user(engine, rule->user, &rule->uid)) {
			snprintf(error, bytes,
				 "rule %u: user %s is not in /etc/passwd: its number is allowed",
				 i + 1, rule->user);
			return -ENOENT;
		}
		rule->user[0] = 0;
	}
	return 0;
}

static int read_rules(struct shunt_engine *engine, const char *text, struct shunt_rule_list *list,
		      char *error, size_t bytes)
{
	char *file = text[0] == '/' ? shunt_facts_file(engine, text, error, bytes) : NULL;
	int result;

	if (text[0] == '/' && !file)
		return -ENOENT;
	result = shunt_rule_parse(file ? file : text, file ? text : "rules", list, error, bytes);
	free(file);
	return result ? result : find_users(engine, list, error, bytes);
}

/* All of the text is good, or the rules stay. */
static int put_in_force(struct shunt_engine *engine, const char *text, char *error, size_t bytes)
{
	struct shunt_verdict *verdict = calloc(1, sizeof(*verdict));

	if (!verdict) {
		snprintf(error, bytes, "out of memory");
		return -1;
	}
	if (read_rules(engine, text, &verdict->list, error, bytes)) {
		free(verdict);
		return -1;
	}
	shunt_facts_program(engine, (uint32_t)getpid(), &verdict->self);
	free(engine->verdict);
	engine->verdict = verdict;
	return 0;
}

static void drop(struct shunt_engine *engine)
{
	free(engine->verdict);
	engine->verdict = NULL;
}

void shunt_verdict_begin(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	const char *text = engine->config.rules[0] ? engine->config.rules :
						     engine->config.rule_lines;
	char error[SHUNT_RULE_ERROR];

	if (engine->ruled)
		return;
	engine->ruled = true;
	if (text[0] && strcmp(text, "off") != 0 &&
	    put_in_force(engine, text, error, sizeof(error)))
		shunt_log(SHUNT_LOG_WARN, "SHUNT_RULES: no rules are in force: %s", error);
}

/* --- a connection --- */

static const struct shunt_rule *find_rule(const struct shunt_verdict *verdict,
					  const struct shunt_tuple *tuple)
{
	const struct shunt_rule_facts facts = {
		.uid = geteuid(),
		.command = verdict->self.command,
		.program = verdict->self.program,
		.peer = tuple->peer,
		.local = tuple->local,
		.peer_port = ntohs(tuple->peer_port),
		.local_port = ntohs(tuple->local_port),
	};

	return shunt_rule_find(&verdict->list, &facts);
}

/* Links that are up are asked for rings, too. */
static void follow_sends(struct shunt_stream *stream, uint8_t word)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);

	shunt_traced_rule(engine, stream, word);
	shunt_loop_post(&engine->loop, &engine->loop.requests.trace);
}

static bool learn_tuple(struct shunt_stream *stream)
{
	shunt_lock_take(&shunt_stream_engine(stream)->streams_lock);
	if (!shunt_tuple_is_known(&stream->tuple))
		shunt_rendezvous_learn(stream);
	shunt_lock_leave(&shunt_stream_engine(stream)->streams_lock);
	return shunt_tuple_is_known(&stream->tuple);
}

/* A stream with a line was on a link before, and returns to it. */
bool shunt_verdict_leaves(struct shunt_stream *stream)
{
	struct shunt_verdict *verdict = shunt_stream_engine(stream)->verdict;
	const struct shunt_rule *rule;

	if (!verdict || stream->claim.line || !learn_tuple(stream))
		return false;
	rule = find_rule(verdict, &stream->tuple);
	if (!rule)
		return false;
	if (rule->trace)
		follow_sends(stream, rule->trace);
	switch (rule->action) {
	case SHUNT_RULE_TCP:
		verdict->left++;
		return true;
	case SHUNT_RULE_MOCK:
		verdict->mocked += atomic_exchange(&stream->mock, SHUNT_MOCK_TCP) != SHUNT_MOCK_TCP;
		return false;
	case SHUNT_RULE_LINK:
		return false;
	}
	return false;
}

/* --- the command --- */

static void verdict_show(const struct shunt_verdict *verdict, struct shunt_answer *answer)
{
	char *text;

	if (!verdict) {
		shunt_answer_put(answer, "no rules\n");
		return;
	}
	shunt_answer_put(answer, "left on TCP: %llu connections, held on TCP: %llu\n",
			 (unsigned long long)verdict->left, (unsigned long long)verdict->mocked);
	text = malloc(SHUNT_RULE_TEXT);
	if (!text)
		return;
	shunt_rule_text(&verdict->list, text);
	shunt_answer_give(answer, text, strlen(text));
}

/* The words of a line are parts of it, with a 0 for each space. */
int shunt_verdict_command(struct shunt_engine *engine, int count, char **words,
			  struct shunt_answer *answer)
{
	char why[SHUNT_RULE_ERROR];

	if (!count || (count == 1 && !strcmp(words[0], "show"))) {
		verdict_show(engine->verdict, answer);
		return 0;
	}
	for (int i = 1; i < count; i++)
		words[i][-1] = ' ';
	if (!strcmp(words[0], "off")) {
		drop(engine);
	} else if (put_in_force(engine, words[0], why, sizeof(why))) {
		shunt_answer_put(answer, "%s\n", why);
		return -1;
	}
	shunt_answer_put(answer, "for connections from now on:\n");
	verdict_show(engine->verdict, answer);
	return 0;
}
