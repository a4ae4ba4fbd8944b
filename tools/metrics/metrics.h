/* SPDX-License-Identifier: MIT */
/*
 * The statistics of processes as metrics, for Prometheus. One table has a row for each number of a
 * process' JSON that is shown (metrics_table.c). The walk over rows and processes is in metrics.c,
 * a row's numbers in metrics_row.c, lines in metrics_text.c.
 *
 * A process may lie. A number that is missing, negative or no integer has no line. Text in labels
 * is escaped. No process can add more than a bounded number of lines. No two lines are of the same
 * series, because Prometheus would reject the scrape as a whole.
 */
#ifndef SHUNT_TOOLS_METRICS_H
#define SHUNT_TOOLS_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SHUNT_METRICS_NAMES 256 /* keys of one object that a process may have as labels */
#define SHUNT_METRICS_ELEMENTS 4096 /* of one array: streams, lanes, classes */
#define SHUNT_METRICS_BUCKETS 64 /* of a histogram */
#define SHUNT_METRICS_LABEL 128 /* bytes of a label's value, escaped; longer ones are left out */

struct shunt_look;

/*
 * Both texts end in "# EOF". The text format names a counter's family with its suffix _total, as `promtool check metrics` and
 * the collectors of text files want it; OpenMetrics names it without. Samples are the same.
 */
enum shunt_metrics_format { SHUNT_METRICS_TEXT, SHUNT_METRICS_OPEN };

enum shunt_metric_type { SHUNT_COUNTER, SHUNT_GAUGE, SHUNT_HISTOGRAM };

/* Where the numbers of a row are. */
enum shunt_metric_shape {
	SHUNT_ONE, /* the number at `path`, less that at `less` */
	SHUNT_KEYS, /* the object at `path`: a number for each key, which is the label `key` */
	SHUNT_EACH, /* the array at `path`: the number at `member` of each element */
	SHUNT_EACH_KEYS, /* the same, where an object is at `member` */
	SHUNT_SUM, /* the sum of these */
	SHUNT_COUNT, /* how many elements have the text `labels` at `member` */
	SHUNT_COUNT_KEYS, /* the same for each text that they have there, with the label `key`; "" is none */
	SHUNT_BUCKETS, /* the array at `path`: how many values had i as their logarithm to base 2 */
	SHUNT_INFO, /* 1, with labels */
};

/* Units of the JSON; metrics have base units. */
enum shunt_metric_scale { SHUNT_UNIT, SHUNT_MS, SHUNT_NS };

struct shunt_metric {
	const char *name; /* of the family, without _total; neighbours may share it */
	const char *help;
	enum shunt_metric_type type;
	enum shunt_metric_shape shape;
	enum shunt_metric_scale scale;
	const char *path, *less,
		*member; /* members of objects, with dots between them; NULL: none */
	const char *fixed; /* labels, as they are written, "track=\"tcp\""; NULL: none */
	const char
		*labels; /* "LABEL=MEMBER LABEL=MEMBER", of an element or the process; see shape */
	const char *key; /* the label of an object's keys */
	unsigned int first, last; /* buckets that have a line; the last one is +Inf */
	bool detail; /* a series for each stream or lane: only where these are wanted */
};

extern const struct shunt_metric shunt_metrics[];
extern const size_t shunt_metric_count;

/* All processes of a look. The text is to be freed; its length is in `bytes`. */
char *shunt_metrics_text(const struct shunt_look *look, enum shunt_metrics_format format,
			 bool detail, size_t *bytes);
/* The name, type and meaning of each family and the member of the JSON, a line each, separated by tabs. */
void shunt_metrics_list(FILE *file);

/* ---- metrics_row.c ---- */

/* One row, of one process. */
struct shunt_metrics_row {
	FILE *file;
	const struct shunt_metric *metric;
	const json_t *process;
	const char *owner; /* its labels */
	json_t *seen; /* the labels of elements that have lines */
	enum shunt_metrics_format format;
	bool *begun; /* the family has its head */
};

void shunt_metrics_row(struct shunt_metrics_row *row);

/* ---- metrics_text.c ---- */

/* Text as the value of a label: printable ASCII, anything else as \xNN. False: it has no room, or there is no text. */
bool shunt_metrics_label(const json_t *value, char buf[SHUNT_METRICS_LABEL]);
void shunt_metrics_head(FILE *file, const struct shunt_metric *metric,
			enum shunt_metrics_format format);
/* `suffix`: of the family's name; "": that of its type. `labels`: without braces. */
void shunt_metrics_line(FILE *file, const struct shunt_metric *metric, const char *suffix,
			const char *labels, json_int_t number);

#endif
