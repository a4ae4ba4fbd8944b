/* SPDX-License-Identifier: MIT */
/* The tags and the style of all pages, and escaping. */
#include "tools/page/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
	":root{color-scheme:light dark;--line:#d1d9e0;--dim:#59636e;--head:#eef1f4;--bad:#b42318;--link:#175cd3}\n"
	"@media(prefers-color-scheme:dark){:root{--line:#333a45;--dim:#98a2b3;--head:#1d232c;--bad:#f97066;"
	"--link:#84adff}body{background:#12161c;color:#e4e7ec}}\n"
	"body{font:14px/1.4 system-ui,sans-serif;margin:0 auto;padding:1em 1.5em 2em;max-width:960px}\n"
	".live{max-width:1500px}\n"
	"header{display:flex;flex-wrap:wrap;gap:.3em 2em;align-items:baseline;border-bottom:1px solid var(--line);"
	"margin-bottom:1em}\n"
	"h1{font-size:1.4em;margin:0 0 .4em}h2{font-size:1.05em;margin:1.5em 0 .5em}\n"
	"header p,.none,footer{color:var(--dim);margin:0 0 .4em}nav{margin-left:auto}a{color:var(--link)}\n"
	"footer{margin-top:2em;font-size:.92em}ul{margin:.5em 0;padding-left:1.2em}\n"
	"svg{display:block;max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px;margin:.6em 0}\n"
	".wide{overflow-x:auto}table:not(:has(td)){display:none}table{border-collapse:collapse;width:100%}\n"
	"th,td{text-align:left;padding:.25em .7em;border-bottom:1px solid var(--line);vertical-align:baseline}\n"
	"th{background:var(--head);font-weight:600;white-space:nowrap}\n"
	".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
	".a{font-family:ui-monospace,monospace;font-size:.93em;overflow-wrap:break-word}\n"
	".bad{color:var(--bad)}meter{width:4em;height:.8em;vertical-align:baseline}\n"
	".mesh{width:auto}.mesh td,.mesh th{text-align:center}\n"
	".link{background:#12b76a38}.tcp{background:#f7900940}.unreachable{background:#f0443840}\n"
	".unknown{background:#98a2b340}\n"
	".verdict{font-size:1.2em;font-weight:600;padding:.6em .9em;border-radius:6px;background:var(--head);"
	"border-left:5px solid var(--dim)}\n"
	".faster{background:#1a7f3726;border-color:#1a7f37}.slower{background:#cf222e1f;border-color:#cf222e}\n";

void shunt_page_text(FILE *file, const char *text)
{
	static const char *const entities[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (; *text; text++) {
		size_t byte = (unsigned char)*text;

		if (byte < sizeof(entities) / sizeof(entities[0]) && entities[byte])
			fputs(entities[byte], file);
		else
			putc(*text, file);
	}
}

/* ---- elements ---- */

static void open_tag(FILE *file, const char *tag, const char *class)
{
	fprintf(file, "<%s%s%s%s>", tag, *class ? " class=\"" : "", class, *class ? "\"" : "");
}

static void put(struct shunt_page *page, const char *tag, const char *text)
{
	open_tag(page->file, tag, "");
	shunt_page_text(page->file, text);
	fprintf(page->file, "</%s>\n", tag);
}

/* The rest of an element that is open. */
static void put_rest(struct shunt_page *page, const char *tag, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		abort();
	shunt_page_text(page->file, text);
	fprintf(page->file, "</%s>\n", tag);
	free(text);
}

FILE *shunt_page_next(struct shunt_page *page)
{
	if (page->listing)
		fputs("</ul>\n", page->file);
	page->listing = false;
	return page->file;
}

const char *shunt_page_clock(time_t time, char text[32])
{
	struct tm tm;

	if (!localtime_r(&time, &tm) || !strftime(text, 32, "%F %T", &tm))
		*text = '\0';
	return text;
}

/* ---- the page ---- */

void shunt_page_begin(struct shunt_page *page, const char *title, const char *subtitle, int again,
		      const char *const links[])
{
	FILE *file = page->file;

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
	      "<meta name=\"viewport\" content=\"width=device-width\"/>",
	      file);
	if (again)
		fprintf(file, "<meta http-equiv=\"refresh\" content=\"%d\"/>", again);
	put(page, "title", title);
	fprintf(file, "<style>\n%s</style></head>", style);
	open_tag(file, "body", again ? "live" : "");
	fputs("<header>", file);
	put(page, "h1", title);
	if (subtitle)
		put(page, "p", subtitle);
	fputs(links ? "<nav>" : "", file);
	for (; links && *links; links++)
		fprintf(file, "<a href=\"%s\">%s</a> ", *links, *links);
	fprintf(file, "%s</header>\n", links ? "</nav>" : "");
}

void shunt_page_end(struct shunt_page *page, const char *foot)
{
	shunt_page_next(page);
	if (*foot)
		put(page, "footer", foot);
	fputs("</body></html>\n", page->file);
}

void shunt_page_heading(struct shunt_page *page, const char *text)
{
	shunt_page_next(page);
	put(page, "h2", text);
}

void shunt_page_paragraph(struct shunt_page *page, const char *class, const char *format, ...)
{
	va_list args;

	shunt_page_next(page);
	va_start(args, format);
	open_tag(page->file, "p", class);
	put_rest(page, "p", format, args);
	va_end(args);
}

void shunt_page_item(struct shunt_page *page, const char *format, ...)
{
	va_list args;

	if (!page->listing)
		fputs("<ul>\n", page->file);
	page->listing = true;
	va_start(args, format);
	open_tag(page->file, "li", "");
	put_rest(page, "li", format, args);
	va_end(args);
}

void shunt_page_say(void *page, const char *text)
{
	shunt_page_item(page, "%s", text);
}

/* ---- tables ---- */

static const char *class_of(char kind)
{
	return kind == '#' ? "n" : kind == '@' ? "a" : "";
}

/* The class of the next cell, which has this many columns. */
static const char *next_class(struct shunt_page *page, size_t columns)
{
	size_t column = page->column;

	page->column += columns;
	return columns == 1 && column < SHUNT_PAGE_COLUMNS ? class_of(page->kinds[column]) : "";
}

void shunt_page_table(struct shunt_page *page, const char *title, const char *class,
		      const char *columns)
{
	FILE *file = shunt_page_next(page);
	size_t length;

	if (*title)
		put(page, "h2", title);
	fputs("<div class=\"wide\">", file);
	open_tag(file, "table", class);
	memset(page->kinds, ' ', sizeof(page->kinds));
	if (*columns)
		shunt_page_row(page);
	for (size_t i = 0; *columns && i < SHUNT_PAGE_COLUMNS; i++, columns += length) {
		columns += i > 0;
		if (*columns == '#' || *columns == '@')
			page->kinds[i] = *columns++;
		open_tag(file, "th", page->kinds[i] == '#' ? "n" : "");
		length = strcspn(columns, "|");
		fprintf(file, "%.*s</th>\n", (int)length, columns);
	}
	page->rows = 0;
}

void shunt_page_row(struct shunt_page *page)
{
	fputs(page->in_row ? "</tr><tr>\n" : "<tr>\n", page->file);
	page->in_row = true;
	page->column = 0;
	page->rows++;
}

void shunt_page_name(struct shunt_page *page, const char *text)
{
	next_class(page, 1);
	put(page, "th", text);
}

void shunt_page_cell(struct shunt_page *page, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	open_tag(page->file, "td", next_class(page, 1));
	put_rest(page, "td", format, args);
	va_end(args);
}

void shunt_page_wide(struct shunt_page *page, size_t columns, const char *format, ...)
{
	va_list args;

	next_class(page, columns);
	va_start(args, format);
	fprintf(page->file, "<td colspan=\"%zu\">", columns);
	put_rest(page, "td", format, args);
	va_end(args);
}

void shunt_page_mark(struct shunt_page *page, const char *class, const char *tip, const char *text)
{
	next_class(page, 1);
	fprintf(page->file, "<td class=\"%s\" title=\"", class);
	shunt_page_text(page->file, tip);
	fputs("\">", page->file);
	shunt_page_text(page->file, text);
	fputs("</td>\n", page->file);
}

void shunt_page_percent(struct shunt_page *page, double percent)
{
	if (!(percent >= 0)) {
		shunt_page_cell(page, "–");
		return;
	}
	open_tag(page->file, "td", next_class(page, 1));
	fprintf(page->file, "<meter min=\"0\" max=\"100\" value=\"%.0f\"></meter> %.0f %%</td>\n",
		percent, percent);
}

void shunt_page_table_end(struct shunt_page *page, const char *none)
{
	fprintf(page->file, "%s</table></div>\n", page->in_row ? "</tr>\n" : "");
	page->in_row = false;
	if (!page->rows && none)
		shunt_page_paragraph(page, "none", "%s", none);
}
