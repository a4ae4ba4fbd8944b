/* SPDX-License-Identifier: MIT */
/*
 * Replaces addresses in texts by names: host1, host2 for IP addresses, mac1, mac2 for hardware addresses. An address
 * has one name in all texts. IPv4, IPv6, IPv4 mapped into IPv6, GIDs. Loopback and wildcards stay.
 */
#ifndef SHUNT_TOOLS_ANONYMOUS_H
#define SHUNT_TOOLS_ANONYMOUS_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct shunt_anonymous {
	struct in6_addr *hosts;
	size_t host_count;
	uint8_t (*macs)[6];
	size_t mac_count;
};

/* A text of its own, to be freed, and its length. */
char *shunt_anonymous_text(struct shunt_anonymous *names, const char *text, size_t length,
			   size_t *bytes);
void shunt_anonymous_free(struct shunt_anonymous *names);

#endif
