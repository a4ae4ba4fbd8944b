/* SPDX-License-Identifier: MIT */
/* CPU, caches, kernel, congestion control, memory and mitigations, from /proc and /sys. */
#include "tools/common/host.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/common/proc.h"

#define CACHE "/sys/devices/system/cpu/cpu0/cache/index%zu/%s"
#define FLAWS "/sys/devices/system/cpu/vulnerabilities"
#define LAST_LEVEL_GUESS (32 << 20)

/* "key : value" of a file with such lines, or "". */
static void read_value(const char *root, const char *path, const char *key, char *text, size_t room)
{
	char name[512], *line = NULL;
	size_t length = strlen(key), size = 0;
	FILE *file;

	text[0] = '\0';
	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "re");
	while (file && !text[0] && getline(&line, &size, file) > 0) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, key, length) || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		snprintf(text, room, "%.*s", (int)strcspn(colon, "\n"), colon);
	}
	free(line);
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

static void read_cache(struct shunt_host *host, const char *root, size_t index)
{
	struct shunt_cache *cache = &host->caches[host->cache_count];
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
	host->cache_count++;
}

static void add_flaw(struct shunt_flaws *flaws, const char *name)
{
	size_t have = strlen(flaws->names);

	snprintf(flaws->names + have, sizeof(flaws->names) - have, "%s%s", have ? ", " : "", name);
	flaws->count++;
}

static void read_flaws(struct shunt_host *host, const char *root)
{
	char path[512], state[256];
	struct dirent **names;
	int count;

	snprintf(path, sizeof(path), "%s" FLAWS, root);
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;

		shunt_tree_read(root, state, sizeof(state), FLAWS "/%s", name);
		if (!strncmp(state, "Mitigation", 10))
			add_flaw(&host->mitigated, name);
		else if (!strncmp(state, "Vulnerable", 10))
			add_flaw(&host->vulnerable, name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

/* An x86 CPU tells its guest. */
static void read_place(struct shunt_host *host, const char *root)
{
	char flags[8192];

	read_value(root, "/proc/cpuinfo", "flags", flags, sizeof(flags));
	if (flags[0])
		strcpy(host->place, strstr(flags, " hypervisor") ? "virtual" : "bare");
}

void shunt_host_read(struct shunt_host *host, const char *root)
{
	char release[64], text[32];
	cpu_set_t allowed;

	memset(host, 0, sizeof(*host));
	read_value(root, "/proc/cpuinfo", "model name", host->cpu, sizeof(host->cpu));
	host->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	host->allowed = sched_getaffinity(0, sizeof(allowed), &allowed) ? 0 : CPU_COUNT(&allowed);
	read_place(host, root);
	read_flaws(host, root);
	for (size_t i = 0; i < SHUNT_CACHES_MAX; i++)
		read_cache(host, root, i);
	shunt_tree_read(root, release, sizeof(release), "/proc/sys/kernel/osrelease");
	if (release[0])
		snprintf(host->kernel, sizeof(host->kernel), "Linux %s", release);
	shunt_tree_read(root, host->congestion, sizeof(host->congestion),
			"/proc/sys/net/ipv4/tcp_congestion_control");
	read_value(root, "/proc/meminfo", "MemTotal", text, sizeof(text));
	host->memory = strtoull(text, NULL, 10) << 10;
}

uint64_t shunt_host_last_level(void)
{
	static uint64_t bytes;
	struct shunt_host host;

	if (bytes)
		return bytes;
	shunt_host_read(&host, "");
	for (size_t i = 0; i < host.cache_count; i++)
		if (host.caches[i].bytes > bytes)
			bytes = host.caches[i].bytes;
	if (!bytes)
		bytes = LAST_LEVEL_GUESS;
	return bytes;
}

const char *shunt_host_bytes(uint64_t bytes, char text[24])
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

const char *shunt_host_caches(const struct shunt_host *host, char text[SHUNT_CACHES_TEXT_MAX])
{
	char bytes[24];
	size_t have = 0;

	text[0] = '\0';
	for (size_t i = 0; i < host->cache_count; i++)
		have += (size_t)snprintf(text + have, SHUNT_CACHES_TEXT_MAX - have, "%s%s %s",
					 i ? ", " : "", host->caches[i].name,
					 shunt_host_bytes(host->caches[i].bytes, bytes));
	return text;
}

int shunt_host_text(const struct shunt_host *host, char *text, size_t room)
{
	char caches[SHUNT_CACHES_TEXT_MAX], memory[24];

	return snprintf(text, room, "%s, %d CPUs, %d allowed%s%s; %s; %s, %s, %s of memory",
			host->cpu[0] ? host->cpu : "CPU not known", host->cpus,
			host->allowed, host->place[0] ? ", " : "", host->place,
			shunt_host_caches(host, caches), host->kernel, host->congestion,
			shunt_host_bytes(host->memory, memory));
}

static const char reading[] =
	"A round trip of a small message over TCP contains two wake-ups, of the kind that the kernel's choice of CPUs makes; "
	"over Shunt it contains none while both ends poll.";

void shunt_host_lines(const struct shunt_host *host,
			 void (*line)(void *arg, const char *text), void *arg)
{
	const struct shunt_flaws *mitigated = &host->mitigated, *vulnerable = &host->vulnerable;
	char text[1280], cost[48];

	shunt_host_text(host, text, sizeof(text));
	line(arg, text);
	snprintf(text, sizeof(text),
		 "Mitigations, which make system calls dearer: %d (%s); vulnerable: %d (%s)",
		 mitigated->count, mitigated->count ? mitigated->names : "none",
		 vulnerable->count, vulnerable->count ? vulnerable->names : "none");
	line(arg, text);
	if (!(host->switched > 0))
		return;
	snprintf(cost, sizeof(cost), host->wakeup > 0 ? "%.2f us on another CPU, " : "",
		 host->wakeup / 1e3);
	snprintf(text, sizeof(text),
		 "Measured: a wake-up of %s%.2f us on the same CPU, a system call of %.2f us. %s",
		 cost, host->switched / 1e3, host->system_call / 1e3, reading);
	line(arg, text);
}

static void print_line(void *arg, const char *text)
{
	(void)arg;
	printf("  ");
	shunt_print_wrapped(4, 2, text);
}

void shunt_host_print(const struct shunt_host *host)
{
	puts("This machine");
	shunt_host_lines(host, print_line, NULL);
}

static void set_text(json_t *object, const char *key, const char *text)
{
	/* A text that is no UTF-8 has no JSON, and no member. */
	if (text[0])
		json_object_set_new(object, key, json_string(text));
}

static void set_flaws(json_t *object, const char *key, const struct shunt_flaws *flaws)
{
	json_object_set_new(object, key,
			    json_pack("{s:i, s:s}", "count", flaws->count, "names", flaws->names));
}

json_t *shunt_host_json(const struct shunt_host *host)
{
	json_t *object = json_object(), *caches = json_array();

	set_text(object, "cpu", host->cpu);
	json_object_set_new(object, "cpus", json_integer(host->cpus));
	json_object_set_new(object, "cpus_allowed", json_integer(host->allowed));
	set_text(object, "place", host->place);
	for (size_t i = 0; i < host->cache_count; i++) {
		const struct shunt_cache *cache = &host->caches[i];
		json_t *one = json_object();

		set_text(one, "name", cache->name);
		json_object_set_new(one, "bytes", json_integer((json_int_t)cache->bytes));
		set_text(one, "shared_by", cache->cpus);
		json_array_append_new(caches, one);
	}
	json_object_set_new(object, "caches", caches);
	set_text(object, "kernel", host->kernel);
	set_text(object, "congestion_control", host->congestion);
	if (host->memory)
		json_object_set_new(object, "memory_bytes",
				    json_integer((json_int_t)host->memory));
	set_flaws(object, "mitigated", &host->mitigated);
	set_flaws(object, "vulnerable", &host->vulnerable);
	if (host->wakeup > 0)
		json_object_set_new(object, "wakeup_ns", json_real(host->wakeup));
	if (host->switched > 0) {
		json_object_set_new(object, "wakeup_same_cpu_ns", json_real(host->switched));
		json_object_set_new(object, "system_call_ns", json_real(host->system_call));
	}
	return object;
}
