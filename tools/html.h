/* SPDX-License-Identifier: MIT */
/* Text in a page or in an attribute's quotes. Bytes that are not printable are escaped before: output.h. */
#ifndef SHUNT_TOOLS_HTML_H
#define SHUNT_TOOLS_HTML_H

#include <stdio.h>

void shunt_html_text(FILE *file, const char *text);

#endif
