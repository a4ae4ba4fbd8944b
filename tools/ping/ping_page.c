/* SPDX-License-Identifier: MIT */
/* The mesh as a page of its own: no script, nothing from elsewhere. */
#include "tools/ping/ping.h"

#include <errno.h>
#include <string.h>

#include "tools/common/html.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>shunt ping --matrix</title>\n"
	"<style>\n"
	"body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222}\n"
	"table{border-collapse:collapse}\n"
	"th,td{border:1px solid #ccc;padding:.35em .7em;text-align:right;white-space:nowrap}\n"
	"th{background:#f4f4f4;text-align:left;font-weight:600}\n"
	".link{background:#c8ecc8}.tcp{background:#fbe9a8}.unreachable{background:#f6bdbd}.unknown{background:#ddd}\n"
	"dt{margin-top:.6em;font-weight:600}\n"
	"</style></head><body>\n<h1>shunt ping --matrix</h1>\n";

static const char *class_of(const struct ping_cell *cell)
{
	return cell->known ? ping_verdict_words[cell->verdict] : "unknown";
}

static void put_cell(FILE *file, const struct ping_cell *cell)
{
	char time[24];

	if (cell->self) {
		fputs("<td></td>", file);
		return;
	}
	fprintf(file, "<td class=\"%s\" title=\"", class_of(cell));
	shunt_html_text(file, cell->says);
	fprintf(file, "\">%s</td>",
		cell->known && cell->ns != PING_NEVER ? ping_time_text(cell->ns, time) :
							class_of(cell));
}

static void put_table(FILE *file, const struct ping_mesh *mesh)
{
	fputs("<table><tr><th>from \\ to</th>", file);
	for (size_t i = 0; i < mesh->count; i++) {
		fputs("<th>", file);
		shunt_html_text(file, mesh->names[i]);
		fputs("</th>", file);
	}
	for (size_t row = 0; row < mesh->count; row++) {
		fputs("</tr>\n<tr><th>", file);
		shunt_html_text(file, mesh->names[row]);
		fputs("</th>", file);
		for (size_t column = 0; column < mesh->count; column++)
			put_cell(file, &mesh->cells[row * mesh->count + column]);
	}
	fputs("</tr></table>\n<p><span class=\"link\">&nbsp;on the link&nbsp;</span> "
	      "<span class=\"tcp\">&nbsp;on TCP&nbsp;</span> "
	      "<span class=\"unreachable\">&nbsp;unreachable&nbsp;</span> "
	      "<span class=\"unknown\">&nbsp;not known&nbsp;</span> Round trips of 64 bytes, or of an empty WRITE.</p>\n",
	      file);
}

static void put_causes(FILE *file, const struct ping_mesh *mesh)
{
	fputs("<dl>\n", file);
	for (size_t i = 0; i < mesh->count * mesh->count; i++) {
		const struct ping_cell *cell = &mesh->cells[i];

		if (cell->self || (cell->known && cell->verdict == PING_LINK))
			continue;
		fputs("<dt>", file);
		shunt_html_text(file, mesh->names[i / mesh->count]);
		fputs(" to ", file);
		shunt_html_text(file, mesh->names[i % mesh->count]);
		fputs("</dt><dd>", file);
		shunt_html_text(file, cell->says);
		fputs("</dd>\n", file);
	}
	fputs("</dl>\n</body></html>\n", file);
}

int ping_page(const struct ping_mesh *mesh, const char *path)
{
	FILE *file = fopen(path, "we");

	if (file) {
		fputs(head, file);
		put_table(file, mesh);
		put_causes(file, mesh);
	}
	if (file && !ferror(file) && !fclose(file))
		return 0;
	fprintf(stderr, "shunt ping: %s: %s\n", path, strerror(errno));
	return -1;
}
