/* SPDX-License-Identifier: MIT */
#include "tools/dump/frame.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>

#include "core/base/address.h"

#define WINDOW 65535 /* times 2^WINDOW_SCALE: no reader is to find it full */
#define WINDOW_SCALE 14
#define HOPS 64

/* Both ends' numbers for Ethernet are locally administered. */
static const uint8_t ends[2][ETH_ALEN] = { { 0x02, 0, 0, 0, 0, 1 }, { 0x02, 0, 0, 0, 0, 2 } };

/* MSS 65,495 and the window's scale, padded. */
static const uint8_t syn_options[] = { 2, 4, 0xff, 0xd7, 3, 3, WINDOW_SCALE, 0 };

/* --- the checksum of the Internet (RFC 1071) --- */

/* A sum of 16-bit words in memory order, whose carries are folded later. `odd`: bytes that came before. */
struct sum {
	uint64_t value;
	size_t odd;
};

static uint64_t fold(uint64_t value)
{
	while (value >> 16)
		value = (value & 0xffff) + (value >> 16);
	return value;
}

static uint64_t words_of(const uint8_t *at, size_t bytes)
{
	uint64_t sum = 0, word;
	uint32_t half;
	uint16_t last = 0;

	for (; bytes >= 8; at += 8, bytes -= 8) {
		memcpy(&word, at, 8);
		sum += (word & 0xffffffff) + (word >> 32);
	}
	if (bytes >= 4) {
		memcpy(&half, at, 4);
		sum += half;
		at += 4;
		bytes -= 4;
	}
	for (; bytes; at += 2, bytes -= bytes > 1 ? 2 : 1, last = 0) {
		memcpy(&last, at, bytes > 1 ? 2 : 1);
		sum += last;
	}
	return fold(sum);
}

/* Behind an odd number of bytes, each word has its bytes exchanged. */
static void sum_add(struct sum *sum, const void *at, size_t bytes)
{
	uint64_t words = words_of(at, bytes);

	if (sum->odd)
		words = (words & 0xff) << 8 | words >> 8;
	sum->value += words;
	sum->odd ^= bytes & 1;
}

static uint16_t sum_end(const struct sum *sum)
{
	return (uint16_t)~fold(sum->value);
}

/* --- headers --- */

static size_t put_ethernet(const struct frame *frame, bool v4, uint8_t *to)
{
	struct ethhdr header = { .h_proto = htons(v4 ? ETH_P_IP : ETH_P_IPV6) };

	memcpy(header.h_source, ends[!frame->out], ETH_ALEN);
	memcpy(header.h_dest, ends[frame->out], ETH_ALEN);
	memcpy(to, &header, sizeof(header));
	return sizeof(header);
}

static size_t put_v4(const uint8_t *from, const uint8_t *dest, size_t bytes, uint8_t *to)
{
	struct ip header = { .ip_hl = sizeof(header) / 4,
			     .ip_v = 4,
			     .ip_len = htons((uint16_t)(sizeof(header) + bytes)),
			     .ip_off = htons(IP_DF),
			     .ip_ttl = HOPS,
			     .ip_p = IPPROTO_TCP };
	struct sum sum = { 0 };

	memcpy(&header.ip_src, from + 12, 4);
	memcpy(&header.ip_dst, dest + 12, 4);
	sum_add(&sum, &header, sizeof(header));
	header.ip_sum = sum_end(&sum);
	memcpy(to, &header, sizeof(header));
	return sizeof(header);
}

static size_t put_v6(const uint8_t *from, const uint8_t *dest, size_t bytes, uint8_t *to)
{
	struct ip6_hdr header = { .ip6_flow = htonl(6u << 28),
				  .ip6_plen = htons((uint16_t)bytes),
				  .ip6_nxt = IPPROTO_TCP,
				  .ip6_hlim = HOPS };

	memcpy(&header.ip6_src, from, 16);
	memcpy(&header.ip6_dst, dest, 16);
	memcpy(to, &header, sizeof(header));
	return sizeof(header);
}

/* The addresses, the protocol and the length: RFC 9293, 3.1. */
static uint16_t checksum(const struct frame *frame, bool v4, const uint8_t *from,
			 const uint8_t *dest, const uint8_t *header, size_t header_bytes,
			 size_t bytes)
{
	const uint32_t rest[] = { htonl((uint32_t)bytes), htonl(IPPROTO_TCP) };
	size_t skip = v4 ? 12 : 0;
	struct sum sum = { 0 };

	sum_add(&sum, from + skip, 16 - skip);
	sum_add(&sum, dest + skip, 16 - skip);
	sum_add(&sum, rest, sizeof(rest));
	sum_add(&sum, header, header_bytes);
	for (int i = 0; i < 2; i++)
		sum_add(&sum, frame->payload[i].iov_base, frame->payload[i].iov_len);
	return sum_end(&sum);
}

static size_t put_tcp(const struct frame *frame, uint8_t *to)
{
	const struct shunt_tuple *tuple = frame->tuple;
	size_t options = frame->flags & FRAME_SYN ? sizeof(syn_options) : 0;
	struct tcphdr header = { .source = frame->out ? tuple->local_port : tuple->peer_port,
				 .dest = frame->out ? tuple->peer_port : tuple->local_port,
				 .seq = htonl(frame->sequence),
				 .ack_seq = htonl(frame->acknowledged),
				 .window = htons(WINDOW) };

	header.th_off = (uint8_t)((sizeof(header) + options) / 4) & 0xf;
	header.th_flags = frame->flags;
	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), syn_options, options);
	return sizeof(header) + options;
}

size_t frame_headers(const struct frame *frame, uint8_t to[FRAME_HEADERS_MOST])
{
	const uint8_t *from = frame->out ? frame->tuple->local : frame->tuple->peer,
		      *dest = frame->out ? frame->tuple->peer : frame->tuple->local;
	bool v4 = shunt_address_is_v4(from) && shunt_address_is_v4(dest);
	uint8_t tcp[sizeof(struct tcphdr) + sizeof(syn_options)];
	size_t tcp_bytes = put_tcp(frame, tcp), at = put_ethernet(frame, v4, to);
	size_t bytes = tcp_bytes + frame->payload[0].iov_len + frame->payload[1].iov_len;
	uint16_t sum = checksum(frame, v4, from, dest, tcp, tcp_bytes, bytes);

	memcpy(tcp + offsetof(struct tcphdr, check), &sum, sizeof(sum));
	at += v4 ? put_v4(from, dest, bytes, to + at) : put_v6(from, dest, bytes, to + at);
	memcpy(to + at, tcp, tcp_bytes);
	return at + tcp_bytes;
}
