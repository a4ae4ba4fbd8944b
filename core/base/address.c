/* SPDX-License-Identifier: MIT */
#include "core/base/address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

void shunt_address_text(const uint8_t address[16], uint16_t port, char text[SHUNT_ADDRESS_ROOM])
{
	bool v4 = shunt_address_is_v4(address);
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? address + 12 : address, host, sizeof(host));
	snprintf(text, SHUNT_ADDRESS_ROOM, v4 ? "%s:%u" : "[%s]:%u", host, ntohs(port));
}

int shunt_address_of(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port)
{
	if (address->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

		memcpy(out, (const uint8_t[]) { SHUNT_ADDRESS_V4 }, 12);
		memcpy(out + 12, &v4->sin_addr, 4);
		*port = v4->sin_port;
		return 0;
	}
	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

		memcpy(out, &v6->sin6_addr, 16);
		*port = v6->sin6_port;
		return 0;
	}
	return -EAFNOSUPPORT;
}
