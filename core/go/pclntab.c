/* SPDX-License-Identifier: MIT */
#include "core/go/pclntab.h"

#define HEADER 8		/* magic, two zeros, the least size of an instruction, the size of a pointer */
#define FUNCTIONS_MAX (1U << 24)
#define ALIGNMENT 32		/* of the table: the linker's for such symbols */
#define MODULE_WORDS 23		/* of struct moduledata, up to its text */

static unsigned int form_of(uint32_t magic)
{
	switch (magic) {
	case 0xfffffffa:
		return 16;
	case 0xfffffff0:
		return 18;
	case 0xfffffff1:
		return 20;
	default:
		return 0;
	}
}

/* The 64-bit words behind the first eight bytes. The form of 1.18 has put the address of the text before the offsets. */
static uint64_t word(const struct shunt_go_table *table, unsigned int number)
{
	return shunt_go_u64(table->bytes + HEADER + number * 8);
}

/* Bytes of a row in the list of functions: two words, which have been half as long since 1.18. */
static uint64_t row_size(const struct shunt_go_table *table)
{
	return table->form == 16 ? 16 : 8;
}

/*
 * In struct moduledata (src/runtime/symtab.go): the first word is the address of the table. Five slices follow, then
 * that of the rows, findfunctab, minpc, maxpc and text.
 */
static bool is_module(const struct shunt_go_table *table, const uint8_t *words)
{
	return shunt_go_u64(words) == table->address &&
	       shunt_go_u64(words + 16 * 8) == table->address + table->functions &&
	       shunt_go_u64(words + 17 * 8) == table->count + 1 &&
	       shunt_go_u64(words + 20 * 8) - shunt_go_u64(words + 22 * 8) < UINT32_MAX;
}

static uint64_t text_of_module(const struct shunt_go_table *table,
			       const struct shunt_go_image *image)
{
	for (unsigned int i = 0; i < image->count; i++) {
		const struct shunt_go_segment *segment = &image->segments[i];

		if (!(segment->flags & PF_W))
			continue;
		for (uint64_t at = 0; at + MODULE_WORDS * 8 <= segment->size; at += 8)
			if (is_module(table, segment->bytes + at))
				return shunt_go_u64(segment->bytes + at + 22 * 8);
	}
	return 0;
}

/* Names and rows begin behind the header, and the rows with the address behind the last function are all there. */
static bool is_whole(const struct shunt_go_table *table)
{
	uint64_t rows = table->count * row_size(table) + row_size(table) / 2;

	return table->count && table->count <= FUNCTIONS_MAX && table->names < table->size &&
	       table->functions < table->size && rows <= table->size - table->functions;
}

bool shunt_go_table_read(struct shunt_go_table *table, const struct shunt_go_image *image,
			 uint64_t address)
{
	const struct shunt_go_segment *segment = shunt_go_image_segment(image, address);
	unsigned int later;

	if (!segment || !shunt_go_image_at(image, address, HEADER + 8 * 8))
		return false;
	*table = (struct shunt_go_table) { .bytes = segment->bytes + (address - segment->address),
					   .size = segment->size - (address - segment->address),
					   .address = address };
	table->form = form_of(shunt_go_u32(table->bytes));
	if (!table->form || table->bytes[4] || table->bytes[5] || table->bytes[6] > 4 ||
	    table->bytes[7] != 8)
		return false;
	later = table->form == 16 ? 0 : 1;
	table->count = word(table, 0);
	table->names = word(table, 2 + later);
	table->functions = word(table, 6 + later);
	if (!is_whole(table))
		return false;
	if (later)
		table->text = word(table, 2);
	if (later && !table->text)
		table->text = text_of_module(table, image);
	return table->form == 16 || table->text;
}

bool shunt_go_table_search(struct shunt_go_table *table, const struct shunt_go_image *image)
{
	for (unsigned int i = 0; i < image->count; i++) {
		const struct shunt_go_segment *segment = &image->segments[i];
		uint64_t at = -segment->address % ALIGNMENT;

		if (segment->flags & PF_X)
			continue;
		for (; at + HEADER <= segment->size; at += ALIGNMENT)
			if (form_of(shunt_go_u32(segment->bytes + at)) &&
			    shunt_go_table_read(table, image, segment->address + at))
				return true;
	}
	return false;
}

bool shunt_go_table_function(const struct shunt_go_table *table, uint64_t row,
			     struct shunt_go_function *function)
{
	bool old = table->form == 16;
	const uint8_t *rows = table->bytes + table->functions, *at;
	uint64_t room = table->size - table->functions, names = table->size - table->names, record,
		 name;
	size_t field = old ? 8 : 4;

	if (row >= table->count)
		return false;
	at = rows + row * row_size(table);
	if (old) {
		function->from = shunt_go_u64(at);
		record = shunt_go_u64(at + 8);
		function->to = shunt_go_u64(at + 16);
	} else {
		function->from = table->text + shunt_go_u32(at);
		record = shunt_go_u32(at + 4);
		function->to = table->text + shunt_go_u32(at + 8);
	}
	if (function->to < function->from || record >= room || room - record < field + 4)
		return false;
	name = shunt_go_u32(rows + record + field);
	if (name >= names)
		return false;
	function->name = (const char *)table->bytes + table->names + name;
	return memchr(function->name, 0, names - name) != NULL;
}
