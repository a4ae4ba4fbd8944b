/* SPDX-License-Identifier: MIT */
/* Rows of two looks: rates, what is filtered out, their order, and the row that is selected. */
#include "tools/top/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 256 /* a stream's descriptor and addresses */

/* A process now and at the last look. */
struct pair {
	const struct shunt_stat *stat;
	const json_t *then; /* NULL: none, and no rate */
	double seconds;
};

void shunt_top_init(struct shunt_top_model *model)
{
	*model = (struct shunt_top_model) { .sort = { SHUNT_TOP_TX, SHUNT_TOP_TX },
					    .selected = -1 };
}

void shunt_top_fini(struct shunt_top_model *model)
{
	json_decref(model->picked.stream);
	free(model->rows);
	shunt_top_init(model);
}

double shunt_top_share(double tcp, double link)
{
	return tcp + link > 0 ? link / (tcp + link) : SHUNT_TOP_UNKNOWN;
}

/* ---- numbers of a row ---- */

static double number_of(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	return json_is_integer(number) ? (double)json_integer_value(number) : SHUNT_TOP_UNKNOWN;
}

/* Bytes a second of a direction, by the two tracks. */
static void rate(const struct pair *pair, const json_t *then, const json_t *now, const char *way,
		 double *tcp, double *link)
{
	const json_t *before = json_object_get(then, way), *after = json_object_get(now, way);

	*tcp = shunt_rate(before, after, "tcp", pair->seconds);
	*link = shunt_rate(before, after, "link", pair->seconds);
}

/* `then`, `now`: a stream, or the totals of a process. */
static void fill_rates(struct shunt_top_row *row, const struct pair *pair, const json_t *then,
		       const json_t *now, struct shunt_top_sum *sum)
{
	struct shunt_top_sum own;

	rate(pair, then, now, "tx", &own.tx_tcp, &own.tx_link);
	rate(pair, then, now, "rx", &own.rx_tcp, &own.rx_link);
	row->number[SHUNT_TOP_TX] = pair->then ? own.tx_tcp + own.tx_link : SHUNT_TOP_UNKNOWN;
	row->number[SHUNT_TOP_RX] = pair->then ? own.rx_tcp + own.rx_link : SHUNT_TOP_UNKNOWN;
	row->number[SHUNT_TOP_SHARE] = shunt_top_share(own.tx_tcp + own.rx_tcp,
						       own.tx_link + own.rx_link);
	if (!sum)
		return;
	sum->tx_tcp += own.tx_tcp;
	sum->tx_link += own.tx_link;
	sum->rx_tcp += own.rx_tcp;
	sum->rx_link += own.rx_link;
}

/* All limits together, and the one that was met most. */
static void fill_stalls(struct shunt_top_row *row, const struct pair *pair)
{
	json_t *stalls = json_object_get(pair->stat->process, "stalls"), *number;
	const json_t *then = json_object_get(pair->then, "stalls");
	double most = 0, all = 0;
	const char *name;

	json_object_foreach(stalls, name, number)
	{
		double met = shunt_rate(then, stalls, name, pair->seconds);

		all += met;
		if (met > most) {
			most = met;
			row->bound = name;
		}
	}
	row->number[SHUNT_TOP_STALLS] = pair->then && stalls ? all : SHUNT_TOP_UNKNOWN;
}

/* A sum over streams; unknown where no stream has the number. */
static void add_known(double *sum, double number)
{
	if (number >= 0)
		*sum = (*sum > 0 ? *sum : 0) + number;
}

static void fill_process(struct shunt_top_row *row, const struct pair *pair,
			 struct shunt_top_sum *sum)
{
	const json_t *process = pair->stat->process, *streams = json_object_get(process, "streams"),
		     *stream;
	const char *state;
	size_t i;

	*row = (struct shunt_top_row) { .stat = pair->stat, .bound = "" };
	row->number[SHUNT_TOP_PID] = pair->stat->door.pid;
	fill_rates(row, pair, json_object_get(pair->then, "totals"),
		   json_object_get(process, "totals"), sum);
	fill_stalls(row, pair);
	row->number[SHUNT_TOP_CONNECTIONS] = process ? (double)json_array_size(streams) :
						       SHUNT_TOP_UNKNOWN;
	row->number[SHUNT_TOP_SENDQ] = row->number[SHUNT_TOP_RECVQ] = SHUNT_TOP_UNKNOWN;
	json_array_foreach(streams, i, stream)
	{
		add_known(&row->number[SHUNT_TOP_SENDQ], number_of(stream, "sendq"));
		add_known(&row->number[SHUNT_TOP_RECVQ], number_of(stream, "recvq"));
		state = json_string_value(json_object_get(stream, "state"));
		sum->linked += state && !strcmp(state, "linked");
	}
	sum->streams += json_array_size(streams);
	sum->processes += process != NULL;
}

static void fill_stream(struct shunt_top_row *row, const struct pair *pair, const json_t *stream,
			const json_t *then)
{
	*row = (struct shunt_top_row) { .stat = pair->stat, .stream = stream, .bound = "" };
	row->number[SHUNT_TOP_PID] = pair->stat->door.pid;
	row->number[SHUNT_TOP_FD] = number_of(stream, "fd");
	row->number[SHUNT_TOP_SENDQ] = number_of(stream, "sendq");
	row->number[SHUNT_TOP_RECVQ] = number_of(stream, "recvq");
	fill_rates(row, pair, then, stream, NULL);
}

/* ---- the streams of the last look ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const char *key_of(const json_t *stream, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%.0f %.100s %.100s", number_of(stream, "fd"),
		 text_of(stream, "local"), text_of(stream, "peer"));
	return key;
}

/* By key: there may be very many, so shunt_rate_stream() would take too long. */
static json_t *index_of(const json_t *process)
{
	json_t *index = json_object(), *streams = json_object_get(process, "streams"), *stream;
	char key[KEY_MAX];
	size_t i;

	json_array_foreach(streams, i, stream)
		json_object_set_nocheck(index, key_of(stream, key), stream);
	return index;
}

/* ---- the rows ---- */

static bool passes(const struct shunt_top_model *model, const struct shunt_top_row *row)
{
	char cell[SHUNT_TOP_LINE];

	if (!*model->filter)
		return true;
	for (enum shunt_top_column column = 0; column < SHUNT_TOP_COLUMNS; column++)
		if (shunt_top_rank(model->view, column) >= 0 &&
		    strcasestr(shunt_top_text(row, column, cell, sizeof(cell)), model->filter))
			return true;
	return false;
}

static void add(struct shunt_top_model *model, const struct shunt_top_row *row)
{
	if (passes(model, row))
		model->rows[model->count++] = *row;
}

static void add_streams(struct shunt_top_model *model, const struct pair *pair)
{
	const json_t *streams = json_object_get(pair->stat->process, "streams"), *stream;
	struct shunt_top_row row;
	json_t *index;
	char key[KEY_MAX];
	size_t i;

	if (*model->only && strcmp(model->only, pair->stat->door.identity))
		return;
	index = index_of(pair->then);
	json_array_foreach(streams, i, stream)
	{
		fill_stream(&row, pair, stream, json_object_get(index, key_of(stream, key)));
		add(model, &row);
	}
	json_decref(index);
}

static void make_room(struct shunt_top_model *model)
{
	size_t most = model->now->count;

	for (size_t i = 0; i < model->now->count; i++)
		most += json_array_size(
			json_object_get(model->now->processes[i].process, "streams"));
	model->rows = reallocarray(model->rows, most + 1, sizeof(*model->rows));
	if (!model->rows)
		abort();
}

/* A process without statistics has a row that says why if it was named or is late: others may have ended. */
static void add_process(struct shunt_top_model *model, const struct shunt_stat *stat)
{
	const struct shunt_stat *then = model->before ? shunt_look_find(model->before, stat) : NULL;
	struct pair pair = { stat, then ? then->process : NULL, then ? stat->at - then->at : 0 };
	struct shunt_top_row row;

	fill_process(&row, &pair, &model->sum);
	if (model->view == SHUNT_TOP_STREAMS)
		add_streams(model, &pair);
	else if (stat->process || stat->late || model->named)
		add(model, &row);
}

/* ---- their order ---- */

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

/* The largest number first, and the first word. */
static int compare_by(const struct shunt_top_row *a, const struct shunt_top_row *b,
		      enum shunt_top_column column)
{
	char x[SHUNT_TOP_LINE], y[SHUNT_TOP_LINE];

	if (column == SHUNT_TOP_PID || column == SHUNT_TOP_FD)
		return compare_numbers(a->number[column], b->number[column]);
	if (shunt_top_numeric(column))
		return compare_numbers(b->number[column], a->number[column]);
	return strcasecmp(shunt_top_text(a, column, x, sizeof(x)),
			  shunt_top_text(b, column, y, sizeof(y)));
}

/* Equal rows have always the same order. */
static int compare(const void *one, const void *other, void *of)
{
	const struct shunt_top_row *a = one, *b = other;
	const struct shunt_top_model *model = of;
	int order = compare_by(a, b, model->sort[model->view]);

	if (order)
		return model->reversed ? -order : order;
	order = compare_numbers(a->number[SHUNT_TOP_PID], b->number[SHUNT_TOP_PID]);
	if (!order)
		order = strcmp(a->stat->door.identity, b->stat->door.identity);
	if (!order)
		order = compare_numbers(a->number[SHUNT_TOP_FD], b->number[SHUNT_TOP_FD]);
	return order;
}

/* ---- what is selected ---- */

static bool is_picked(const struct shunt_top_model *model, const struct shunt_top_row *row)
{
	char a[KEY_MAX], b[KEY_MAX];

	if (strcmp(row->stat->door.identity, model->picked.identity) ||
	    !row->stream != !model->picked.stream)
		return false;
	return !row->stream || !strcmp(key_of(row->stream, a), key_of(model->picked.stream, b));
}

static void find_picked(struct shunt_top_model *model)
{
	ssize_t last = model->selected;

	model->selected = -1;
	if (!*model->picked.identity)
		return;
	for (size_t i = 0; i < model->count && model->selected < 0; i++)
		if (is_picked(model, &model->rows[i]))
			model->selected = (ssize_t)i;
	if (model->selected < 0)
		shunt_top_select(model, last); /* it is gone: the row that has its place */
}

void shunt_top_select(struct shunt_top_model *model, ssize_t row)
{
	json_t *old = model->picked.stream;

	if (row >= (ssize_t)model->count)
		row = (ssize_t)model->count - 1;
	model->selected = row < 0 ? -1 : row;
	model->picked.identity[0] = '\0';
	model->picked.stream = NULL;
	if (model->selected >= 0) {
		const struct shunt_top_row *now = &model->rows[row];

		memcpy(model->picked.identity, now->stat->door.identity,
		       sizeof(model->picked.identity));
		model->picked.stream = json_incref((json_t *)now->stream);
	}
	json_decref(old);
}

/* ---- the whole ---- */

void shunt_top_arrange(struct shunt_top_model *model)
{
	model->count = 0;
	model->sum = (struct shunt_top_sum) { 0 };
	if (!model->now)
		return;
	make_room(model);
	for (size_t i = 0; i < model->now->count; i++)
		add_process(model, &model->now->processes[i]);
	qsort_r(model->rows, model->count, sizeof(*model->rows), compare, model);
	find_picked(model);
}

void shunt_top_take(struct shunt_top_model *model, const struct shunt_look *before,
		    const struct shunt_look *now)
{
	model->before = before;
	model->now = now;
	shunt_top_arrange(model);
}
