/* SPDX-License-Identifier: MIT */
#include "tests/go_maker.h"
#include <elf.h>
#include <string.h>

enum {
	TEXT = 0x200,
	FUNCTION = 64,
	TABLE = 0xa00,
	NAMES = 0x60,
	ROWS = 0x400,
	RECORDS = 0x600,
	DATA = 0x1600,
	NAMES_OF_SECTIONS = 0x1a00,
	SECTIONS = 0x1b00,
	END = 0x1d00
};

#define SYSCALL6 "\x49\x89\xf2\x48\x89\xfa\x48\x89\xce\x48\x89\xdf\x0f\x05\x48\x3d\x01\xf0\xff\xff\x76\x15"
#define CALL(number, rest) "\x8b\x7c\x24\x08\xb8" number "\x0f\x05" rest
#define STACK "\x4c\x8b\x44\x24\x20\x48\x8b\x44\x24\x08\x0f\x05\x48\x3d\x01\xf0\xff\xff"
#define VFORK "\x48\x8b\x44\x24\x08\x41\x5c\x0f\x05\x41\x54\x48\x3d\x01\xf0\xff\xff"

#define OWN_CALLS                                                                                  \
	GO_FUNCTION("runtime.exit", CALL("\xe7\0\0\0", "\xc3")),                                   \
		GO_FUNCTION("runtime.exitThread", CALL("\x3c\0\0\0", "\xcd\x03\xeb\xfe")),         \
		GO_FUNCTION("runtime.closefd", CALL("\x03\0\0\0", "\x48\x3d\x01\xf0\xff\xff")),    \
		GO_FUNCTION("runtime.write1", CALL("\x01\0\0\0", "\x89\x44\x24\x20\xc3")),         \
		GO_FUNCTION("runtime.write1",                                                      \
			    "\xe9\x12\x34\x56\x78"), /* the wrapper of that name */                \
		GO_FUNCTION("runtime.read", CALL("\0\0\0\0", "\x89\x44\x24\x20\xc3")),             \
		GO_FUNCTION("runtime.futex", CALL("\xca\0\0\0", "\x89\x44\x24\x20\xc3"))
#define EPOLL                                                                                      \
	GO_FUNCTION("runtime.epollcreate", CALL("\xd5\0\0\0", "\x89\x44\x24\x10\xc3")),            \
		GO_FUNCTION("runtime.epollcreate1", CALL("\x23\x01\0\0", "\x89\x44\x24\x10\xc3")), \
		GO_FUNCTION("runtime.epollctl", CALL("\xe9\0\0\0", "\x89\x44\x24\x20\xc3")),       \
		GO_FUNCTION("runtime.epollwait", CALL("\x19\x01\0\0", "\x89\x44\x24\x20\xc3"))

#define OTHERS                                                                                     \
	GO_FUNCTION("syscall.rawVforkSyscall", VFORK),                                             \
		GO_FUNCTION("crosscall2", "\x48\x83\xec\x38"),                                     \
		GO_FUNCTION("main.main", "\x0f\x05\xc3")

static const struct go_function of_17[] = {
	OWN_CALLS,
	EPOLL,
	GO_FUNCTION("syscall.Syscall", STACK),
	GO_FUNCTION("syscall.Syscall6", STACK),
	GO_FUNCTION("syscall.RawSyscall", STACK),
	OTHERS,
};

static const struct go_function of_19[] = {
	GO_FUNCTION("runtime/internal/syscall.Syscall6", SYSCALL6), OWN_CALLS, EPOLL,
	/* Calls the gate by now; the bytes of SYSCALL are part of a distance. */
	GO_FUNCTION("syscall.Syscall6", "\xe8\x8a\x0f\x05\xff\xc3"), OTHERS,
};

static const struct go_function of_20[] = {
	GO_FUNCTION("runtime/internal/syscall.Syscall6", SYSCALL6), OWN_CALLS, OTHERS,
};

static const struct go_function of_24[] = {
	OWN_CALLS, GO_FUNCTION("internal/runtime/syscall.Syscall6", SYSCALL6), OTHERS,
};

static const struct go_function of_26[] = {
	GO_FUNCTION("internal/runtime/syscall/linux.Syscall6", SYSCALL6), OWN_CALLS, OTHERS,
};

#define COUNT(list) .functions = list, .count = sizeof(list) / sizeof(*(list))

const struct go_program go_programs[GO_PROGRAMS] = {
	{ 0xfffffffa, "go1.17.1", .old_info = 1, COUNT(of_17) },
	{ 0xfffffff0, "go1.19.8", COUNT(of_19) },
	{ 0xfffffff1, "go1.20.12", COUNT(of_20) },
	{ 0xfffffff1, "go1.24.2", .no_sections = 1, COUNT(of_24) },
	{ 0xfffffff1, "go1.26.5", .text_elsewhere = 1, COUNT(of_26) },
};

static void put(uint8_t *at, uint64_t word, size_t bytes)
{
	memcpy(at, &word, bytes);
}

static uint64_t address(size_t at)
{
	return GO_MADE_BASE + at;
}

static void make_table(const struct go_program *program, uint8_t *table)
{
	size_t wide = program->magic == 0xfffffffa ? 8 : 4, name = 0;
	uint64_t base = wide == 8 ? address(TEXT) : 0;
	uint64_t words[8] = { program->count, 1,     program->text_elsewhere ? 0 : address(TEXT),
			      NAMES,	      NAMES, NAMES,
			      NAMES,	      ROWS };
	uint8_t *rows = table + ROWS;

	put(table, program->magic, 4);
	put(table + 4, 0x0801, 4);
	table[6] = 1, table[7] = 8, table[4] = table[5] = 0;
	if (wide == 8)
		memmove(words + 2, words + 3, 5 * sizeof(*words));
	memcpy(table + 8, words, wide == 8 ? 7 * 8 : 8 * 8);
	for (size_t i = 0; i <= program->count; i++) {
		size_t record = RECORDS - ROWS + i * 16;

		put(rows + i * 2 * wide, base + i * FUNCTION, wide);
		if (i == program->count)
			break;
		put(rows + i * 2 * wide + wide, record, wide);
		put(rows + record, base + i * FUNCTION, wide);
		put(rows + record + wide, name, 4);
		strcpy((char *)table + NAMES + name, program->functions[i].name);
		name += strlen(program->functions[i].name) + 1;
	}
}

static void make_data(const struct go_program *program, uint8_t *data)
{
	uint8_t *module = data + 0x80;

	memcpy(data, "\xff Go buildinf:", 14);
	data[14] = 8;
	if (program->old_info) {
		put(data + 16, address(DATA) + 0x40, 8);
		put(data + 0x40, address(DATA) + 0x50, 8);
		put(data + 0x48, strlen(program->version), 8);
		strcpy((char *)data + 0x50, program->version);
	} else {
		data[15] = 2;
		data[32] = (uint8_t)strlen(program->version);
		strcpy((char *)data + 33, program->version);
	}
	put(module, address(TABLE), 8);
	put(module + 16 * 8, address(TABLE + ROWS), 8);
	put(module + 17 * 8, program->count + 1, 8);
	put(module + 20 * 8, address(TEXT), 8);
	put(module + 22 * 8, address(TEXT), 8);
}

static void make_headers(uint8_t *file)
{
	static const struct {
		uint32_t type, flags;
		size_t from, to;
	} parts[] = {
		{ PT_NOTE, PF_R, 0x180, 0x190 },
		{ PT_LOAD, PF_R | PF_X, 0, TABLE },
		{ PT_LOAD, PF_R, TABLE, DATA },
		{ PT_LOAD, PF_R | PF_W, DATA, NAMES_OF_SECTIONS },
	};
	Elf64_Ehdr *elf = (Elf64_Ehdr *)file;
	Elf64_Phdr *headers = (Elf64_Phdr *)(file + sizeof(*elf));

	memcpy(elf->e_ident, ELFMAG, SELFMAG);
	elf->e_ident[EI_CLASS] = ELFCLASS64;
#ifdef __aarch64__
	elf->e_machine = EM_AARCH64;
#else
	elf->e_machine = EM_X86_64;
#endif
	elf->e_phoff = sizeof(*elf);
	elf->e_phentsize = sizeof(*headers);
	elf->e_phnum = 4;
	for (int i = 0; i < 4; i++)
		headers[i] = (Elf64_Phdr) { .p_type = parts[i].type, .p_flags = parts[i].flags, .p_offset = parts[i].from,
					    .p_vaddr = address(parts[i].from), .p_filesz = parts[i].to - parts[i].from,
					    .p_memsz = parts[i].to - parts[i].from };
	memcpy(file + 0x180, "\4\0\0\0\0\0\0\0\4\0\0\0Go\0\0", 16);
}

static void make_sections(uint8_t *file)
{
	Elf64_Ehdr *elf = (Elf64_Ehdr *)file;
	Elf64_Shdr *sections = (Elf64_Shdr *)(file + SECTIONS);

	elf->e_shoff = SECTIONS;
	elf->e_shentsize = sizeof(*sections);
	elf->e_shnum = 3;
	elf->e_shstrndx = 1;
	memcpy(file + NAMES_OF_SECTIONS, "\0.gopclntab", 12);
	sections[1] = (Elf64_Shdr) { .sh_offset = NAMES_OF_SECTIONS, .sh_size = 16 };
	sections[2] = (Elf64_Shdr) { .sh_name = 1, .sh_addr = address(TABLE) };
}

size_t go_make(const struct go_program *program, uint8_t file[GO_MADE_MAX])
{
	memset(file, 0, GO_MADE_MAX);
	make_headers(file);
	memset(file + TEXT, 0xcc, program->count * FUNCTION);
	for (size_t i = 0; i < program->count; i++)
		memcpy(file + TEXT + i * FUNCTION, program->functions[i].code,
		       program->functions[i].bytes);
	make_table(program, file + TABLE);
	make_data(program, file + DATA);
	if (!program->no_sections)
		make_sections(file);
	return program->no_sections ? NAMES_OF_SECTIONS : END;
}

size_t go_made_at(const struct go_program *program, const char *name)
{
	for (size_t i = 0; i < program->count; i++)
		if (!strcmp(program->functions[i].name, name))
			return TEXT + i * FUNCTION;
	return 0;
}
