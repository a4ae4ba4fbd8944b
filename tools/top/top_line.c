/* SPDX-License-Identifier: MIT */
/* Lines of a given width: the same on a screen and as text. */
#include "tools/top/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/output.h"

static int bounded(int width)
{
	return width < 0 ? 0 : width < SHUNT_TOP_LINE ? width : SHUNT_TOP_LINE - 1;
}

__attribute__((format(printf, 3, 4))) static void append(char line[SHUNT_TOP_LINE], int width,
							 const char *format, ...)
{
	size_t length = strlen(line), room = (size_t)bounded(width) + 1;
	va_list args;

	if (length >= room)
		return;
	va_start(args, format);
	vsnprintf(line + length, room - length, format, args);
	va_end(args);
}

/* ---- columns that fit ---- */

/* The column that sorts is never dropped for others. */
static int rank_of(const struct shunt_top_model *model, enum shunt_top_column column)
{
	return column == model->sort[model->view] ? 0 : shunt_top_rank(model->view, column);
}

/* The next by rank, of those that are not in yet. */
static enum shunt_top_column next_in_rank(const struct shunt_top_model *model, const bool *seen)
{
	enum shunt_top_column best = SHUNT_TOP_COLUMNS;

	for (enum shunt_top_column column = 0; column < SHUNT_TOP_COLUMNS; column++)
		if (!seen[column] && rank_of(model, column) >= 0 &&
		    (best == SHUNT_TOP_COLUMNS || rank_of(model, column) < rank_of(model, best)))
			best = column;
	return best;
}

int shunt_top_fit(const struct shunt_top_model *model, int width,
		  enum shunt_top_column columns[SHUNT_TOP_COLUMNS])
{
	bool seen[SHUNT_TOP_COLUMNS] = { false }, in[SHUNT_TOP_COLUMNS] = { false };
	enum shunt_top_column column;
	int used = 0, count = 0;

	while ((column = next_in_rank(model, seen)) < SHUNT_TOP_COLUMNS) {
		int wide = shunt_top_width(column) + (used > 0);

		seen[column] = true;
		in[column] = used + wide <= width;
		used += in[column] ? wide : 0;
	}
	for (column = 0; column < SHUNT_TOP_COLUMNS; column++)
		if (in[column])
			columns[count++] = column;
	return count;
}

/* Numbers at the right, words at the left; the last column takes what is left. */
static void put_cell(char line[SHUNT_TOP_LINE], int width, enum shunt_top_column column, bool last,
		     const char *text)
{
	int wide = shunt_top_width(column);

	if (last && !shunt_top_numeric(column))
		append(line, width, "%s", text);
	else
		append(line, width, shunt_top_numeric(column) ? "%*.*s" : "%-*.*s", wide, wide,
		       text);
	if (!last)
		append(line, width, " ");
}

static void trim(char line[SHUNT_TOP_LINE])
{
	size_t length = strlen(line);

	while (length && line[length - 1] == ' ')
		line[--length] = '\0';
}

/* How many columns the cell at the end of `line` may take. */
static int room_of(const char *line, int width, enum shunt_top_column column, bool last)
{
	int rest = bounded(width) - (int)strlen(line);

	return last && rest > shunt_top_width(column) ? rest : shunt_top_width(column);
}

void shunt_top_titles(const struct shunt_top_model *model, int width, char line[SHUNT_TOP_LINE])
{
	enum shunt_top_column columns[SHUNT_TOP_COLUMNS];
	int count = shunt_top_fit(model, width, columns);

	line[0] = '\0';
	for (int i = 0; i < count; i++)
		put_cell(line, width, columns[i], i == count - 1, shunt_top_title(columns[i]));
	trim(line);
}

void shunt_top_line(const struct shunt_top_model *model, const struct shunt_top_row *row, int width,
		    char line[SHUNT_TOP_LINE])
{
	enum shunt_top_column columns[SHUNT_TOP_COLUMNS];
	int count = shunt_top_fit(model, width, columns);
	char cell[SHUNT_TOP_LINE];

	line[0] = '\0';
	for (int i = 0; i < count; i++) {
		bool last = i == count - 1;

		put_cell(line, width, columns[i], last,
			 shunt_top_text(row, columns[i], cell,
					(size_t)room_of(line, width, columns[i], last) + 1));
	}
	trim(line);
}

/* ---- the head ---- */

static void put_sums(const struct shunt_top_sum *sum, int width, char line[SHUNT_TOP_LINE])
{
	double share = shunt_top_share(sum->tx_tcp + sum->rx_tcp, sum->tx_link + sum->rx_link);

	append(line, width, "%zu process%s, %zu stream%s, %zu linked", sum->processes,
	       sum->processes == 1 ? "" : "es", sum->streams, sum->streams == 1 ? "" : "s",
	       sum->linked);
	if (share >= 0)
		append(line, width, "; %.1f%% of bytes by link", (double)(long)(share * 1000) / 10);
}

static void put_rates(const struct shunt_top_sum *sum, int width, char line[SHUNT_TOP_LINE])
{
	char a[16], b[16];

	append(line, width, "link tx %s rx %s", shunt_top_human(sum->tx_link, a),
	       shunt_top_human(sum->rx_link, b));
	append(line, width, ", tcp tx %s rx %s /s", shunt_top_human(sum->tx_tcp, a),
	       shunt_top_human(sum->rx_tcp, b));
}

void shunt_top_head(const struct shunt_top_model *model, int line, int width,
		    char text[SHUNT_TOP_LINE])
{
	text[0] = '\0';
	if (line == 0)
		put_sums(&model->sum, width, text);
	else
		put_rates(&model->sum, width, text);
}

/* ---- one row, whole ---- */

void shunt_top_detail(const struct shunt_top_row *row, int width, char line[SHUNT_TOP_LINE])
{
	static const enum shunt_top_column named[] = { SHUNT_TOP_LOCAL, SHUNT_TOP_PEER,
						       SHUNT_TOP_BOUND, SHUNT_TOP_WHY };
	char cell[SHUNT_TOP_LINE], more[SHUNT_TOP_LINE];

	line[0] = '\0';
	append(line, width, "%s %s", shunt_top_text(row, SHUNT_TOP_PROGRAM, cell, sizeof(cell)),
	       shunt_top_text(row, SHUNT_TOP_PID, more, sizeof(more)));
	if (row->stream)
		append(line, width, " fd %s",
		       shunt_top_text(row, SHUNT_TOP_FD, cell, sizeof(cell)));
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (*shunt_top_text(row, named[i], cell, sizeof(cell)))
			append(line, width, "%s %s%s", i ? "," : "",
			       named[i] == SHUNT_TOP_BOUND ? "bound by " : "", cell);
}
