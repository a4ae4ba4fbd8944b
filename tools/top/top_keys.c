/* SPDX-License-Identifier: MIT */
/* Keys of shunt top: each changes the model or the mode in one place. */
#include "tools/top/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const shunt_top_help[] = {
	"p  processes           s, Tab  streams",
	"<  >  sort by the column before or after",
	"r  the other way round",
	"/  filter by a part of any column",
	"Up Down PgUp PgDn Home End  select",
	"Enter  streams of the selected process",
	"Esc, Backspace  back to all",
	"f, Space  freeze, and go on",
	"d  seconds between looks   +  -  more, less",
	"h, ?  help             q  quit",
	NULL,
};

bool shunt_top_interval(const char *text, double *seconds)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= SHUNT_TOP_SHORTEST && value <= SHUNT_TOP_LONGEST))
		return false;
	*seconds = value;
	return true;
}

/* ---- lists ---- */

/* Back and forth among the columns of the view. */
static void sort_by_neighbour(struct shunt_top_model *model, int step)
{
	int column = (int)model->sort[model->view];

	do
		column = (column + step + SHUNT_TOP_COLUMNS) % SHUNT_TOP_COLUMNS;
	while (shunt_top_rank(model->view, (enum shunt_top_column)column) < 0);
	model->sort[model->view] = (enum shunt_top_column)column;
	shunt_top_arrange(model);
}

static void show(struct shunt_top_model *model, enum shunt_top_view view)
{
	model->view = view;
	if (view == SHUNT_TOP_PROCESSES)
		model->only[0] = '\0';
	shunt_top_select(model, -1);
	shunt_top_arrange(model);
}

static void show_selected(struct shunt_top_model *model)
{
	if (model->view != SHUNT_TOP_PROCESSES || model->selected < 0)
		return;
	memcpy(model->only, model->picked.identity, sizeof(model->only));
	model->filter[0] = '\0';
	show(model, SHUNT_TOP_STREAMS);
}

/* Each takes one thing back: the filter, the one process, the selection. */
static void go_back(struct shunt_top_model *model)
{
	if (*model->filter)
		model->filter[0] = '\0';
	else if (*model->only)
		show(model, SHUNT_TOP_PROCESSES);
	else
		shunt_top_select(model, -1);
	shunt_top_arrange(model);
}

static void move(struct shunt_top_model *model, ssize_t by)
{
	ssize_t to = model->selected < 0 && by > 0 ? by - 1 : model->selected + by;

	shunt_top_select(model, to < 0 ? 0 : to);
}

static void change_interval(struct shunt_top_keys *keys, double factor)
{
	double wanted = keys->interval * factor;

	keys->interval = wanted < SHUNT_TOP_SHORTEST ? SHUNT_TOP_SHORTEST :
			 wanted > SHUNT_TOP_LONGEST  ? SHUNT_TOP_LONGEST :
						       wanted;
}

static void ask_for(struct shunt_top_keys *keys, enum shunt_top_mode mode)
{
	keys->typed[0] = '\0';
	keys->mode = mode;
}

static bool move_key(const struct shunt_top_keys *keys, int key)
{
	struct shunt_top_model *model = keys->model;
	ssize_t page = keys->page ? (ssize_t)keys->page : 1;

	switch (key) {
	case SHUNT_TOP_KEY_UP:
	case 'k':
		move(model, -1);
		return true;
	case SHUNT_TOP_KEY_DOWN:
	case 'j':
		move(model, 1);
		return true;
	case SHUNT_TOP_KEY_PAGE_UP:
		move(model, -page);
		return true;
	case SHUNT_TOP_KEY_PAGE_DOWN:
		move(model, page);
		return true;
	case SHUNT_TOP_KEY_HOME:
		shunt_top_select(model, 0);
		return true;
	case SHUNT_TOP_KEY_END:
		shunt_top_select(model, (ssize_t)model->count - 1);
		return true;
	default:
		return false;
	}
}

static bool order_key(struct shunt_top_model *model, int key)
{
	switch (key) {
	case '<':
		sort_by_neighbour(model, -1);
		return true;
	case '>':
		sort_by_neighbour(model, 1);
		return true;
	case 'r':
		model->reversed = !model->reversed;
		shunt_top_arrange(model);
		return true;
	case 'p':
		show(model, SHUNT_TOP_PROCESSES);
		return true;
	case 's':
		show(model, SHUNT_TOP_STREAMS);
		return true;
	case '\t':
		show(model,
		     model->view == SHUNT_TOP_STREAMS ? SHUNT_TOP_PROCESSES : SHUNT_TOP_STREAMS);
		return true;
	case SHUNT_TOP_KEY_ENTER:
		show_selected(model);
		return true;
	case SHUNT_TOP_KEY_ESCAPE:
	case SHUNT_TOP_KEY_BACKSPACE:
		go_back(model);
		return true;
	default:
		return false;
	}
}

static void list_key(struct shunt_top_keys *keys, int key)
{
	if (move_key(keys, key) || order_key(keys->model, key))
		return;
	switch (key) {
	case 'f':
	case ' ':
		keys->frozen = !keys->frozen;
		break;
	case '/':
		ask_for(keys, SHUNT_TOP_FILTER);
		break;
	case 'd':
		ask_for(keys, SHUNT_TOP_INTERVAL);
		break;
	case '+':
		change_interval(keys, 2);
		break;
	case '-':
		change_interval(keys, 0.5);
		break;
	case 'h':
	case '?':
		keys->mode = SHUNT_TOP_HELP;
		break;
	case 'q':
		keys->mode = SHUNT_TOP_END;
		break;
	default:
		snprintf(keys->message, sizeof(keys->message), "no such key; h is help");
	}
}

/* ---- prompts ---- */

static void answered(struct shunt_top_keys *keys)
{
	if (keys->mode == SHUNT_TOP_FILTER) {
		memcpy(keys->model->filter, keys->typed, sizeof(keys->typed));
		shunt_top_arrange(keys->model);
	} else if (!shunt_top_interval(keys->typed, &keys->interval)) {
		snprintf(keys->message, sizeof(keys->message),
			 "not a number of seconds from 0.1 to 86400");
	}
	keys->mode = SHUNT_TOP_LIST;
}

static void prompt_key(struct shunt_top_keys *keys, int key)
{
	size_t length = strlen(keys->typed);

	if (key == SHUNT_TOP_KEY_ENTER) {
		answered(keys);
	} else if (key == SHUNT_TOP_KEY_ESCAPE) {
		keys->mode = SHUNT_TOP_LIST;
	} else if (key == SHUNT_TOP_KEY_BACKSPACE) {
		if (length)
			keys->typed[length - 1] = '\0';
	} else if (key >= ' ' && key <= '~' && length + 1 < sizeof(keys->typed)) {
		keys->typed[length] = (char)key;
		keys->typed[length + 1] = '\0';
	}
}

void shunt_top_key(struct shunt_top_keys *keys, int key)
{
	keys->message[0] = '\0';
	switch (keys->mode) {
	case SHUNT_TOP_LIST:
		list_key(keys, key);
		break;
	case SHUNT_TOP_HELP:
		keys->mode = SHUNT_TOP_LIST;
		break;
	case SHUNT_TOP_FILTER:
	case SHUNT_TOP_INTERVAL:
		prompt_key(keys, key);
		break;
	case SHUNT_TOP_END:
		break;
	}
}

/* ---- what the keys have done ---- */

static void cut(int width, char line[SHUNT_TOP_LINE])
{
	if (width >= 0 && width < SHUNT_TOP_LINE)
		line[width] = '\0';
}

void shunt_top_status(const struct shunt_top_keys *keys, int width, char line[SHUNT_TOP_LINE])
{
	const struct shunt_top_model *model = keys->model;

	snprintf(line, SHUNT_TOP_LINE, "%s%s by %s%s, %gs%s%s%s", keys->frozen ? "FROZEN " : "",
		 model->view == SHUNT_TOP_STREAMS ? "streams" : "processes",
		 shunt_top_title(model->sort[model->view]), model->reversed ? " (r)" : "",
		 keys->interval, *model->only ? ", one process" : "",
		 *model->filter ? ", with " : "", model->filter);
	cut(width, line);
}

void shunt_top_prompt(const struct shunt_top_keys *keys, int width, char line[SHUNT_TOP_LINE])
{
	if (keys->mode == SHUNT_TOP_FILTER)
		snprintf(line, SHUNT_TOP_LINE, "filter: %s", keys->typed);
	else if (keys->mode == SHUNT_TOP_INTERVAL)
		snprintf(line, SHUNT_TOP_LINE, "seconds between looks: %s", keys->typed);
	else if (keys->mode == SHUNT_TOP_HELP)
		snprintf(line, SHUNT_TOP_LINE, "any key goes back");
	else
		snprintf(line, SHUNT_TOP_LINE, "%s",
			 *keys->message ? keys->message :
					  "q quit  h help  Tab view  <> sort  / filter  f freeze");
	cut(width, line);
}
