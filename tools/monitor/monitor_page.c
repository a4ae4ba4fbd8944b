/* SPDX-License-Identifier: MIT */
/* The page for people, which comes again by itself. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/monitor/monitor.h"

#define AGAIN 5 /* seconds */

static void begin(struct shunt_page *page, const struct monitor_look *look)
{
	static const char *const links[] = { "metrics", "log", NULL };
	char host[65] = "", clock[32], shown[256], title[288], subtitle[128];
	size_t processes = 0;

	gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < look->look.count; i++)
		processes += look->look.processes[i].process != NULL;
	snprintf(title, sizeof(title), "Shunt on %s", shunt_escape(host, shown, sizeof(shown)));
	snprintf(subtitle, sizeof(subtitle), "%s; %zu processes, asked in %.1f ms",
		 shunt_page_clock(time(NULL), clock), processes, 1000 * look->took);
	shunt_page_begin(page, title, subtitle, AGAIN, links);
}

char *monitor_page(const struct monitor_options *options, const struct monitor_look *look,
		   size_t *bytes)
{
	char *text = NULL;
	struct shunt_page page = { .file = open_memstream(&text, bytes) };

	if (!page.file)
		abort();
	begin(&page, look);
	monitor_rows_hosts(&page, look);
	monitor_rows_late(&page, look);
	monitor_rows_processes(&page, look);
	monitor_rows_reasons(&page, look);
	monitor_rows_streams(&page, look);
	if (options->matrix)
		monitor_matrix(&page, options->matrix);
	shunt_page_end(&page, "");
	if (fclose(page.file))
		abort();
	return text;
}
