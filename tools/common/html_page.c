/* SPDX-License-Identifier: MIT */
/* Pages of results: their head and style, tables, and their foot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/html.h"

static const char style[] =
	"body{font:14px/1.5 system-ui,sans-serif;margin:0 auto;padding:1.5em 1em 3em;max-width:960px;color:#1f2328;"
	"background:#f6f8fa}\n"
	"h1{font-size:1.4em;margin:0 0 .3em}h2{font-size:1.05em;margin:1.8em 0 .5em}\n"
	"svg{max-width:100%;height:auto;border:1px solid #d1d9e0;border-radius:6px;margin:.5em 0}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;background:#fff;min-width:100%}\n"
	"th,td{border:1px solid #d1d9e0;padding:.3em .7em;text-align:left;vertical-align:baseline}\n"
	"th{background:#eef1f4;font-weight:600}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
	"code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}footer{color:#59636e;margin-top:2.5em;font-size:.92em}\n"
	".verdict{font-size:1.2em;font-weight:600;padding:.6em .9em;border-radius:6px;background:#eef1f4;border-left:5px solid #59636e}\n"
	".faster{background:#dafbe1;border-color:#1a7f37}.slower{background:#ffebe9;border-color:#cf222e}\n";

static void complain(const char *who, const char *path)
{
	fprintf(stderr, "%s: %s: %s; give a file in a folder that can be written to\n", who, path,
		strerror(errno));
}

/* Appending keeps what an earlier result has left there. */
int shunt_html_check(const char *who, const char *path)
{
	FILE *file = path ? fopen(path, "ae") : NULL;

	if (path && !file)
		complain(who, path);
	if (file)
		fclose(file);
	return path && !file ? -1 : 0;
}

FILE *shunt_html_open(const char *who, const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		complain(who, path);
	return file;
}

int shunt_html_close(const char *who, const char *path, FILE *file)
{
	int failed = ferror(file);

	if (!fclose(file) && !failed)
		return 0;
	complain(who, path);
	return -1;
}

FILE *shunt_html_begin(const char *who, const char *path, const char *title)
{
	FILE *file = shunt_html_open(who, path);

	if (!file)
		return NULL;
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
	      "<meta name=\"viewport\" content=\"width=device-width\"/><title>",
	      file);
	shunt_html_text(file, title);
	fprintf(file, "</title>\n<style>\n%s</style></head><body>\n<h1>", style);
	shunt_html_text(file, title);
	fputs("</h1>\n", file);
	return file;
}

/* "model name : ..." of the first processor; "" if the kernel does not say. */
static void read_model(char *model, size_t room)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	*model = '\0';
	while (file && !*model && fgets(line, sizeof(line), file)) {
		const char *colon = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (colon)
			snprintf(model, room, "%s", colon + 1 + strspn(colon + 1, " "));
	}
	if (file)
		fclose(file);
}

int shunt_html_end(const char *who, const char *path, FILE *file)
{
	char model[128], clock[32] = "", line[512];
	time_t now = time(NULL);
	struct utsname system;
	struct tm tm;

	read_model(model, sizeof(model));
	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%F %T", &tm);
	if (uname(&system))
		memset(&system, 0, sizeof(system));
	snprintf(line, sizeof(line), "%s; %ld processors%s%s; %s %s; Shunt %s", clock,
		 sysconf(_SC_NPROCESSORS_ONLN), *model ? ", " : "", model, system.sysname,
		 system.release, PACKAGE_VERSION);
	fputs("<footer>", file);
	shunt_html_text(file, line);
	fputs("</footer>\n</body></html>\n", file);
	return shunt_html_close(who, path, file);
}

void shunt_html_cell(FILE *file, const char *class, const char *text)
{
	fprintf(file, "<td%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
	shunt_html_text(file, text);
	fputs("</td>", file);
}

void shunt_html_head(FILE *file, const char *const columns[])
{
	fputs("<tr>", file);
	for (size_t i = 0; columns[i]; i++) {
		fputs("<th>", file);
		shunt_html_text(file, columns[i]);
		fputs("</th>", file);
	}
	fputs("</tr>\n", file);
}
