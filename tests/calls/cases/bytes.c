/* SPDX-License-Identifier: MIT */
/* Bytes that depend on their position. */
#include "cases.h"

#include <sys/mman.h>

/* A different byte at every place of any long stretch: the top of a mixed 64-bit position. */
static unsigned char byte_at(uint64_t at)
{
	at = (at + 1) * 0x9e3779b97f4a7c15ull;
	return (at ^ at >> 29) * 0xbf58476d1ce4e5b9ull >> 56;
}

void pattern(unsigned char *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(at + i);
}

size_t mismatch(const unsigned char *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != byte_at(at + i))
			return i;
	return len;
}

void send_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk)
{
	unsigned char *buf = malloc(chunk);

	while (len) {
		size_t want = len < chunk ? len : chunk;
		ssize_t r;

		pattern(buf, want, at);
		r = MUST(e, send(fd, buf, want, MSG_NOSIGNAL));
		at += r;
		len -= r;
	}
	free(buf);
}

void check_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk)
{
	unsigned char *buf = malloc(chunk);
	size_t sum = 0;

	while (sum < len) {
		size_t want = len - sum < chunk ? len - sum : chunk;
		ssize_t r = MUST(e, recv(fd, buf, want, 0));
		size_t ok = mismatch(buf, r, at);

		if (!r || ok < (size_t)r) {
			say(e, "FAILED: %s at %llu", r ? "wrong byte" : "early end",
			    (unsigned long long)(at + ok));
			exit(3);
		}
		at += r;
		sum += r;
	}
	free(buf);
}

void recv_pattern(struct end *e, int fd, uint64_t at, size_t len, size_t chunk)
{
	check_pattern(e, fd, at, len, chunk);
	say(e, "received %zu bytes, all right", len);
}

int pattern_file(struct end *e, size_t len)
{
	int fd = MUST(e, memfd_create("pattern", MFD_CLOEXEC));
	unsigned char *buf = malloc(len);

	pattern(buf, len, 0);
	MUST(e, write(fd, buf, len) == (ssize_t)len ? 0 : -1);
	MUST(e, lseek(fd, 0, SEEK_SET));
	free(buf);
	return fd;
}
