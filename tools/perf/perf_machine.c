/* SPDX-License-Identifier: MIT */
/* CPU, caches, kernel, congestion control and memory, from /proc and /sys. */
#include "tools/perf/perf_machine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/proc.h"

#define CACHE "/sys/devices/system/cpu/cpu0/cache/index%zu/%s"
#define LAST_LEVEL_GUESS (32 << 20)

/* "key : value" of a file with such lines, or "". */
static void read_value(const char *root, const char *path, const char *key, char *text, size_t room)
{
	char name[512], line[512];
	size_t length = strlen(key);
	FILE *file;

	text[0] = '\0';
	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "re");
	while (file && !text[0] && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, key, length) || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		snprintf(text, room, "%.*s", (int)strcspn(colon, "\n"), colon);
	}
	if (file)
		fclose(file);
}

/* "32768K" */
static uint64_t cache_bytes(const char *text)
{
	char *end;
	uint64_t bytes = strtoull(text, &end, 10);

	return *end == 'K' ? bytes << 10 : *end == 'M' ? bytes << 20 : bytes;
}

static void read_cache(struct perf_machine *machine, const char *root, size_t index)
{
	struct perf_cache *cache = &machine->caches[machine->cache_count];
	char level[8], type[32], size[32];

	shunt_tree_read(root, level, sizeof(level), CACHE, index, "level");
	shunt_tree_read(root, type, sizeof(type), CACHE, index, "type");
	shunt_tree_read(root, size, sizeof(size), CACHE, index, "size");
	cache->bytes = cache_bytes(size);
	if (!cache->bytes)
		return;
	snprintf(cache->name, sizeof(cache->name), "L%.4s%s", level,
		 !strcmp(type, "Data")	      ? "d" :
		 !strcmp(type, "Instruction") ? "i" :
						"");
	shunt_tree_read(root, cache->cpus, sizeof(cache->cpus), CACHE, index, "shared_cpu_list");
	machine->cache_count++;
}

void perf_machine_read(struct perf_machine *machine, const char *root)
{
	char release[64], text[32];

	memset(machine, 0, sizeof(*machine));
	read_value(root, "/proc/cpuinfo", "model name", machine->cpu, sizeof(machine->cpu));
	machine->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (size_t i = 0; i < PERF_CACHES_MAX; i++)
		read_cache(machine, root, i);
	shunt_tree_read(root, release, sizeof(release), "/proc/sys/kernel/osrelease");
	if (release[0])
		snprintf(machine->kernel, sizeof(machine->kernel), "Linux %s", release);
	shunt_tree_read(root, machine->congestion, sizeof(machine->congestion),
			"/proc/sys/net/ipv4/tcp_congestion_control");
	read_value(root, "/proc/meminfo", "MemTotal", text, sizeof(text));
	machine->memory = strtoull(text, NULL, 10) << 10;
}

uint64_t perf_machine_last_level(void)
{
	static uint64_t bytes;
	struct perf_machine machine;

	if (bytes)
		return bytes;
	perf_machine_read(&machine, "");
	for (size_t i = 0; i < machine.cache_count; i++)
		if (machine.caches[i].bytes > bytes)
			bytes = machine.caches[i].bytes;
	if (!bytes)
		bytes = LAST_LEVEL_GUESS;
	return bytes;
}

const char *perf_machine_bytes(uint64_t bytes, char text[24])
{
	static const char units[] = "KMGT";
	size_t unit = 0;

	bytes >>= 10;
	while (unit < sizeof(units) - 2 && bytes >= 1024 && (bytes % 1024 == 0 || bytes >= 10240)) {
		bytes >>= 10;
		unit++;
	}
	snprintf(text, 24, "%llu%c", (unsigned long long)bytes, units[unit]);
	return text;
}

const char *perf_machine_caches(const struct perf_machine *machine, char text[PERF_CACHES_TEXT_MAX])
{
	char bytes[24];
	size_t have = 0;

	text[0] = '\0';
	for (size_t i = 0; i < machine->cache_count; i++)
		have += (size_t)snprintf(text + have, PERF_CACHES_TEXT_MAX - have, "%s%s %s",
					 i ? ", " : "", machine->caches[i].name,
					 perf_machine_bytes(machine->caches[i].bytes, bytes));
	return text;
}

int perf_machine_text(const struct perf_machine *machine, char *text, size_t room)
{
	char caches[PERF_CACHES_TEXT_MAX], memory[24];

	return snprintf(text, room, "%s, %d CPUs, %s; %s, %s, %s of memory",
			machine->cpu[0] ? machine->cpu : "CPU not known", machine->cpus,
			perf_machine_caches(machine, caches), machine->kernel, machine->congestion,
			perf_machine_bytes(machine->memory, memory));
}

static void set_text(json_t *object, const char *key, const char *text)
{
	/* A text that is no UTF-8 has no JSON, and no member. */
	if (text[0])
		json_object_set_new(object, key, json_string(text));
}

json_t *perf_machine_json(const struct perf_machine *machine)
{
	json_t *object = json_object(), *caches = json_array();

	set_text(object, "cpu", machine->cpu);
	json_object_set_new(object, "cpus", json_integer(machine->cpus));
	for (size_t i = 0; i < machine->cache_count; i++) {
		const struct perf_cache *cache = &machine->caches[i];
		json_t *one = json_object();

		set_text(one, "name", cache->name);
		json_object_set_new(one, "bytes", json_integer((json_int_t)cache->bytes));
		set_text(one, "shared_by", cache->cpus);
		json_array_append_new(caches, one);
	}
	json_object_set_new(object, "caches", caches);
	set_text(object, "kernel", machine->kernel);
	set_text(object, "congestion_control", machine->congestion);
	if (machine->memory)
		json_object_set_new(object, "memory_bytes",
				    json_integer((json_int_t)machine->memory));
	return object;
}
