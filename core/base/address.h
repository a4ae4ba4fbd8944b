/* SPDX-License-Identifier: MIT */
/* An IP address of either family as 16 bytes: IPv4 as v4-mapped IPv6, so that a dual-stack listener's and its client's views agree (PF-56). */
#ifndef SHUNT_CORE_BASE_ADDRESS_H
#define SHUNT_CORE_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include "core/base/sys.h"

#define SHUNT_ADDRESS_V4 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff	/* what comes before the 4 bytes of IPv4 */

static inline bool shunt_address_is_v4(const uint8_t address[16])
{
	static const uint8_t prefix[12] = { SHUNT_ADDRESS_V4 };

	return !memcmp(address, prefix, sizeof(prefix));
}

/* Of this host, whatever addresses it has. A program that connects to no address is led there, too. */
static inline bool shunt_address_is_loopback(const uint8_t address[16])
{
	struct in6_addr v6;

	memcpy(&v6, address, sizeof(v6));
	return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6) ||
	       (shunt_address_is_v4(address) &&
		(address[12] == 127 || !memcmp(address + 12, (uint8_t[4]) { 0 }, 4)));
}

#define SHUNT_ADDRESS_ROOM (INET6_ADDRSTRLEN + 8)

/* "127.0.0.1:80" or "[::1]:80"; the port is in network order. */
void shunt_address_text(const uint8_t address[16], uint16_t port, char text[SHUNT_ADDRESS_ROOM]);

/* Address and port (network order) of a socket address. 0 or -EAFNOSUPPORT. */
int shunt_address_of(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port);

/* A listener of IPv6 that takes no connections of IPv4. */
static inline bool shunt_address_only_v6(const struct shunt_sys *sys, int fd, sa_family_t family)
{
	int only = 0;
	socklen_t length = sizeof(only);

	if (family == AF_INET6)
		sys->getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length);
	return only;
}

#endif
