/* SPDX-License-Identifier: MIT */
#include "tools/dump/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER (1u << 20)
#define BLOCK_MOST (68u << 10) /* of a packet with its options */
#define TEXT_MOST 1024u /* bytes of an option */

/* Types of blocks. */
#define SECTION 0x0a0d0d0au
#define INTERFACE 1u
#define STATISTICS 5u
#define PACKET 6u

#define MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u
#define SNAPLEN 262144u

/* Codes of options. */
#define OPT_END 0u
#define OPT_COMMENT 1u
#define SHB_USERAPPL 4u
#define IF_NAME 2u
#define IF_TSRESOL 9u
#define EPB_FLAGS 2u
#define EPB_DROPCOUNT 4u
#define ISB_IFRECV 4u
#define ISB_IFDROP 5u

#define INBOUND 1u
#define OUTBOUND 2u
#define NANOSECONDS 9u

/* --- words --- */

static void put(struct pcapng *file, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(file->buffer + file->used, from, bytes);
	file->used += bytes;
}

static void put16(struct pcapng *file, uint16_t value)
{
	put(file, &value, sizeof(value));
}

static void put32(struct pcapng *file, uint32_t value)
{
	put(file, &value, sizeof(value));
}

/* The high word comes first, whatever the byte order. */
static void put_time(struct pcapng *file, uint64_t time)
{
	put32(file, (uint32_t)(time >> 32));
	put32(file, (uint32_t)time);
}

/* Fields begin at multiples of 4; so do blocks. */
static void pad(struct pcapng *file)
{
	while (file->used % 4)
		file->buffer[file->used++] = 0;
}

static void option(struct pcapng *file, uint16_t code, const void *value, size_t bytes)
{
	put16(file, code);
	put16(file, (uint16_t)bytes);
	put(file, value, bytes);
	pad(file);
}

static void option_text(struct pcapng *file, uint16_t code, const char *text)
{
	option(file, code, text, strnlen(text, TEXT_MOST));
}

/* --- blocks --- */

/* There is room for any block behind this. Returns where it begins. */
static size_t block_begin(struct pcapng *file, uint32_t type)
{
	if (BUFFER - file->used < BLOCK_MOST)
		pcapng_flush(file);
	put32(file, type);
	put32(file, 0);
	return file->used - 8;
}

/* Its length stands on both ends. */
static void block_end(struct pcapng *file, size_t begin)
{
	uint32_t bytes = (uint32_t)(file->used - begin + 4);

	put32(file, bytes);
	memcpy(file->buffer + begin + 4, &bytes, sizeof(bytes));
}

void pcapng_begin(struct pcapng *file, int fd, const char *application)
{
	size_t begin;

	*file = (struct pcapng){ .fd = fd, .buffer = malloc(BUFFER) };
	if (!file->buffer)
		abort();
	begin = block_begin(file, SECTION);
	put32(file, MAGIC);
	put16(file, 1); /* version 1.0 */
	put16(file, 0);
	put_time(file, UINT64_MAX); /* its length is not known */
	option_text(file, SHB_USERAPPL, application);
	option(file, OPT_END, NULL, 0);
	block_end(file, begin);
}

uint32_t pcapng_interface(struct pcapng *file, const char *name)
{
	size_t begin = block_begin(file, INTERFACE);
	uint8_t resolution = NANOSECONDS;

	put16(file, LINKTYPE_ETHERNET);
	put16(file, 0);
	put32(file, SNAPLEN);
	option_text(file, IF_NAME, name);
	option(file, IF_TSRESOL, &resolution, 1);
	option(file, OPT_END, NULL, 0);
	block_end(file, begin);
	return file->interfaces++;
}

void pcapng_packet(struct pcapng *file, const struct pcapng_packet *packet)
{
	size_t begin = block_begin(file, PACKET);
	uint32_t bytes = 0, flags = packet->out ? OUTBOUND : INBOUND;

	for (int i = 0; i < PCAPNG_PIECES; i++)
		bytes += (uint32_t)packet->piece[i].iov_len;
	put32(file, packet->interface);
	put_time(file, packet->time);
	put32(file, bytes); /* all of them are here */
	put32(file, bytes);
	for (int i = 0; i < PCAPNG_PIECES; i++)
		put(file, packet->piece[i].iov_base, packet->piece[i].iov_len);
	pad(file);
	if (*packet->comment)
		option_text(file, OPT_COMMENT, packet->comment);
	option(file, EPB_FLAGS, &flags, sizeof(flags));
	if (packet->dropped)
		option(file, EPB_DROPCOUNT, &packet->dropped, sizeof(packet->dropped));
	option(file, OPT_END, NULL, 0);
	block_end(file, begin);
}

void pcapng_statistics(struct pcapng *file, uint32_t interface, uint64_t time, uint64_t packets,
		       uint64_t dropped)
{
	size_t begin = block_begin(file, STATISTICS);

	put32(file, interface);
	put_time(file, time);
	option(file, ISB_IFRECV, &packets, sizeof(packets));
	option(file, ISB_IFDROP, &dropped, sizeof(dropped));
	option(file, OPT_END, NULL, 0);
	block_end(file, begin);
}

bool pcapng_flush(struct pcapng *file)
{
	size_t done = 0;

	while (done < file->used && !file->error) {
		ssize_t written = write(file->fd, file->buffer + done, file->used - done);

		if (written >= 0)
			done += (size_t)written;
		else if (errno != EINTR)
			file->error = errno;
	}
	file->used = 0;
	return !file->error;
}

void pcapng_end(struct pcapng *file)
{
	free(file->buffer);
	file->buffer = NULL;
}
