/* SPDX-License-Identifier: MIT */
/* The mesh of hosts, from the JSON of `shunt ping --matrix`. It may come from a file that holds anything. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/page/page.h"

#define TEXT 512

/* `most`: there is no such host. */
static size_t number_of(const json_t *hosts, const json_t *name, size_t most)
{
	for (size_t i = 0; i < json_array_size(hosts) && i < most; i++)
		if (json_equal(json_array_get(hosts, i), name))
			return i;
	return most;
}

/* Of row * most + column; NULL: nothing is said of that way. */
static const json_t **place(const json_t *hosts, const json_t *ways, size_t most)
{
	const json_t **cells = calloc(most * most, sizeof(json_t *)), *way;
	size_t i;

	if (!cells)
		abort();
	json_array_foreach(ways, i, way)
	{
		size_t from = number_of(hosts, json_object_get(way, "from"), most);
		size_t to = number_of(hosts, json_object_get(way, "to"), most);

		if (from < most && to < most)
			cells[from * most + to] = way;
	}
	return cells;
}

static void put_cell(struct shunt_page *page, const json_t *way)
{
	static const char *const words[] = { "link", "tcp", "unreachable", "unknown" };
	const char *verdict = json_string_value(json_object_get(way, "verdict"));
	const json_t *ns = json_object_get(way, "ns");
	char tip[TEXT], time[64];
	size_t i = 0;

	while (i < 3 && (!verdict || strcmp(verdict, words[i])))
		i++;
	snprintf(time, sizeof(time), "%s %.1f µs", i ? "TCP" : "link",
		 (double)json_integer_value(ns) / 1000);
	if (!way)
		shunt_page_cell(page, "%s", "");
	else
		shunt_page_mark(page, words[i], shunt_member_text(way, "says", tip, TEXT),
				json_is_integer(ns) && json_integer_value(ns) >= 0 ? time :
										     words[i]);
}

static void put_host(struct shunt_page *page, const json_t *hosts, size_t i)
{
	const char *host = json_string_value(json_array_get(hosts, i));
	char text[TEXT];

	shunt_page_name(page, shunt_escape(host ? host : "", text, TEXT));
}

static void put_table(struct shunt_page *page, const json_t *hosts, const json_t **cells,
		      size_t most)
{
	size_t count = json_array_size(hosts) < most ? json_array_size(hosts) : most;

	shunt_page_table(page, "", "mesh", "");
	shunt_page_row(page);
	shunt_page_name(page, "from \\ to");
	for (size_t i = 0; i < count; i++)
		put_host(page, hosts, i);
	for (size_t i = 0; i < count; i++) {
		shunt_page_row(page);
		put_host(page, hosts, i);
		for (size_t j = 0; j < count; j++)
			put_cell(page, cells[i * most + j]);
	}
	shunt_page_table_end(page, NULL);
}

void shunt_page_mesh(struct shunt_page *page, const json_t *root, size_t most)
{
	const json_t *hosts = json_object_get(root, "hosts"), *ways = json_object_get(root, "ways");
	const json_t **cells = place(hosts, ways, most), *way;
	char from[TEXT], to[TEXT], says[TEXT];
	size_t i;

	put_table(page, hosts, cells, most);
	free(cells);
	shunt_page_paragraph(page, "", "Round trips of 64 bytes, or of an empty WRITE.");
	json_array_foreach(ways, i, way)
	{
		const char *verdict = json_string_value(json_object_get(way, "verdict"));

		if (i < most * most && (!verdict || strcmp(verdict, "link")))
			shunt_page_item(page, "%s to %s: %s",
					shunt_member_text(way, "from", from, TEXT),
					shunt_member_text(way, "to", to, TEXT),
					shunt_member_text(way, "says", says, TEXT));
	}
}
