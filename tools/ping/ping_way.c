/* SPDX-License-Identifier: MIT */
/* One target: the machine, the kernel's round trip, the rendezvous, and then a shunted end that uses a connection. */
#include "tools/ping/ping.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

#define SAID_MAX (1 << 20) /* bytes that a shunted end may say */
#define PATIENCE 30.0 /* seconds of a shunted end beyond its own steps */
#define STEPS 8 /* of a shunted end, each of which waits */

uint64_t ping_time(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	return json_is_integer(number) && json_integer_value(number) >= 0 ?
		       (uint64_t)json_integer_value(number) :
		       PING_NEVER;
}

static json_t *read_said(const char *path)
{
	FILE *file = fopen(path, "re");
	json_t *said = NULL;
	char *text = malloc(SAID_MAX);
	size_t length = 0;

	if (file && text)
		length = fread(text, 1, SAID_MAX, file);
	if (length && length < SAID_MAX)
		said = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	if (said && !json_is_object(said)) {
		json_decref(said);
		said = NULL;
	}
	if (file)
		fclose(file);
	free(text);
	return said;
}

struct arguments {
	char port[8], count[16], interval[16], wait[16], address[PING_ADDRESS_TEXT];
};

static void make_start(struct shunt_child_start *start, const struct shunt_pair_files *files,
		       const struct ping_options *options, char **argv)
{
	static char words[] = "SHUNT_TUNE=brief=0,refused_ms=0";
	static char *const variables[] = { words, NULL };

	*start = (struct shunt_child_start) {
		.argv = argv,
		.library = options->library,
		.stats = files->client_stats,
		.variables = variables,
		.out = files->client_out,
		.err = files->client_err,
		.dir = options->scratch,
	};
}

/* 0; -EINTR; or -1: the shunted end did not do its work, and `cause` says why. */
static int run_end(struct ping_way *way, const struct ping_options *options)
{
	struct arguments text;
	char *argv[] = { (char *)options->program,
			 "ping-end",
			 "client",
			 text.address,
			 text.port,
			 options->from ? (char *)options->from : "-",
			 text.count,
			 text.interval,
			 text.wait,
			 way->target.given ? "1" : "0",
			 NULL };
	double seconds = PATIENCE + options->wait_ms / 1000.0 * STEPS +
			 2.0 * options->count * options->interval_ms / 1000.0;
	struct shunt_child_start start;
	struct shunt_pair_files files;
	struct shunt_child child;
	int rc;

	ping_address_text(&way->target.address, text.address);
	snprintf(text.port, sizeof(text.port), "%u", way->target.port);
	snprintf(text.count, sizeof(text.count), "%u", options->count);
	snprintf(text.interval, sizeof(text.interval), "%u", options->interval_ms);
	snprintf(text.wait, sizeof(text.wait), "%u", options->wait_ms);
	shunt_scratch_pair(&files, options->scratch);
	make_start(&start, &files, options, argv);
	rc = shunt_child_start(&child, &start);
	if (!rc)
		rc = shunt_child_wait(&child, seconds);
	if (!rc)
		way->end = read_said(files.client_out);
	if (way->end)
		return 0;
	if (!rc)
		rc = -ECHILD;
	shunt_child_explain("shunted end", rc, &child, files.client_out, files.client_err,
			    way->cause.says);
	shunt_child_stop(&child);
	return rc == -EINTR ? -EINTR : -1;
}

int ping_way(struct ping_way *way, const struct ping_options *options)
{
	int rc = 0;

	way->tcp.connect_ns = way->tcp.rtt_ns = way->rendezvous.ns = PING_NEVER;
	ping_target_resolve(&way->target);
	way->here = ping_machine(&options->config);
	if (!way->target.why) {
		ping_interface(&way->target.address, options->from, way->interface);
		ping_tcp(&way->target, options, &way->tcp);
		if (!way->tcp.error) {
			ping_ask(&way->target, options, &way->rendezvous);
			rc = run_end(way, options);
		}
	}
	if (rc == -EINTR)
		return rc;
	way->far = json_object_get(way->end, "far");
	ping_cause(way);
	return 0;
}

void ping_way_free(struct ping_way *way)
{
	json_decref(way->here);
	json_decref(way->end);
	way->here = way->end = NULL;
	way->far = NULL;
}
