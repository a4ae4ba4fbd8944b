/* SPDX-License-Identifier: MIT */
#include "tools/report/anonymous.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MAX 64 /* of characters that addresses consist of; a longer run is no address */

/* ---- the names ---- */

/* Addresses that tell nobody anything. */
static bool is_harmless(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) &&
		(address->s6_addr[12] == 127 || address->s6_addr[12] == 0));
}

static size_t number_host(struct shunt_anonymous *names, const struct in6_addr *address)
{
	for (size_t i = 0; i < names->host_count; i++)
		if (!memcmp(&names->hosts[i], address, sizeof(*address)))
			return i + 1;
	names->hosts = reallocarray(names->hosts, names->host_count + 1, sizeof(*names->hosts));
	if (!names->hosts)
		abort();
	names->hosts[names->host_count++] = *address;
	return names->host_count;
}

static size_t number_mac(struct shunt_anonymous *names, const uint8_t mac[6])
{
	for (size_t i = 0; i < names->mac_count; i++)
		if (!memcmp(names->macs[i], mac, 6))
			return i + 1;
	names->macs = reallocarray(names->macs, names->mac_count + 1, sizeof(*names->macs));
	if (!names->macs)
		abort();
	memcpy(names->macs[names->mac_count++], mac, 6);
	return names->mac_count;
}

void shunt_anonymous_free(struct shunt_anonymous *names)
{
	free(names->hosts);
	free(names->macs);
	*names = (struct shunt_anonymous) { 0 };
}

/* ---- a run of characters of addresses ---- */

static void put_host(struct shunt_anonymous *names, FILE *to, const struct in6_addr *address,
		     const char *text)
{
	if (is_harmless(address))
		fputs(text, to);
	else
		fprintf(to, "host%zu", number_host(names, address));
}

static bool put_mac(struct shunt_anonymous *names, FILE *to, const char *text)
{
	unsigned int part[6];
	uint8_t mac[6];
	int end = 0;

	if (strlen(text) != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &part[0], &part[1], &part[2], &part[3],
		   &part[4], &part[5], &end) != 6 ||
	    end != 17)
		return false;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)part[i];
	fprintf(to, "mac%zu", number_mac(names, mac));
	return true;
}

/* Also with a stop or colon of the sentence behind it, or digits of an escape before it. */
static bool put_six(struct shunt_anonymous *names, FILE *to, const char *run)
{
	size_t length = strlen(run), first = strcspn(run, ":"), skip = first > 4 ? first - 4 : 0;
	char text[RUN_MAX + 1];
	struct in6_addr address;

	if (run[0] == ':' && run[1] != ':')
		skip = 1;
	for (size_t cut = 0; cut < 2 && cut + skip < length; cut++) {
		snprintf(text, sizeof(text), "%.*s", (int)(length - skip - cut), run + skip);
		if (inet_pton(AF_INET6, text, &address) != 1)
			continue;
		fprintf(to, "%.*s", (int)skip, run);
		put_host(names, to, &address, text);
		fputs(run + length - cut, to);
		return true;
	}
	return false;
}

/* The length of an IPv4 address at the start of the text; 0: none. */
static size_t match_four(const char *text, struct in6_addr *address)
{
	unsigned int part[4];
	int length = 0;

	if (sscanf(text, "%3u.%3u.%3u.%3u%n", &part[0], &part[1], &part[2], &part[3], &length) !=
		    4 ||
	    isdigit((unsigned char)text[length]))
		return 0;
	memset(address, 0, sizeof(*address));
	address->s6_addr[10] = address->s6_addr[11] = 0xff;
	for (int i = 0; i < 4; i++) {
		if (part[i] > 255)
			return 0;
		address->s6_addr[12 + i] = (uint8_t)part[i];
	}
	return (size_t)length;
}

static void put_fours(struct shunt_anonymous *names, FILE *to, const char *run)
{
	char before = ' ';

	while (*run) {
		struct in6_addr address;
		size_t length = isdigit((unsigned char)*run) && !isdigit((unsigned char)before) ?
					match_four(run, &address) :
					0;
		char text[INET_ADDRSTRLEN + 4];

		if (length) {
			snprintf(text, sizeof(text), "%.*s", (int)length, run);
			put_host(names, to, &address, text);
			run += length;
			before = '0';
		} else {
			putc(*run, to);
			before = *run++;
		}
	}
}

static bool is_part(char c)
{
	return isxdigit((unsigned char)c) || c == ':' || c == '.';
}

char *shunt_anonymous_text(struct shunt_anonymous *names, const char *text, size_t length,
			   size_t *bytes)
{
	char *made = NULL, run[RUN_MAX + 1];
	FILE *to = open_memstream(&made, bytes);

	if (!to)
		abort();
	for (size_t at = 0; at < length;) {
		size_t end = at;

		while (end < length && is_part(text[end]))
			end++;
		if (end == at || end - at > RUN_MAX) {
			end += end == at;
			fwrite(text + at, 1, end - at, to);
		} else {
			snprintf(run, sizeof(run), "%.*s", (int)(end - at), text + at);
			if (!put_mac(names, to, run) && !put_six(names, to, run))
				put_fours(names, to, run);
		}
		at = end;
	}
	if (fclose(to))
		abort();
	return made;
}
