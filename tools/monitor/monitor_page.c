/* SPDX-License-Identifier: MIT */
/* The page for people: plain HTML, which loads nothing and comes again by itself. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"

#define AGAIN 5 /* seconds */

static const char style[] =
	":root{color-scheme:light dark;--line:#d5d9e0;--dim:#667085;--head:#f4f6f9;--bad:#b42318;"
	"--link:#175cd3}"
	"@media(prefers-color-scheme:dark){:root{--line:#333a45;--dim:#98a2b3;--head:#1d232c;"
	"--bad:#f97066;--link:#84adff}body{background:#12161c;color:#e4e7ec}}"
	"body{font:14px/1.45 system-ui,sans-serif;margin:0 auto;padding:1.2em 2em 3em;"
	"max-width:1500px}h1{font-size:1.5em;margin:0}h2{font-size:1.05em;margin:1.8em 0 .5em}"
	"header{display:flex;flex-wrap:wrap;gap:.3em 2em;align-items:baseline;"
	"border-bottom:1px solid var(--line);padding-bottom:.7em}"
	"header p,.none{color:var(--dim);margin:0 0 .4em}nav{margin-left:auto}a{color:var(--link)}"
	".wide{overflow-x:auto}table:not(:has(td)){display:none}table{border-collapse:collapse;width:100%}"
	"th,td{text-align:left;padding:.28em .8em;border-bottom:1px solid var(--line);"
	"vertical-align:baseline}th{background:var(--head);font-weight:600;white-space:nowrap}"
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	".a{font-family:ui-monospace,monospace;font-size:.93em;white-space:nowrap}"
	".bad{color:var(--bad)}meter{width:4em;height:.8em;vertical-align:baseline}"
	".mesh{width:auto}.mesh td,.mesh th{text-align:center}.link{background:#12b76a38}"
	".tcp{background:#f7900940}.unreachable{background:#f0443840}ul{margin:.5em 0;padding-left:1.2em}";

static void put_head(FILE *file, const struct monitor_look *look)
{
	char host[65] = "", clock[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	size_t processes = 0;

	gethostname(host, sizeof(host) - 1);
	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%F %T", &tm);
	for (size_t i = 0; i < look->look.count; i++)
		processes += look->look.processes[i].process != NULL;
	fprintf(file,
		"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><meta http-equiv=refresh content=%d>"
		"<meta name=viewport content=\"width=device-width\"><title>Shunt on ",
		AGAIN);
	monitor_html(file, host);
	fprintf(file, "</title><style>%s</style></head><body>\n<header><h1>Shunt on ", style);
	monitor_html(file, host);
	fprintf(file,
		"</h1><p>%s; %zu processes, asked in %.1f ms</p><nav><a href=metrics>metrics</a> "
		"<a href=log>log</a></nav></header>\n",
		clock, processes, 1000 * look->took);
}

char *monitor_page(const struct monitor_options *options, const struct monitor_look *look,
		   size_t *bytes)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, bytes);

	if (!file)
		abort();
	put_head(file, look);
	monitor_rows_late(file, look);
	monitor_rows_processes(file, look);
	monitor_rows_streams(file, look);
	monitor_rows_reasons(file, look);
	if (options->matrix)
		monitor_matrix(file, options->matrix);
	fputs("</body></html>\n", file);
	if (fclose(file))
		abort();
	return text;
}
