/* SPDX-License-Identifier: MIT */
/*
 * Filters in the language of tcpdump. libpcap compiles and runs them; it is opened when a filter is given, and is needed
 * for nothing else. Its interface has not changed since 1.0, so its headers are not needed, either.
 */
#include "tools/dump/dump.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "tools/shunt.h"

#define ETHERNET 1
#define SNAPLEN 262144
#define NETMASK_UNKNOWN 0xffffffffu
#define FRAME_MOST 65536

struct program { /* struct bpf_program */
	unsigned int count;
	void *instructions;
};

struct packet_header { /* struct pcap_pkthdr */
	struct timeval time;
	uint32_t captured, length;
};

struct filter {
	struct program program;
	int (*run)(const struct program *program, const struct packet_header *header,
		   const uint8_t *bytes);
	void (*free_code)(struct program *program);
	uint8_t frame[FRAME_MOST]; /* in one piece */
};

struct library {
	void *(*open_dead)(int linktype, int snaplen);
	int (*compile)(void *handle, struct program *program, const char *expression, int optimize,
		       uint32_t netmask);
	char *(*error)(void *handle);
	void (*close)(void *handle);
};

static void *open_library(void)
{
	static const char *const names[] = { "libpcap.so.0.8", "libpcap.so.1", "libpcap.so" };
	void *library = NULL;

	for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static bool find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

static bool find_all(void *library, struct library *calls, struct filter *filter)
{
	return find(library, "pcap_open_dead", &calls->open_dead) &&
	       find(library, "pcap_compile", &calls->compile) &&
	       find(library, "pcap_geterr", &calls->error) &&
	       find(library, "pcap_close", &calls->close) &&
	       find(library, "pcap_offline_filter", &filter->run) &&
	       find(library, "pcap_freecode", &filter->free_code);
}

static bool compile(const struct library *calls, struct filter *filter, const char *expression)
{
	void *handle = calls->open_dead(ETHERNET, SNAPLEN);
	bool done = handle && !calls->compile(handle, &filter->program, expression, 1,
					      NETMASK_UNKNOWN);

	if (!done)
		fprintf(stderr, "shunt dump: filter '%s': %s\n", expression,
			handle ? calls->error(handle) : "out of memory");
	if (handle)
		calls->close(handle);
	return done;
}

struct filter *filter_make(const char *expression)
{
	struct filter *filter = calloc(1, sizeof(*filter));
	void *library = open_library();
	struct library calls;

	if (!filter)
		abort();
	if (!library || !find_all(library, &calls, filter))
		fprintf(stderr, "shunt dump: a filter needs libpcap, which is not installed\n");
	else if (compile(&calls, filter, expression))
		return filter;
	free(filter);
	return NULL;
}

bool filter_passes(const struct filter *filter, const struct pcapng_packet *packet)
{
	uint8_t *frame = ((struct filter *)filter)->frame;
	struct packet_header header = { .length = 0 };

	for (int i = 0; i < PCAPNG_PIECES; i++) {
		const struct iovec *piece = &packet->piece[i];

		if (piece->iov_len)
			memcpy(frame + header.length, piece->iov_base, piece->iov_len);
		header.length += (uint32_t)piece->iov_len;
	}
	header.captured = header.length;
	return filter->run(&filter->program, &header, frame);
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	filter->free_code(&filter->program);
	free(filter);
}
