/* SPDX-License-Identifier: MIT */
/*
 * The table of functions that every Go program has in its memory (.gopclntab, src/runtime/symtab.go): names and
 * addresses. It has had three forms: of Go 1.16, 1.18 and 1.20. Go's source calls the last one go120magic, and 1.26
 * has it still. Its header has no address of the text from 1.26 on; the module's data has.
 */
#ifndef SHUNT_CORE_GO_PCLNTAB_H
#define SHUNT_CORE_GO_PCLNTAB_H

#include "core/go/image.h"

struct shunt_go_table {
	const uint8_t *bytes;
	uint64_t size;		/* up to the end of the segment: the header does not tell the end */
	uint64_t address;	/* of the header */
	unsigned int form;	/* 16, 18 or 20: the Go 1.x in which this form was new */
	uint64_t count;		/* functions */
	uint64_t text;		/* what addresses of the form 18 and later count from */
	uint64_t names, functions;	/* offsets in bytes */
};

struct shunt_go_function {
	const char *name;	/* in the table, and ends there */
	uint64_t from, to;	/* addresses of its code */
};

/* Reads the header at this address. False: no known header is there, or it contradicts the image. */
bool shunt_go_table_read(struct shunt_go_table *table, const struct shunt_go_image *image,
			 uint64_t address);
/* Looks for a header in what is not code. */
bool shunt_go_table_search(struct shunt_go_table *table, const struct shunt_go_image *image);
/* False: the row contradicts the table. */
bool shunt_go_table_function(const struct shunt_go_table *table, uint64_t row,
			     struct shunt_go_function *function);

#endif
