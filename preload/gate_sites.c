/* SPDX-License-Identifier: MIT */
#include "preload/gate_sites.h"
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define LONGEST 1024 /* bytes of a function that is looked at */
#define CALLED 128 /* bytes of one that it calls */

/* `needed`: where one lacks, no call is taken. Half of a set's calls, or of a stream's, would be worse than none. */
static const struct {
	const char *name;
	bool needed;
} functions[] = {
	{ "read", true },
	{ "write", true },
	{ "readv", true },
	{ "writev", true },
	{ "recv", true },
	{ "recvfrom", true },
	{ "recvmsg", true },
	{ "send", true },
	{ "sendto", true },
	{ "sendmsg", true },
	{ "poll", true },
	{ "ppoll", true },
	{ "select", true },
	{ "pselect", true },
	{ "epoll_ctl", true },
	{ "epoll_wait", true },
	{ "epoll_pwait", true },
	{ "close", true },
	{ "shutdown", true },
	{ "connect", true },
	{ "accept", true },
	{ "accept4", true },
	{ "listen", true },
	{ "getsockopt", true },
	{ "setsockopt", true },
	{ "fcntl", true },
	{ "dup", true },
	{ "dup2", true },
	{ "dup3", true },
	{ "epoll_create", false },
	{ "epoll_create1", false },
	{ "epoll_pwait2", false },
	{ "recvmmsg", false },
	{ "sendmmsg", false },
	{ "preadv2", false },
	{ "pwritev2", false },
	{ "sendfile", false },
	{ "splice", false },
	{ "ioctl", false },
	{ "close_range", false },
	{ "syscall", false },
	{ "__close_nocancel", false },
	{ "__write_nocancel", false },
};

struct table {
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash; /* DT_GNU_HASH */
};

/* glibc has put the load address into these before. */
static bool find_table(struct table *table, const struct link_map *library)
{
	*table = (struct table) { 0 };
	for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_SYMTAB)
			table->symbols = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRTAB)
			table->strings = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_GNU_HASH)
			table->hash = (const void *)entry->d_un.d_ptr;
	return table->symbols && table->strings && table->hash;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* NULL: the library has no function of that name. */
static const Elf64_Sym *find_symbol(const struct table *table, const char *name)
{
	uint32_t buckets = table->hash[0], first = table->hash[1], bloom = table->hash[2];
	const uint32_t *bucket = table->hash + 4 + bloom * 2, *chain = bucket + buckets;
	uint32_t hash = hash_of(name), at = buckets ? bucket[hash % buckets] : 0;

	if (at < first)
		return NULL;
	for (;; at++) {
		const Elf64_Sym *symbol = &table->symbols[at];

		if ((chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		    !strcmp(table->strings + symbol->st_name, name))
			return symbol;
		if (chain[at - first] & 1)
			return NULL;
	}
}

/* Bytes that may be a jump, of whatever instructions they are, lead to `to`. */
static bool leads_to(const uint8_t *code, size_t size, const uint8_t *to)
{
	for (size_t i = 0; i + 1 < size; i++) {
		const uint8_t *target = NULL;
		int32_t far;

		if ((code[i] & 0xf0) == 0x70 || code[i] == 0xeb || (code[i] & 0xfc) == 0xe0)
			target = code + i + 2 + (int8_t)code[i + 1];
		if (target == to)
			return true;
		if (code[i] != 0xe9 && (code[i] & 0xf0) != 0x80)
			continue;
		if (i + 5 > size)
			continue;
		memcpy(&far, code + i + 1, 4);
		target = code + i + 5 + far;
		if (target == to)
			return true;
	}
	return false;
}

/* Instructions before SYSCALL, as bytes: -1 is any. `parts`: their lengths. */
static const struct shape {
	uint8_t length;
	uint8_t parts[3];
	bool tests;
	int16_t bytes[11];
} shapes[] = {
	/* mov $n, %eax */
	{ 5, { 5 }, false, { 0xb8, -1, -1, 0, 0 } },
	/* mov $n, %eax; mov n(%rsp), %edi */
	{ 9, { 5, 4 }, false, { 0xb8, -1, -1, 0, 0, 0x8b, 0x7c, 0x24, -1 } },
	/* mov n(%rsp), %rsi; mov n(%rsp), %edi */
	{ 9, { 5, 4 }, false, { 0x48, 0x8b, 0x74, 0x24, -1, 0x8b, 0x7c, 0x24, -1 } },
	/* mov n(%rsp), %rsi */
	{ 5, { 5 }, false, { 0x48, 0x8b, 0x74, 0x24, -1 } },
	/* mov n(%rsp), %r9 */
	{ 5, { 5 }, false, { 0x4c, 0x8b, 0x4c, 0x24, -1 } },
	/* mov n(%rsp), %edi; xor %eax, %eax */
	{ 6, { 4, 2 }, false, { 0x8b, 0x7c, 0x24, -1, 0x31, 0xc0 } },
	/* cmpb $0, flag(%rip); je somewhere; xor %eax, %eax */
	{ 11, { 7, 2, 2 }, true, { 0x80, 0x3d, -1, -1, -1, -1, 0, 0x74, -1, 0x31, 0xc0 } },
};

static bool has_shape(const struct shape *shape, const uint8_t *at)
{
	for (unsigned int i = 0; i < shape->length; i++)
		if (shape->bytes[i] >= 0 && shape->bytes[i] != at[i])
			return false;
	return true;
}

static bool leads_into(const struct shape *shape, const uint8_t *code, size_t size,
		       const uint8_t *at)
{
	for (unsigned int i = 0; i < 2 && shape->parts[i + 1]; i++) {
		at += shape->parts[i];
		if (leads_to(code, size, at))
			return true;
	}
	return false;
}

static bool add(struct shunt_gate_sites *sites, const struct shunt_gate_site *site)
{
	for (unsigned int i = 0; i < sites->count; i++)
		if (sites->site[i].syscall == site->syscall)
			return true; /* another name of the function */
	if (sites->count == SHUNT_GATE_SITES)
		return false;
	sites->site[sites->count++] = *site;
	return true;
}

/* `at`: a SYSCALL of the function. False: what is before it is not as it is known. */
static bool take(struct shunt_gate_sites *sites, uint8_t *code, size_t size, uint8_t *at)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const struct shape *shape = &shapes[i];

		if (at - code >= shape->length && has_shape(shape, at - shape->length) &&
		    !leads_into(shape, code, size, at - shape->length))
			return add(sites, &(struct shunt_gate_site) { at - shape->length, at,
								      shape->tests });
	}
	return false;
}

static bool look_at(struct shunt_gate_sites *sites, uint8_t *code, size_t size)
{
	unsigned int found = 0, taken = 0;

	if (size > LONGEST)
		return false;
	for (uint8_t *at = code; (at = memmem(at, (size_t)(code + size - at), "\x0f\x05", 2));
	     at += 2) {
		found++;
		taken += take(sites, code, size, at);
	}
	return found && found == taken;
}

/* Where the library has code. */
static bool find_code(const struct link_map *library, uintptr_t *from, uintptr_t *to)
{
	const Elf64_Ehdr *header = (const void *)library->l_addr;
	const Elf64_Phdr *segment;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_phentsize != sizeof(*segment))
		return false;
	segment = (const void *)(library->l_addr + header->e_phoff);
	for (unsigned int i = 0; i < header->e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			*from = library->l_addr + segment->p_vaddr;
			*to = *from + segment->p_memsz;
			return true;
		}
	return false;
}

/* fcntl() leaves most commands to a function without a name: the first that it calls and that makes the system call. */
static bool take_called(struct shunt_gate_sites *sites, const struct link_map *library,
			const uint8_t *code, size_t size)
{
	static const uint8_t call[] = { 0xb8, 72, 0, 0, 0, 0x0f, 0x05 }; /* SYS_fcntl */
	uintptr_t low, high;

	if (!find_code(library, &low, &high))
		return false;
	for (size_t i = 0; i + 5 <= size; i++) {
		uint8_t *to, *at;
		int32_t far;
		bool any = false;

		memcpy(&far, code + i + 1, 4);
		to = (uint8_t *)code + i + 5 + far;
		if (code[i] != 0xe8 || (uintptr_t)to < low || (uintptr_t)to + CALLED > high)
			continue;
		for (at = to; (at = memmem(at, (size_t)(to + CALLED - at), call, sizeof(call)));
		     at += 7)
			any |= take(sites, to, CALLED, at + 5);
		if (any)
			return true;
	}
	return false;
}

void shunt_gate_sites_find(struct shunt_gate_sites *sites, const struct link_map *library,
			   bool whole)
{
	const Elf64_Sym *symbol;
	struct table table;
	bool known;

	if (!find_table(&table, library)) {
		sites->lacking = "its table of symbols";
		return;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		symbol = find_symbol(&table, functions[i].name);
		if (!symbol && !whole)
			continue;
		known = symbol && look_at(sites, (uint8_t *)library->l_addr + symbol->st_value,
					  symbol->st_size);
		if (known && !strcmp(functions[i].name, "fcntl"))
			known = take_called(sites, library,
					    (uint8_t *)library->l_addr + symbol->st_value,
					    symbol->st_size);
		sites->unknown += !known;
		if (!known && functions[i].needed && !sites->lacking)
			sites->lacking = functions[i].name;
	}
}

bool shunt_gate_sites_replaced(const struct link_map *library)
{
	struct table table;
	const Elf64_Sym *symbol = find_table(&table, library) ? find_symbol(&table, "write") : NULL;
	uint8_t *code, *at;

	if (!symbol || symbol->st_size > LONGEST)
		return false;
	code = (uint8_t *)library->l_addr + symbol->st_value;
	at = memmem(code, symbol->st_size, "\x0f\x05", 2);
	return at && at - code >= 5 && at[-5] == 0xe9;
}
