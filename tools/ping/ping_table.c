/* SPDX-License-Identifier: MIT */
/* The mesh as a table for a terminal, and as JSON. Names are plain (ping_matrix.c), and texts of cells are escaped. */
#include "tools/ping/ping.h"

#include <string.h>

#include "core/api.h"
#include "tools/common/output.h"

#define WIDTH 9 /* columns of a cell */
#define NAME 30 /* of a row's name, at most */

enum { GREEN = 32, YELLOW = 33, RED = 31, DIM = 2 };

static const struct ping_cell *cell_of(const struct ping_mesh *mesh, size_t row, size_t column)
{
	return &mesh->cells[row * mesh->count + column];
}

static int colour_of(const struct ping_cell *cell)
{
	if (cell->self || !cell->known)
		return DIM;
	return cell->verdict == PING_LINK ? GREEN : cell->verdict == PING_TCP ? YELLOW : RED;
}

/* "L 7.2us", "T 31us", "X", "?" */
static void text_of(const struct ping_cell *cell, char text[16])
{
	double us = (double)cell->ns / 1000;
	char mark = cell->verdict == PING_LINK ? 'L' : cell->verdict == PING_TCP ? 'T' : 'X';

	if (cell->self)
		strcpy(text, ".");
	else if (!cell->known)
		strcpy(text, "?");
	else if (cell->verdict == PING_UNREACHABLE || cell->ns == PING_NEVER)
		snprintf(text, 16, "%c", mark);
	else if (us < 1000)
		snprintf(text, 16, "%c %.*fus", mark, us < 100, us);
	else
		snprintf(text, 16, "%c %.*fms", mark, us < 100000,
			 us / 1000 < 99999 ? us / 1000 : 99999);
}

static void put_cell(const struct ping_cell *cell, bool colours)
{
	char text[16];

	text_of(cell, text);
	if (colours)
		printf(" \033[%dm%*s\033[0m", colour_of(cell), WIDTH, text);
	else
		printf(" %*s", WIDTH, text);
}

static int name_width(const struct ping_mesh *mesh)
{
	size_t width = 4;

	for (size_t i = 0; i < mesh->count; i++)
		if (strlen(mesh->names[i]) > width)
			width = strlen(mesh->names[i]);
	return width < NAME ? (int)width : NAME;
}

/* Causes, a line for each pair. */
static void put_causes(const struct ping_mesh *mesh)
{
	for (size_t row = 0; row < mesh->count; row++)
		for (size_t column = 0; column < mesh->count; column++) {
			const struct ping_cell *cell = cell_of(mesh, row, column);

			if (cell->self || (cell->known && cell->verdict == PING_LINK))
				continue;
			printf("%s to %s: %s\n    ", mesh->names[row], mesh->names[column],
			       !cell->known		 ? "not known" :
			       cell->verdict == PING_TCP ? "on TCP" :
							   "unreachable");
			shunt_print_wrapped(4, 4, cell->says);
		}
}

void ping_table(const struct ping_mesh *mesh, bool colours)
{
	int width = name_width(mesh);

	printf("     %-*s", width, "from");
	for (size_t i = 0; i < mesh->count; i++)
		printf(" %*zu", WIDTH, i + 1);
	printf("\n");
	for (size_t row = 0; row < mesh->count; row++) {
		printf("%3zu  %-*.*s", row + 1, width, width, mesh->names[row]);
		for (size_t column = 0; column < mesh->count; column++)
			put_cell(cell_of(mesh, row, column), colours);
		printf("\n");
	}
	printf("L: on the link; T: on TCP; X: unreachable; ?: not known. Round trips of 64 bytes, or of an empty\n"
	       "WRITE where no `shunt ping --serve` answers.\n");
	put_causes(mesh);
}

/* --- JSON --- */

static json_t *cell_json(const struct ping_mesh *mesh, size_t row, size_t column)
{
	const struct ping_cell *cell = cell_of(mesh, row, column);
	json_t *object = json_object();

	json_object_set_new(object, "from", json_string(mesh->names[row]));
	json_object_set_new(object, "to", json_string(mesh->names[column]));
	json_object_set_new(
		object, "verdict",
		json_string(cell->known ? ping_verdict_words[cell->verdict] : "unknown"));
	json_object_set_new(object, "cause", json_string(cell->cause));
	json_object_set_new(object, "says", json_string(cell->says));
	json_object_set_new(object, "ns",
			    cell->known && cell->ns != PING_NEVER ?
				    json_integer((json_int_t)cell->ns) :
				    json_null());
	return object;
}

json_t *ping_mesh_json(const struct ping_mesh *mesh)
{
	json_t *root = json_object(), *hosts = json_array(), *ways = json_array();

	for (size_t i = 0; i < mesh->count; i++)
		json_array_append_new(hosts, json_string(mesh->names[i]));
	for (size_t i = 0; i < mesh->count * mesh->count; i++)
		if (!mesh->cells[i].self)
			json_array_append_new(ways,
					      cell_json(mesh, i / mesh->count, i % mesh->count));
	json_object_set_new(root, "schema", json_integer(SHUNT_JSON_SCHEMA));
	json_object_set_new(root, "hosts", hosts);
	json_object_set_new(root, "ways", ways);
	return root;
}
