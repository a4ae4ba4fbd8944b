/* SPDX-License-Identifier: MIT */
/* The kernel's word on a mapping of this process (proc_pid_smaps(5)). */
#ifndef TESTS_VM_H
#define TESTS_VM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From /proc/self/smaps, for the mapping with address `at`: the value of `field`, or "". */
static inline void vm_field(const void *at, const char *field, char text[256])
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[512];
	bool here = false;

	text[0] = '\0';
	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)at && (uintptr_t)at < to;
		if (here && !strncmp(line, field, strlen(field)))
			snprintf(text, 256, "%.250s", line + strlen(field));
	}
	if (smaps)
		fclose(smaps);
}

/* The mapping has this flag of two letters. */
static inline bool vm_has(const void *at, const char *flag)
{
	char flags[256], word[8];

	vm_field(at, "VmFlags:", flags);
	snprintf(word, sizeof(word), " %.2s ", flag);
	return strstr(flags, word) != NULL;
}

/* KiB of the mapping that are mapped by huge pages of the kind, as "ShmemPmdMapped:" or "AnonHugePages:". */
static inline long vm_huge(const void *at, const char *kind)
{
	char text[256];

	vm_field(at, kind, text);
	return atol(text);
}

/* By this file of /sys/kernel/mm/transparent_hugepage the kernel gives such pages where it is asked. */
static inline bool vm_gives_transparent(const char *file)
{
	char path[128], text[128] = "";
	FILE *choice;

	snprintf(path, sizeof(path), "/sys/kernel/mm/transparent_hugepage/%s", file);
	choice = fopen(path, "r");
	if (choice && !fgets(text, sizeof(text), choice))
		text[0] = '\0';
	if (choice)
		fclose(choice);
	return strstr(text, "[always]") || strstr(text, "[madvise]") || strstr(text, "[advise]") ||
	       strstr(text, "[within_size]") || strstr(text, "[force]");
}

#endif
