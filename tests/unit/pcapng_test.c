/* SPDX-License-Identifier: MIT */
/* Blocks of pcapng, byte by byte, and the headers of made-up frames with their checksums. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tools/dump/frame.h"
#include "tools/dump/pcapng.h"

static uint8_t content[1 << 22];

static struct pcapng begin(void)
{
	struct pcapng file;

	pcapng_begin(&file, memfd_create("pcapng_test", MFD_CLOEXEC), "shunt test");
	assert_true(file.fd >= 0);
	return file;
}

/* All that was written is in `content`; returns its bytes. */
static size_t end(struct pcapng *file)
{
	ssize_t bytes;

	assert_true(pcapng_flush(file));
	bytes = pread(file->fd, content, sizeof(content), 0);
	assert_true(bytes > 0);
	close(file->fd);
	pcapng_end(file);
	return (size_t)bytes;
}

static uint32_t word(size_t at)
{
	uint32_t value;

	memcpy(&value, content + at, sizeof(value));
	return value;
}

static uint16_t half(size_t at)
{
	uint16_t value;

	memcpy(&value, content + at, sizeof(value));
	return value;
}

/* The block at `at` is of this type, and its lengths agree. Returns where the next one is. */
static size_t block(size_t at, uint32_t type)
{
	assert_int_equal(word(at), type);
	assert_int_equal(word(at + 4) % 4, 0);
	assert_int_equal(word(at + word(at + 4) - 4), word(at + 4));
	return at + word(at + 4);
}

/* The option at `at`; the next one begins at what is returned. */
static size_t option(size_t at, uint16_t code, const void *value, uint16_t bytes)
{
	assert_int_equal(half(at), code);
	assert_int_equal(half(at + 2), bytes);
	assert_memory_equal(content + at + 4, value, bytes);
	return at + 4 + (bytes + 3u) / 4 * 4;
}

static void a_file_begins_with_its_section(void **state)
{
	struct pcapng file = begin();
	const uint8_t resolution = 9;
	size_t at, next, bytes;

	(void)state;
	assert_int_equal(pcapng_interface(&file, "redis (pid 1)"), 0);
	assert_int_equal(pcapng_interface(&file, "x"), 1);
	bytes = end(&file);
	next = block(0, 0x0a0d0d0a);
	assert_int_equal(word(8), 0x1a2b3c4d);
	assert_int_equal(half(12), 1);
	assert_int_equal(half(14), 0);
	assert_int_equal(word(16) & word(20), UINT32_MAX);
	at = option(24, 4, "shunt test", 10);
	assert_int_equal(word(at), 0);
	assert_int_equal(at + 8, next);
	at = next;
	next = block(at, 1);
	assert_int_equal(half(at + 8), 1);
	assert_int_equal(word(at + 12), 262144);
	at = option(at + 16, 2, "redis (pid 1)", 13);
	at = option(at, 9, &resolution, 1);
	assert_int_equal(word(at), 0);
	assert_int_equal(block(next, 1), bytes);
}

static void packets_have_time_bytes_and_options(void **state)
{
	struct pcapng file = begin();
	struct pcapng_packet packet = { .interface = 3,
					.time = 0x0123456789abcdefull,
					.piece = { { "head", 4 }, { "bo", 2 }, { "dy!", 3 } },
					.comment = "link" };
	const uint32_t in = 1, out = 2;
	const uint64_t dropped = 5;
	size_t first, at, next;

	(void)state;
	pcapng_packet(&file, &packet);
	packet.out = true;
	packet.comment = "";
	packet.dropped = dropped;
	packet.piece[2] = (struct iovec){ NULL, 0 };
	pcapng_packet(&file, &packet);
	pcapng_statistics(&file, 3, packet.time, 2, 7);
	end(&file);
	first = block(0, 0x0a0d0d0a);
	next = block(first, 6);
	assert_int_equal(word(first + 8), 3);
	assert_int_equal(word(first + 12), 0x01234567);
	assert_int_equal(word(first + 16), 0x89abcdef);
	assert_int_equal(word(first + 20), 9);
	assert_int_equal(word(first + 24), 9);
	assert_memory_equal(content + first + 28, "headbody!\0\0\0", 12);
	at = option(first + 40, 1, "link", 4);
	at = option(at, 2, &in, 4);
	assert_int_equal(word(at), 0);
	assert_int_equal(at + 8, next);
	assert_int_equal(word(next + 20), 6);
	at = option(next + 36, 2, &out, 4);
	at = option(at, 4, &dropped, 8);
	assert_int_equal(word(at), 0);
	at = block(next, 6);
	block(at, 5);
	assert_int_equal(word(at + 8), 3);
	at = option(at + 20, 4, &(uint64_t) { 2 }, 8);
	option(at, 5, &(uint64_t) { 7 }, 8);
}

/* More than the buffer, with comments that are too long. */
static void many_packets_are_all_there(void **state)
{
	static char comment[4096], payload[65482];
	struct pcapng file = begin();
	struct pcapng_packet packet = { .piece = { { payload, sizeof(payload) } },
					.comment = comment };
	size_t at, bytes, count = 0;

	(void)state;
	memset(comment, 'c', sizeof(comment) - 1);
	for (int i = 0; i < 50; i++)
		pcapng_packet(&file, &packet);
	bytes = end(&file);
	for (at = block(0, 0x0a0d0d0a); at < bytes; count++)
		at = block(at, 6);
	assert_int_equal(at, bytes);
	assert_int_equal(count, 50);
}

static void the_first_error_stays(void **state)
{
	struct pcapng file;

	(void)state;
	pcapng_begin(&file, open("/dev/full", O_WRONLY | O_CLOEXEC), "shunt test");
	assert_false(pcapng_flush(&file));
	assert_int_equal(file.error, ENOSPC);
	pcapng_interface(&file, "x");
	assert_false(pcapng_flush(&file));
	close(file.fd);
	pcapng_end(&file);
}

/* --- frames --- */

/* By the book, a byte at a time. 0: the checksum among the bytes is right. */
static uint16_t sum_of(const uint8_t *bytes, size_t count, uint32_t sum)
{
	for (size_t i = 0; i < count; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The checksum of TCP and its bytes, which are behind `headers` bytes; addresses end where it begins. */
static uint16_t tcp_sum(const uint8_t *frame, size_t bytes, size_t tcp, size_t addresses)
{
	uint32_t pseudo = 6 + (uint32_t)(bytes - tcp);

	for (size_t i = 0; i < addresses; i += 2)
		pseudo += (uint32_t)frame[tcp - addresses + i] << 8 |
			  frame[tcp - addresses + i + 1];
	return sum_of(frame + tcp, bytes - tcp, pseudo);
}

static void a_frame_of(const struct shunt_tuple *tuple, size_t ip, size_t addresses)
{
	static uint8_t frame[70000], payload[65408];

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + i / 300);
	for (size_t bytes = 0; bytes <= sizeof(payload); bytes += bytes < 70 ? 1 : 9337)
		for (size_t first = 0; first <= bytes; first += 1 + bytes / 3) {
			struct frame made = { .tuple = tuple,
					      .out = bytes % 2,
					      .sequence = 0x01020304,
					      .acknowledged = 0x05060708,
					      .flags = bytes ? FRAME_PSH | FRAME_ACK : FRAME_SYN,
					      .payload = { { payload, first },
							   { payload + first, bytes - first } } };
			size_t headers = frame_headers(&made, frame);

			assert_int_equal(headers, 14 + ip + 20 + (bytes ? 0 : 8));
			memcpy(frame + headers, payload, bytes);
			if (ip == 20)
				assert_int_equal(sum_of(frame + 14, 20, 0), 0);
			assert_int_equal(tcp_sum(frame, headers + bytes, 14 + ip, addresses), 0);
			assert_int_equal(frame[14 + ip] << 8 | frame[14 + ip + 1],
					 bytes % 2 ? 1234 : 80);
			assert_memory_equal(frame + 14 + ip + 4, "\1\2\3\4\5\6\7\10", 8);
			assert_int_equal(frame[14 + ip + 12] >> 4, (headers - 14 - ip) / 4);
		}
}

static void frames_have_right_checksums(void **state)
{
	struct shunt_tuple tuple = { .local_port = htons(1234), .peer_port = htons(80) };

	(void)state;
	inet_pton(AF_INET6, "::ffff:10.1.2.3", tuple.local);
	inet_pton(AF_INET6, "::ffff:192.168.255.254", tuple.peer);
	a_frame_of(&tuple, 20, 8);
	inet_pton(AF_INET6, "2001:db8::ffff:1", tuple.local);
	inet_pton(AF_INET6, "fe80::1", tuple.peer);
	a_frame_of(&tuple, 40, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_begins_with_its_section),
		cmocka_unit_test(packets_have_time_bytes_and_options),
		cmocka_unit_test(many_packets_are_all_there),
		cmocka_unit_test(the_first_error_stays),
		cmocka_unit_test(frames_have_right_checksums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
