/* SPDX-License-Identifier: MIT */
/*
 * A pcapng file (draft-ietf-opsawg-pcapng): a section header, an interface for each process, packets with comments and
 * counts of drops, and statistics at the end. Blocks are in the byte order of this machine. Times are ns since 1970.
 */
#ifndef SHUNT_TOOLS_DUMP_PCAPNG_H
#define SHUNT_TOOLS_DUMP_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define PCAPNG_PIECES 3

struct pcapng {
	int fd;
	uint8_t *buffer; /* what is not yet written */
	size_t used;
	uint32_t interfaces;
	int error; /* errno of the first write that has failed; later ones are not tried */
};

struct pcapng_packet {
	uint32_t interface;
	uint64_t time;
	struct iovec piece[PCAPNG_PIECES]; /* of the Ethernet frame; empty ones at the end */
	bool out; /* sent by the process of the interface */
	const char *comment; /* "": none */
	uint64_t dropped; /* packets between the one before and this one */
};

/* The section begins. `application`: the program that writes. Aborts without memory. */
void pcapng_begin(struct pcapng *file, int fd, const char *application);
/* Before the first packet. Returns its number. */
uint32_t pcapng_interface(struct pcapng *file, const char *name);
/* At most 65,535 bytes. */
void pcapng_packet(struct pcapng *file, const struct pcapng_packet *packet);
void pcapng_statistics(struct pcapng *file, uint32_t interface, uint64_t time, uint64_t packets,
		       uint64_t dropped);
/* Writes what there is. May wait. False: `error` says why. */
bool pcapng_flush(struct pcapng *file);
void pcapng_end(struct pcapng *file);

#endif
