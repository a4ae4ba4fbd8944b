/* SPDX-License-Identifier: MIT */
/* shunt top without a screen: text, or a line of JSON, for each look. */
#include "tools/top/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"
#include "tools/shunt.h"

/* ---- text ---- */

static int width_of_output(void)
{
	struct winsize size;

	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col :
									 SHUNT_COLUMNS;
}

static void show_text(const struct shunt_top_model *model, bool first)
{
	char line[SHUNT_TOP_LINE];
	int width = width_of_output();

	if (!first)
		putchar('\n');
	for (int i = 0; i < 2; i++) {
		shunt_top_head(model, i, width, line);
		puts(line);
	}
	shunt_top_titles(model, width, line);
	puts(line);
	for (size_t i = 0; i < model->count; i++) {
		shunt_top_line(model, &model->rows[i], width, line);
		puts(line);
	}
}

/* ---- JSON ---- */

static const char *text_of(const struct shunt_top_row *row, const char *key)
{
	const char *text = json_string_value(
		json_object_get(row->stream ? row->stream : row->stat->process, key));

	return text ? text : "";
}

/* Integers: bytes a second, a share in thousandths. Unknown numbers are left out. */
static void put_numbers(json_t *object, const struct shunt_top_row *row, enum shunt_top_view view)
{
	for (enum shunt_top_column column = 0; column < SHUNT_TOP_COLUMNS; column++) {
		double number = row->number[column];

		if (!shunt_top_numeric(column) || shunt_top_rank(view, column) < 0 || number < 0 ||
		    number > 9e18)
			continue;
		json_object_set_new(
			object, shunt_top_name(column),
			json_integer(
				(json_int_t)(column == SHUNT_TOP_SHARE ? number * 1000 : number)));
	}
}

static void put_words(json_t *object, const struct shunt_top_row *row)
{
	static const char *const of_streams[] = { "local",  "peer",   "state", "waits_for",
						  "reason", "detail", "held",  "left" };

	json_object_set_new(object, "identity", json_string(row->stat->door.identity));
	if (!row->stream) {
		json_object_set_new(object, "program", json_string(text_of(row, "program")));
		json_object_set_new(
			object, "reason",
			json_string(row->stat->process ? text_of(row, "reason") : row->stat->why));
		json_object_set_new(object, "bound", json_string(row->bound));
		return;
	}
	for (size_t i = 0; i < sizeof(of_streams) / sizeof(of_streams[0]); i++)
		json_object_set_new(object, of_streams[i],
				    json_string(text_of(row, of_streams[i])));
}

static json_t *rows_of(struct shunt_top_model *model, enum shunt_top_view view)
{
	json_t *rows = json_array(), *object;

	model->view = view;
	shunt_top_arrange(model);
	for (size_t i = 0; i < model->count; i++) {
		object = json_object();
		put_numbers(object, &model->rows[i], view);
		put_words(object, &model->rows[i]);
		json_array_append_new(rows, object);
	}
	return rows;
}

/* The view that is wanted stays the model's. */
static void show_json(struct shunt_top_model *model)
{
	enum shunt_top_view wanted = model->view;
	json_t *look = json_pack("{s:i, s:I}", "schema", SHUNT_JSON_SCHEMA, "at_ns",
				 (json_int_t)(shunt_seconds() * 1e9));

	json_object_set_new(look, "processes", rows_of(model, SHUNT_TOP_PROCESSES));
	json_object_set_new(look, "streams", rows_of(model, SHUNT_TOP_STREAMS));
	shunt_print_json(stdout, look, JSON_COMPACT);
	json_decref(look);
	model->view = wanted;
}

/* ---- looks ---- */

static void wait_for(double seconds)
{
	struct timespec pause = { .tv_sec = (time_t)seconds };

	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	nanosleep(&pause, NULL);
}

/* Of processes that were named, those that have given no statistics. */
static bool name_silent(const struct shunt_look *look)
{
	char name[SHUNT_DOOR_TEXT];
	bool any = false;

	for (size_t i = 0; i < look->count; i++) {
		const struct shunt_stat *stat = &look->processes[i];

		if (stat->process)
			continue;
		any = true;
		fprintf(stderr, "shunt top: process %s: %s\n", shunt_door_text(&stat->door, name),
			stat->why);
	}
	return any;
}

/* The first look is shown only as a part of the second, because it has no rates. */
int shunt_top_plain(const struct shunt_top_options *options, struct shunt_top_model *model)
{
	struct shunt_look looks[2] = { { 0 }, { 0 } };
	int now = 0, failed = shunt_look_ask(&looks[0], options->wanted, options->count);

	for (unsigned long shown = 0;
	     !failed && !ferror(stdout) && (!options->looks || shown < options->looks); shown++) {
		wait_for(options->interval);
		now = !now;
		shunt_look_free(&looks[now]);
		failed = shunt_look_ask(&looks[now], options->wanted, options->count);
		shunt_top_take(model, &looks[!now], &looks[now]);
		if (options->json)
			show_json(model);
		else
			show_text(model, !shown);
		fflush(stdout);
	}
	if (!failed && options->count)
		failed = name_silent(&looks[now]);
	shunt_look_free(&looks[0]);
	shunt_look_free(&looks[1]);
	return failed ? EXIT_FAILED : 0;
}
