/* SPDX-License-Identifier: MIT */
/* HOST[:PORT], and addresses. */
#include "tools/ping/ping.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

/* 1 to 65535, or 0. */
static uint16_t port_of(const char *text)
{
	unsigned long port = 0;

	if (!*text || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text))
		return 0;
	port = strtoul(text, NULL, 10);
	return port > 65535 ? 0 : (uint16_t)port;
}

/* The host is in front of `colon`, and the port behind it. */
static int cut(struct ping_target *target, const char *start, const char *end, const char *colon)
{
	if (end == start)
		return -1;
	memcpy(target->host, start, (size_t)(end - start));
	target->host[end - start] = '\0';
	target->port = PING_PORT;
	if (!colon)
		return 0;
	target->given = true;
	target->port = port_of(colon + 1);
	return target->port ? 0 : -1;
}

int ping_target_parse(struct ping_target *target, const char *text)
{
	const char *colon = strchr(text, ':'), *close;

	*target = (struct ping_target) { 0 };
	if (strlen(text) >= sizeof(target->text) || text[0] == '-')
		return -1;
	strcpy(target->text, text);
	if (text[0] == '[') {
		close = strchr(text, ']');
		if (!close || (close[1] && close[1] != ':'))
			return -1;
		return cut(target, text + 1, close, close[1] ? close + 1 : NULL);
	}
	if (colon && strchr(colon + 1, ':'))
		colon = NULL; /* an address of IPv6 */
	return cut(target, text, colon ? colon : text + strlen(text), colon);
}

socklen_t ping_address_length(const union ping_address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

void ping_target_resolve(struct ping_target *target)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int rc = getaddrinfo(target->host, NULL, &hints, &found);

	if (rc) {
		target->why = gai_strerror(rc);
		return;
	}
	memcpy(&target->address, found->ai_addr,
	       found->ai_addrlen < sizeof(target->address) ? found->ai_addrlen :
							     sizeof(target->address));
	target->address.v4.sin_port = htons(target->port); /* both families have it in one place */
	freeaddrinfo(found);
}

int ping_address_parse(const char *text, union ping_address *address)
{
	*address = (union ping_address) { 0 };
	if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1)
		address->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1)
		address->any.sa_family = AF_INET6;
	else
		return -1;
	return 0;
}

const char *ping_address_text(const union ping_address *address, char text[PING_ADDRESS_TEXT])
{
	const void *ip = address->any.sa_family == AF_INET6 ? (const void *)&address->v6.sin6_addr :
							      &address->v4.sin_addr;

	if (!inet_ntop(address->any.sa_family, ip, text, PING_ADDRESS_TEXT))
		text[0] = '\0';
	return text;
}

static bool is_loopback(const union ping_address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

static bool is_equal(const union ping_address *address, const struct sockaddr *other)
{
	if (!other || other->sa_family != address->any.sa_family)
		return false;
	if (other->sa_family == AF_INET)
		return ((const struct sockaddr_in *)other)->sin_addr.s_addr ==
		       address->v4.sin_addr.s_addr;
	return !memcmp(&((const struct sockaddr_in6 *)other)->sin6_addr, &address->v6.sin6_addr,
		       sizeof(address->v6.sin6_addr));
}

bool ping_address_is_ours(const union ping_address *address)
{
	struct ifaddrs *list = NULL;
	bool ours = is_loopback(address);

	if (ours || getifaddrs(&list))
		return ours;
	for (const struct ifaddrs *one = list; one && !ours; one = one->ifa_next)
		ours = is_equal(address, one->ifa_addr);
	freeifaddrs(list);
	return ours;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t ping_median(uint64_t *values, size_t count)
{
	if (!count)
		return PING_NEVER;
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}
