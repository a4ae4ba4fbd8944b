/* SPDX-License-Identifier: MIT */
#include "preload/gate/sites.h"
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define LONGEST 1024	/* bytes of a function that is looked at */

/* `needed`: where one lacks, no call is taken. Half of a set's calls, or of a stream's, would be worse than none. */
static const struct {
	const char *name;
	bool needed;
} functions[] = {
	{ "read", true },	   { "write", true },	     { "readv", true },
	{ "writev", true },	   { "recv", true },	     { "recvfrom", true },
	{ "recvmsg", true },	   { "send", true },	     { "sendto", true },
	{ "sendmsg", true },	   { "poll", true },	     { "ppoll", true },
	{ "select", true },	   { "pselect", true },	     { "epoll_ctl", true },
	{ "epoll_wait", true },	   { "epoll_pwait", true },  { "close", true },
	{ "shutdown", true },	   { "connect", true },	     { "accept", true },
	{ "accept4", true },	   { "listen", true },	     { "getsockopt", true },
	{ "setsockopt", true },	   { "fcntl", true },	     { "dup", true },
	{ "dup2", true },	   { "dup3", true },	     { "epoll_create", false },
	{ "epoll_create1", false }, { "epoll_pwait2", false }, { "recvmmsg", false },
	{ "sendmmsg", false },	   { "preadv2", false },     { "pwritev2", false },
	{ "sendfile", false },	   { "splice", false },	     { "ioctl", false },
	{ "close_range", false },  { "syscall", false },     { "__close_nocancel", false },
	{ "__read_nocancel", false }, { "__write_nocancel", false },
};

struct table {
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash;	/* DT_GNU_HASH */
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

/* `at`: a SYSCALL of the function. False: it is not as it is known. */
static bool take(struct shunt_gate_sites *sites, uint8_t *code, size_t size, uint8_t *at)
{
	struct shunt_gate_site site = { at - 5, SHUNT_GATE_NUMBER };
	size_t before = (size_t)(at - code), behind = size - before;

	if (before >= 5 && at[-5] == 0xe9)
		return true;	/* another name of the function has led here */
	if (before < 5 || at[-5] != 0xb8 || at[-2] || at[-1]) {
		site = (struct shunt_gate_site) { at, SHUNT_GATE_COMPARE };
		if (behind < 8 || memcmp(at + 2, "\x48\x3d", 2) || memcmp(at + 5, "\xf0\xff\xff", 3) ||
		    leads_to(code, size, at + 2))
			return false;
	}
	for (unsigned int i = 0; i < sites->count; i++)
		if (sites->site[i].at == site.at)
			return true;
	if (sites->count == SHUNT_GATE_SITES)
		return false;
	sites->site[sites->count++] = site;
	return true;
}

static bool look_at(struct shunt_gate_sites *sites, uint8_t *code, size_t size)
{
	unsigned int found = 0, taken = 0;

	if (size > LONGEST)
		return false;
	for (uint8_t *at = code; (at = memmem(at, (size_t)(code + size - at), "\x0f\x05", 2)); at += 2) {
		found++;
		taken += take(sites, code, size, at);
	}
	return found && found == taken;
}

void shunt_gate_sites_find(struct shunt_gate_sites *sites, const struct link_map *library, bool whole)
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
		sites->unknown += !known;
		if (!known && functions[i].needed && !sites->lacking)
			sites->lacking = functions[i].name;
	}
}
