/* SPDX-License-Identifier: MIT */
/* The models, by name. */
#include "tools/perf/perf.h"

#include <string.h>

#define WORDS_MAX 6 /* one more than any model has */
#define ACKNOWLEDGEMENT 16	/* bytes of a reply that only says that the request has come */

const char perf_model_help[] =
	"  pingpong[:BYTES]      request and reply of as many bytes [64]\n"
	"  rr:Q:A[:CONNS]        request of Q bytes and answer of A bytes, each up to 16M\n"
	"  stream[:BYTES]        one way, writes of so many bytes [128K]\n"
	"  cluster:SIZE[:US[:BYTES]]\n"
	"                        clusters of requests [64 bytes], and an idle time between the last\n"
	"                        reply of one and the next [100 us]. SIZE is a number; small: 1; large:\n"
	"                        the smallest with which throughput is at its maximum, found by\n"
	"                        measuring first; medium: between the two\n"
	"  incast:N[:BYTES]      N senders into one reader, which acknowledges each request [64K]\n"
	"  mix[:ELEPHANTS[:MICE]]\n"
	"                        bulk streams [2] beside connections of small requests with 1 ms of\n"
	"                        idle time between them [16]\n"
	"  mix:READS:WRITES:S:L[:CONNS]\n"
	"                        of 100 requests, READS have S bytes and an answer of L, as a read of a\n"
	"                        store has; WRITES have L bytes and an answer of S, evenly spread and\n"
	"                        counted apart; as mix:95:5:64:4K\n"
	"  flow:SIZE:COUNT:US:CONNS\n"
	"                        so many connections; on each COUNT requests of SIZE bytes at once,\n"
	"                        which are acknowledged, then an idle time\n";

struct words {
	char *list[WORDS_MAX];	/* after the name of the model */
	size_t count;
};

/* A word, or its default if it is missing: 0, or -1. */
static int number(const struct words *words, size_t index, uint32_t other, uint64_t min, uint64_t max,
		  uint32_t *value)
{
	uint64_t n = other;

	if (index < words->count && perf_number(words->list[index], min, max, &n))
		return -1;
	*value = (uint32_t)n;
	return 0;
}

static int bytes(const struct words *words, size_t index, uint32_t other, uint32_t *value)
{
	return number(words, index, other, 1, PERF_MESSAGE_MAX, value);
}

static const char *parse_pingpong(struct perf_model *model, const struct words *words)
{
	struct perf_flow *flow = &model->flows[0];

	if (words->count > 1 || bytes(words, 0, 64, &flow->sizes.request))
		return "pingpong[:BYTES], 1 to 1M bytes";
	flow->sizes.reply = flow->sizes.request;
	return NULL;
}

static int large(const struct words *words, size_t index, uint32_t *value)
{
	return number(words, index, 0, 1, PERF_LARGE_MAX, value);
}

/* Every connection may have buffers of its own for a request and an answer, at both ends. */
static bool is_too_much(const struct perf_flow *flow)
{
	return ((uint64_t)flow->sizes.request + flow->sizes.reply) * flow->conns > 1U << 30;
}

static const char *parse_rr(struct perf_model *model, const struct words *words)
{
	struct perf_flow *flow = &model->flows[0];

	if (words->count < 2 || words->count > 3 || large(words, 0, &flow->sizes.request) ||
	    large(words, 1, &flow->sizes.reply) ||
	    number(words, 2, 1, 1, PERF_CONNS_MAX, &flow->conns) || is_too_much(flow))
		return "rr:Q:A[:CONNS], 1 to 16M bytes each, 1 to 1024 connections, 1G bytes for all";
	return NULL;
}

static const char *parse_stream(struct perf_model *model, const struct words *words)
{
	if (words->count > 1 || bytes(words, 0, 128 << 10, &model->flows[0].sizes.request))
		return "stream[:BYTES], 1 to 1M bytes";
	return NULL;
}

static const char *parse_cluster(struct perf_model *model, const struct words *words)
{
	static const char help[] = "cluster:SIZE[:US[:BYTES]], SIZE small, medium, large or 1 to 4096, "
				   "1 to 10000000 us, 1 to 1M bytes";
	struct perf_flow *flow = &model->flows[0];
	uint32_t size = 1;

	if (words->count < 1 || words->count > 3 ||
	    number(words, 1, 100, 1, PERF_INTERVAL_MAX, &flow->interval_us) ||
	    bytes(words, 2, 64, &flow->sizes.request))
		return help;
	flow->sizes.reply = flow->sizes.request;
	if (!strcmp(words->list[0], "medium"))
		model->cluster = PERF_CLUSTER_MEDIUM;
	else if (!strcmp(words->list[0], "large"))
		model->cluster = PERF_CLUSTER_LARGE;
	else if (strcmp(words->list[0], "small") &&
		 number(words, 0, 1, 1, PERF_DEPTH_MAX, &size))
		return help;
	perf_model_set_cluster(model, size);
	return NULL;
}

static const char *parse_incast(struct perf_model *model, const struct words *words)
{
	struct perf_flow *flow = &model->flows[0];

	if (words->count < 1 || words->count > 2 ||
	    number(words, 0, 1, 1, PERF_CONNS_MAX, &flow->conns) ||
	    bytes(words, 1, 64 << 10, &flow->sizes.request))
		return "incast:N[:BYTES], 1 to 1024 senders, 1 to 1M bytes";
	flow->sizes.reply = ACKNOWLEDGEMENT;
	return NULL;
}

/* Both kinds go over the same connections, so the second flow has none of its own. */
static const char *parse_reads_and_writes(struct perf_model *model, const struct words *words)
{
	struct perf_flow *reads = &model->flows[0], *writes = &model->flows[1];
	uint32_t share;

	if (words->count > 5 || number(words, 0, 0, 1, 99, &share) ||
	    number(words, 1, 0, 1, 99, &reads->sizes.writes) ||
	    share + reads->sizes.writes != 100 || large(words, 2, &reads->sizes.request) ||
	    large(words, 3, &reads->sizes.reply) ||
	    number(words, 4, 1, 1, PERF_CONNS_MAX, &reads->conns) || is_too_much(reads))
		return "mix:READS:WRITES:S:L[:CONNS], READS and WRITES together 100, 1 to 16M bytes "
		       "each, 1 to 1024 connections, 1G bytes for all";
	*writes = *reads;
	writes->sizes = (struct perf_sizes) { .request = reads->sizes.reply,
					      .reply = reads->sizes.request };
	writes->conns = 0;
	model->flow_count = 2;
	model->flow_names[0] = "reads";
	model->flow_names[1] = "writes";
	return NULL;
}

static const char *parse_mix(struct perf_model *model, const struct words *words)
{
	struct perf_flow *elephants = &model->flows[0], *mice = &model->flows[1];

	if (words->count >= 4)
		return parse_reads_and_writes(model, words);
	*mice = *elephants;
	if (words->count > 2 || number(words, 0, 2, 1, PERF_CONNS_MAX / 2, &elephants->conns) ||
	    number(words, 1, 16, 1, PERF_CONNS_MAX / 2, &mice->conns))
		return "mix[:ELEPHANTS[:MICE]], 1 to 512 connections each; or mix:READS:WRITES:S:L[:CONNS]";
	model->flow_count = 2;
	model->flow_names[0] = "elephants";
	model->flow_names[1] = "mice";
	elephants->sizes.request = 128 << 10;
	mice->sizes.request = mice->sizes.reply = 64;
	mice->burst = mice->depth;
	mice->interval_us = 1000;
	return NULL;
}

static const char *parse_flow(struct perf_model *model, const struct words *words)
{
	struct perf_flow *flow = &model->flows[0];
	uint32_t count;

	if (words->count != 4 || bytes(words, 0, 1, &flow->sizes.request) ||
	    number(words, 1, 1, 1, PERF_DEPTH_MAX, &count) ||
	    number(words, 2, 0, 0, PERF_INTERVAL_MAX, &flow->interval_us) ||
	    number(words, 3, 1, 1, PERF_CONNS_MAX, &flow->conns))
		return "flow:SIZE:COUNT:US:CONNS, 1 to 1M bytes, 1 to 4096 requests, 0 to 10000000 us, "
		       "1 to 1024 connections";
	flow->sizes.reply = ACKNOWLEDGEMENT;
	perf_model_set_cluster(model, count);
	return NULL;
}

/* They return how it should have been written, or NULL. */
static const struct {
	const char *name;
	const char *(*parse)(struct perf_model *model, const struct words *words);
} kinds[] = {
	{ "pingpong", parse_pingpong }, { "rr", parse_rr },	    { "stream", parse_stream },
	{ "cluster", parse_cluster },	{ "incast", parse_incast }, { "mix", parse_mix },
	{ "flow", parse_flow },
};

/* Returns the name. */
static const char *split(char *text, struct words *words)
{
	const char *name = strsep(&text, ":");
	char *word;

	words->count = 0;
	while (words->count < WORDS_MAX && (word = strsep(&text, ":")))
		words->list[words->count++] = word;
	return name;
}

int perf_model_parse(struct perf_model *model, const char *text, uint32_t depth,
		     char why[SHUNT_WHY_MAX])
{
	char copy[PERF_NAME_MAX];
	const char *name, *right;
	struct words words;

	memset(model, 0, sizeof(*model));
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, SHUNT_WHY_MAX, "a model is shorter than %d characters", PERF_NAME_MAX);
		return -1;
	}
	strcpy(model->name, text);
	strcpy(copy, text);
	model->depth = depth;
	model->flow_count = 1;
	model->flow_names[0] = "";
	model->flows[0] = (struct perf_flow){ .depth = depth ? depth : 1, .conns = 1 };
	name = split(copy, &words);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name))
			continue;
		right = kinds[i].parse(model, &words);
		if (right)
			snprintf(why, SHUNT_WHY_MAX, "not %s", right);
		return right ? -1 : 0;
	}
	snprintf(why, SHUNT_WHY_MAX,
		 "models are pingpong, rr, stream, cluster, incast, mix and flow");
	return -1;
}

int perf_model_open(struct perf_model *model, const struct perf_open *open, char why[SHUNT_WHY_MAX])
{
	size_t length = strlen(model->name);

	if (!model->flows[0].sizes.reply || model->flows[0].burst ||
	    (model->flow_count > 1 && model->flows[1].conns)) {
		snprintf(why, SHUNT_WHY_MAX,
			 "--rate is for models whose requests are all alike and have answers: "
			 "pingpong, rr, incast and mix:READS:WRITES:S:L");
		return -1;
	}
	model->open = *open;
	if (snprintf(model->name + length, sizeof(model->name) - length, "@%s%u",
		     open->arrivals == PERF_POISSON ? "p" : "",
		     open->rate) < (int)(sizeof(model->name) - length))
		return 0;
	snprintf(why, SHUNT_WHY_MAX, "its name has no room for the rate");
	return -1;
}

uint32_t perf_model_conns(const struct perf_model *model)
{
	uint32_t conns = 0;

	for (size_t f = 0; f < model->flow_count; f++)
		conns += model->flows[f].conns;
	return conns;
}

void perf_model_set_cluster(struct perf_model *model, uint32_t requests)
{
	struct perf_flow *flow = &model->flows[0];

	flow->burst = requests;
	flow->depth = model->depth && model->depth < requests ? model->depth : requests;
}
