/* SPDX-License-Identifier: MIT */
/* All rows of the table for all processes of a look. */
#include "tools/metrics/metrics.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/stat/stat.h"

struct owner {
	const json_t *process;
	const char *host; /* NULL: this one */
	char labels[3 * SHUNT_METRICS_LABEL + 32];
};

#define HOST_ROOM (SHUNT_METRICS_LABEL + 16)

/* This host's processes have no such label: whoever scrapes knows where. `before` stands before it. */
static const char *host_label(const char *before, const char *host, char text[HOST_ROOM])
{
	*text = '\0';
	if (host)
		snprintf(text, HOST_ROOM, "%shost=\"%s\"", before, host);
	return text;
}

/* Of several doors of one process the first counts. How many processes there are. */
static size_t list_owners(const struct shunt_look *look, struct owner *owners)
{
	size_t count = 0;
	json_t *seen = json_object();

	for (size_t i = 0; i < look->count; i++) {
		const struct shunt_stat *stat = &look->processes[i];
		char name[SHUNT_DOOR_TEXT], program[SHUNT_METRICS_LABEL];
		char host[HOST_ROOM], key[HOST_ROOM + SHUNT_DOOR_TEXT];

		shunt_door_text(&stat->door, name);
		snprintf(key, sizeof(key), "%s%s", name, host_label(",", stat->host, host));
		if (!stat->process || json_object_get(seen, key))
			continue;
		json_object_set_new(seen, key, json_true());
		if (!shunt_metrics_label(json_object_get(stat->process, "program"), program))
			*program = '\0';
		owners[count].process = stat->process;
		owners[count].host = stat->host;
		snprintf(owners[count++].labels, sizeof(owners->labels),
			 "pid=\"%s\",program=\"%s\"%s", name, program, host);
	}
	json_decref(seen);
	return count;
}

static const struct shunt_metric of_a_look[] = {
	{ .name = "shunt_processes", .help = "Processes that have answered", .type = SHUNT_GAUGE },
	{ .name = "shunt_processes_late",
	  .help = "Processes that have not answered in time",
	  .type = SHUNT_GAUGE },
	{ .name = "shunt_doors_shut",
	  .help = "Sockets of unknown processes that could not be asked",
	  .type = SHUNT_GAUGE },
};

#define OF_A_LOOK (sizeof(of_a_look) / sizeof(of_a_look[0]))

static const struct shunt_metric of_a_host = {
	.name = "shunt_host_up",
	.help = "Does another host answer? Its processes have its name as a label",
	.type = SHUNT_GAUGE
};

static json_int_t count_on(const char *host, const struct owner *owners, size_t count)
{
	json_int_t its = 0;

	for (size_t i = 0; i < count; i++)
		its += owners[i].host == host;
	return its;
}

static void put_hosts(FILE *file, const struct shunt_look *look, const struct shunt_metric *metric,
		      const struct owner *owners, size_t count)
{
	for (size_t i = 0; i < look->host_count; i++) {
		const struct shunt_look_host *host = &look->hosts[i];
		char label[HOST_ROOM];

		shunt_metrics_line(file, metric, "", host_label("", host->name, label),
				   metric == &of_a_host ? host->up :
							  count_on(host->name, owners, count));
	}
}

static void put_look(FILE *file, const struct shunt_look *look, enum shunt_metrics_format format,
		     const struct owner *owners, size_t count)
{
	json_int_t numbers[OF_A_LOOK] = { count_on(NULL, owners, count), 0,
					  (json_int_t)look->shut };

	for (size_t i = 0; i < look->count; i++)
		numbers[1] += look->processes[i].late;
	for (size_t i = 0; i < OF_A_LOOK; i++) {
		shunt_metrics_head(file, &of_a_look[i], format);
		shunt_metrics_line(file, &of_a_look[i], "", "", numbers[i]);
		if (!i)
			put_hosts(file, look, &of_a_look[i], owners, count);
	}
	if (!look->host_count)
		return;
	shunt_metrics_head(file, &of_a_host, format);
	put_hosts(file, look, &of_a_host, owners, count);
}

static bool same_family(size_t i, size_t j)
{
	return j < shunt_metric_count && !strcmp(shunt_metrics[i].name, shunt_metrics[j].name);
}

static bool is_first(size_t i)
{
	return !i || !same_family(i - 1, i);
}

/* The request: a format, and the processes. */
struct page {
	FILE *file;
	enum shunt_metrics_format format;
	bool detail;
	struct owner *owners;
	size_t count;
};

/* All lines of a family are neighbours, as both formats want it. */
static void put_family(const struct page *page, size_t first)
{
	bool begun = false;

	for (size_t i = first; same_family(first, i); i++)
		for (size_t j = 0; j < page->count && (page->detail || !shunt_metrics[i].detail);
		     j++)
			shunt_metrics_row(
				&(struct shunt_metrics_row) { .file = page->file,
							      .metric = &shunt_metrics[i],
							      .process = page->owners[j].process,
							      .owner = page->owners[j].labels,
							      .format = page->format,
							      .begun = &begun });
}

char *shunt_metrics_text(const struct shunt_look *look, enum shunt_metrics_format format,
			 bool detail, size_t *bytes)
{
	struct page page = { .format = format, .detail = detail };
	char *text = NULL;

	page.owners = calloc(look->count + 1, sizeof(*page.owners));
	page.file = open_memstream(&text, bytes);
	if (!page.owners || !page.file)
		abort();
	page.count = list_owners(look, page.owners);
	put_look(page.file, look, format, page.owners, page.count);
	for (size_t i = 0; i < shunt_metric_count; i++)
		if (is_first(i))
			put_family(&page, i);
	fputs("# EOF\n", page.file);
	if (fclose(page.file))
		abort();
	free(page.owners);
	return text;
}

static void list(FILE *file, const struct shunt_metric *metric)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };

	fprintf(file, "%s%s\t%s\t%s\t%s\n", metric->name,
		metric->type == SHUNT_COUNTER ? "_total" : "", types[metric->type], metric->help,
		metric->path ? metric->path : "");
}

void shunt_metrics_list(FILE *file)
{
	for (size_t i = 0; i < OF_A_LOOK; i++)
		list(file, &of_a_look[i]);
	list(file, &of_a_host);
	for (size_t i = 0; i < shunt_metric_count; i++)
		if (is_first(i))
			list(file, &shunt_metrics[i]);
}
