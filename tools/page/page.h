/* SPDX-License-Identifier: MIT */
/*
 * Pages for browsers. A page needs nothing else: no script, nothing from elsewhere. Commands say what is on it, each with
 * a call, and page.c writes the tags and escapes the text. Text of another process is made
 * printable before, by the caller (output.h). Pictures are in chart.h.
 */
#ifndef SHUNT_TOOLS_PAGE_H
#define SHUNT_TOOLS_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define SHUNT_PAGE_COLUMNS 24 /* that have a kind */

/* All zero at first, except `file`, or `who` and `path` where the page is a file. */
struct shunt_page {
	FILE *file;
	const char *who, *path; /* the command and the file, for its complaints */
	char kinds[SHUNT_PAGE_COLUMNS]; /* of the table's columns: '#', '@' or ' ' */
	size_t column; /* the next cell's */
	size_t rows; /* of the table, after its names */
	bool listing, in_row; /* an element is open */
};

/* ---- a file (page_file.c) ---- */

/* Can it be written? Asked before anything is measured. `path` NULL: yes. 0, or -1 after saying why not. */
int shunt_page_check(const char *who, const char *path);
/* A file for a picture alone, and its end. 0, or -1 after saying why not. */
int shunt_page_open(struct shunt_page *page, const char *who, const char *path);
int shunt_page_close(struct shunt_page *page);
/* A page of results; its end adds the machine and the time. The same results. */
int shunt_page_start(struct shunt_page *page, const char *who, const char *path, const char *title);
int shunt_page_finish(struct shunt_page *page);

/* ---- its parts ---- */

/* `again`: after so many seconds a browser asks for it again; 0: it does not. `links`: pages beside it, up to NULL; NULL: none. */
void shunt_page_begin(struct shunt_page *page, const char *title, const char *subtitle, int again,
		      const char *const links[]);
/* `foot` is "", or the last line. */
void shunt_page_end(struct shunt_page *page, const char *foot);

void shunt_page_heading(struct shunt_page *page, const char *text);
/* `class`: "", "none" (dim), "bad" (a fault), "a" (a command), or "verdict" with "faster" or "slower" behind it. */
void shunt_page_paragraph(struct shunt_page *page, const char *class, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Items that follow each other are a list. */
void shunt_page_item(struct shunt_page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of a whole text, for callbacks: `page` is a struct shunt_page. */
void shunt_page_say(void *page, const char *text);

/*
 * A table. `title` is "", or a heading. Names of columns have '|' between them; a '#' before a name means numbers, '@'
 * addresses or commands. "": the caller says a row of names.
 */
void shunt_page_table(struct shunt_page *page, const char *title, const char *class,
		      const char *columns);
void shunt_page_row(struct shunt_page *page);
/* A name of a row, or of a column. */
void shunt_page_name(struct shunt_page *page, const char *text);
void shunt_page_cell(struct shunt_page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A cell over several columns. */
void shunt_page_wide(struct shunt_page *page, size_t columns, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A cell with a colour and a tip: "link", "tcp", "unreachable" or "unknown". */
void shunt_page_mark(struct shunt_page *page, const char *class, const char *tip, const char *text);
/* A percentage with a bar; below 0: there is none. */
void shunt_page_percent(struct shunt_page *page, double percent);
/* `none`: what is said if no row followed the columns; NULL: nothing. */
void shunt_page_table_end(struct shunt_page *page, const char *none);

/*
 * mesh.c: a table of hosts, each cell one way, and why ways are not on a link. `root` is what `shunt ping --matrix --json`
 * writes. Of more hosts than `most` the others are left out.
 */
void shunt_page_mesh(struct shunt_page *page, const json_t *root, size_t most);

/* For chart.c: ends an open list; the next element goes to the file. */
FILE *shunt_page_next(struct shunt_page *page);
/* A time of day, for people. Returns text. */
const char *shunt_page_clock(time_t time, char text[32]);
/* Text within a page or an attribute. */
void shunt_page_text(FILE *file, const char *text);

#endif
