/* SPDX-License-Identifier: MIT */
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/api.h"
#include "core/base/config.h"
#include "tools/common/output.h"
#include "tools/doctor/findings.h"
#include "tools/plan/footprint.h"
#include "tools/shunt.h"

#define CONNECTIONS_MAX 100000000u
#define SETS_MAX 4096u

struct planned {
	struct shunt_config config;
	struct shunt_plan plan;
	struct shunt_footprint footprint;
	struct shunt_findings findings;
};

/* --- the wish --- */

static bool number_of(const char *text, uint64_t most, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*number = strtoull(text, &end, 10);
	return !*end && *number >= 1 && *number <= most;
}

static bool device_of(const char *text, bool *verbs)
{
	*verbs = !strcmp(text, "verbs");
	return *verbs || !strcmp(text, "soft");
}

/* One word with its value. */
static bool take(struct shunt_plan *plan, const char *word, const char *value)
{
	if (!strcmp(word, "connections"))
		return number_of(value, CONNECTIONS_MAX, &plan->connections);
	if (!strcmp(word, "peers"))
		return number_of(value, CONNECTIONS_MAX, &plan->peers);
	if (!strcmp(word, "sets"))
		return number_of(value, SETS_MAX, &plan->sets);
	return !strcmp(word, "device") && device_of(value, &plan->verbs);
}

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt doctor: --plan: %s '%s'; `shunt doctor --help` says how\n", what,
		text);
	return EXIT_USAGE;
}

static int parse(const char *text, struct shunt_plan *plan)
{
	char *copy = strdup(text), *rest = copy, *word;
	int rc = 0;

	if (!copy)
		abort();
	while (!rc && (word = strsep(&rest, ",")) != NULL) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (!value || !take(plan, word, value))
			rc = usage_error("no such word, or no such value:", word);
	}
	free(copy);
	if (!rc && !plan->connections)
		rc = usage_error("it needs connections=N:", text);
	if (!rc && plan->peers > plan->connections)
		rc = usage_error("more peers than connections:", text);
	return rc;
}

static const char *variable(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static void complain(const char *line, void *arg)
{
	shunt_findings_add(arg, SHUNT_BAD, "setting", "%s", line);
}

/* --- what is said of it --- */

/* "12.3 MiB"; `text` has 16 bytes. */
static const char *mib(uint64_t bytes, char *text)
{
	snprintf(text, 16, "%.1f MiB", (double)bytes / (1 << 20));
	return text;
}

static uint64_t limit_of(__rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static uint64_t available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX / 1024;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

static uint64_t locked_of(const struct planned *planned)
{
	const struct shunt_footprint *footprint = &planned->footprint;

	return planned->plan.verbs ? footprint->registered + footprint->queues : 0;
}

static uint64_t locked_most(const struct planned *planned)
{
	const struct shunt_footprint *footprint = &planned->footprint;

	return planned->plan.verbs ? footprint->registered_most + footprint->queues : 0;
}

static void say_links(struct planned *planned)
{
	const struct shunt_footprint *footprint = &planned->footprint;
	struct shunt_findings *findings = &planned->findings;
	uint64_t left = planned->plan.connections - footprint->linked;

	shunt_findings_add(findings, left ? SHUNT_WARN : SHUNT_WELL, "links",
			   "%" PRIu64 " with %" PRIu64 " queue pairs, for %" PRIu64 " connections",
			   footprint->links, footprint->lanes, footprint->linked);
	if (footprint->links < planned->plan.peers)
		shunt_findings_advise(
			findings,
			"%" PRIu64
			" connections stay on TCP: completion queues have room for no more "
			"queue pairs. SHUNT_TUNE=lanes=1 makes fewer",
			left);
	else if (left)
		shunt_findings_advise(
			findings,
			"%" PRIu64
			" connections stay on TCP: a link has room for no more. Spread them "
			"over more processes, or raise SHUNT_TUNE=arena",
			left);
}

static void say_memory(struct planned *planned)
{
	const struct shunt_footprint *footprint = &planned->footprint;
	struct shunt_findings *findings = &planned->findings;
	bool fits = footprint->used <= available();
	char idle[16], used[16], most[16];

	shunt_findings_add(findings, fits ? SHUNT_WELL : SHUNT_BAD, "memory",
			   "%s with all connections in use, %s with all idle, %s at most",
			   mib(footprint->used, used), mib(footprint->idle, idle),
			   mib(footprint->most, most));
	if (!fits)
		shunt_findings_advise(findings, "this machine has %s left", mib(available(), idle));
}

static void say_locked(struct planned *planned)
{
	struct shunt_findings *findings = &planned->findings;
	uint64_t locked = locked_of(planned), limit = limit_of(RLIMIT_MEMLOCK);
	bool fits = locked <= limit;
	char now[16], queues[16], most[16];

	if (!planned->plan.verbs) {
		shunt_findings_add(findings, SHUNT_WELL, "memlock",
				   "no locked memory: shared memory is not locked");
		return;
	}
	shunt_findings_add(findings, fits ? SHUNT_WELL : SHUNT_BAD, "memlock",
			   "%s of locked memory in %" PRIu64
			   " regions, and of it %s for queues as mlx5 makes them; %s at most",
			   mib(locked, now), planned->footprint.regions,
			   mib(planned->footprint.queues, queues), mib(locked_most(planned), most));
	if (!fits)
		shunt_findings_advise(findings,
				      "raise ulimit -l, or LimitMEMLOCK= of the unit, from %s",
				      mib(limit, now));
}

static uint64_t descriptors_of(const struct planned *planned)
{
	return planned->plan.connections + planned->footprint.own_descriptors;
}

static void say_descriptors(struct planned *planned)
{
	struct shunt_findings *findings = &planned->findings;
	uint64_t count = descriptors_of(planned), limit = limit_of(RLIMIT_NOFILE);
	bool fits = count <= limit;

	shunt_findings_add(findings, fits ? SHUNT_WELL : SHUNT_BAD, "nofile",
			   "%" PRIu64 " descriptors: the connections', and %" PRIu64 " of Shunt",
			   count, planned->footprint.own_descriptors);
	if (!fits)
		shunt_findings_advise(findings,
				      "raise ulimit -n, or LimitNOFILE= of the unit, from %" PRIu64,
				      limit);
}

static json_t *plan_json(const struct planned *planned)
{
	const struct shunt_plan *plan = &planned->plan;
	const struct shunt_footprint *footprint = &planned->footprint;
	json_t *result = json_pack("{s:i, s:s, s:s, s:{s:I, s:I, s:I, s:s}}", "schema",
				   SHUNT_JSON_SCHEMA, "version", PACKAGE_VERSION, "worst",
				   shunt_grade_word(shunt_findings_worst(&planned->findings)),
				   "plan", "connections", (json_int_t)plan->connections, "peers",
				   (json_int_t)plan->peers, "sets", (json_int_t)plan->sets,
				   "device", plan->verbs ? "verbs" : "soft");

	json_object_set_new(result, "links", json_integer((json_int_t)footprint->links));
	json_object_set_new(result, "queue_pairs", json_integer((json_int_t)footprint->lanes));
	json_object_set_new(result, "linked", json_integer((json_int_t)footprint->linked));
	json_object_set_new(result, "memory",
			    json_pack("{s:I, s:I, s:I}", "idle", (json_int_t)footprint->idle,
				      "used", (json_int_t)footprint->used, "most",
				      (json_int_t)footprint->most));
	json_object_set_new(result, "registered",
			    json_pack("{s:I, s:I, s:I}", "regions", (json_int_t)footprint->regions,
				      "used", (json_int_t)footprint->registered, "most",
				      (json_int_t)footprint->registered_most));
	json_object_set_new(result, "locked",
			    json_pack("{s:I, s:I, s:I}", "used", (json_int_t)locked_of(planned),
				      "most", (json_int_t)locked_most(planned), "queues",
				      (json_int_t)footprint->queues));
	json_object_set_new(result, "descriptors",
			    json_pack("{s:I, s:I}", "all", (json_int_t)descriptors_of(planned),
				      "own", (json_int_t)footprint->own_descriptors));
	json_object_set_new(result, "rows", shunt_findings_json(&planned->findings));
	return result;
}

static void show(const struct planned *planned)
{
	printf("a process with %" PRIu64 " connections to %" PRIu64 " %s, %s:\n",
	       planned->plan.connections, planned->plan.peers,
	       planned->plan.peers == 1 ? "process" : "processes",
	       planned->plan.verbs ? "over an RDMA device" : "within this host");
	shunt_findings_show(&planned->findings);
}

int shunt_plan_say(const char *text, bool json, bool strict)
{
	struct planned planned = { .plan = { .peers = 1, .sets = 1 } };
	int rc = parse(text, &planned.plan);
	enum shunt_grade worst;
	json_t *said;

	if (rc)
		return rc;
	planned.plan.config = &planned.config;
	shunt_config_load(&planned.config, variable, NULL, complain, &planned.findings);
	shunt_footprint(&planned.plan, &planned.footprint);
	say_links(&planned);
	say_memory(&planned);
	say_locked(&planned);
	say_descriptors(&planned);
	if (json) {
		said = plan_json(&planned);
		shunt_print_json(stdout, said, JSON_INDENT(2));
		json_decref(said);
	} else {
		show(&planned);
	}
	worst = shunt_findings_worst(&planned.findings);
	shunt_findings_free(&planned.findings);
	return worst == SHUNT_BAD || (worst == SHUNT_WARN && strict) ? EXIT_FAILED : 0;
}
