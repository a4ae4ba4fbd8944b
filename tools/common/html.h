/* SPDX-License-Identifier: MIT */
/* Text in a page or in an attribute's quotes. Bytes that are not printable are escaped before: output.h. */
#ifndef SHUNT_TOOLS_HTML_H
#define SHUNT_TOOLS_HTML_H

#include <stdio.h>

void shunt_html_text(FILE *file, const char *text);

/* Can the file be written? Asked before anything is measured. `path` NULL: yes. 0, or -1 after saying why not. */
int shunt_html_check(const char *who, const char *path);
/* A page that needs nothing else: no script, nothing from elsewhere. NULL after saying, in the name of `who`, why not. */
FILE *shunt_html_begin(const char *who, const char *path, const char *title);
/* With the machine and the time at its foot. 0, or -1 after saying why not. */
int shunt_html_end(const char *who, const char *path, FILE *file);
/* A file for a picture alone, and its end: as above. */
FILE *shunt_html_open(const char *who, const char *path);
int shunt_html_close(const char *who, const char *path, FILE *file);
/* A cell with text; `class`: "n" for numbers, or "". */
void shunt_html_cell(FILE *file, const char *class, const char *text);
/* A table's head, up to NULL. */
void shunt_html_head(FILE *file, const char *const columns[]);

#endif
