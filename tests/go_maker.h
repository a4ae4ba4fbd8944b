/* SPDX-License-Identifier: MIT */
/*
 * Makes the file of a small Go program: headers, functions with the bytes that real ones have, the table of functions
 * in each of its forms, build info. Programs of Go 1.16 to 1.26 were the models.
 */
#ifndef GO_MAKER_H
#define GO_MAKER_H

#include <stddef.h>
#include <stdint.h>

enum { GO_MADE_MAX = 8192, GO_MADE_BASE = 0x400000 };

struct go_function {
	const char *name;
	const char *code;
	unsigned char bytes;
};

#define GO_FUNCTION(name, code) { name, code, sizeof(code) - 1 }

struct go_program {
	uint32_t magic;
	const char *version;
	int old_info;		/* the version's text has an address, as before 1.18 */
	int text_elsewhere;	/* in the module's data only, as since 1.26 */
	int no_sections;
	const struct go_function *functions;
	size_t count;
};

/* Programs of 1.17, 1.19, 1.20, 1.24 and 1.26, with cgo. */
extern const struct go_program go_programs[];
enum { GO_PROGRAMS = 5 };

/* The file's bytes. */
size_t go_make(const struct go_program *program, uint8_t file[GO_MADE_MAX]);
/* Where the code of a function is in the file; 0: there is none of that name. */
size_t go_made_at(const struct go_program *program, const char *name);

#endif
