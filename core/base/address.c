/* SPDX-License-Identifier: MIT */
#include "core/base/address.h"
#include <arpa/inet.h>
#include <stdio.h>

void shunt_address_text(const uint8_t address[16], uint16_t port, char text[SHUNT_ADDRESS_ROOM])
{
	bool v4 = shunt_address_is_v4(address);
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? address + 12 : address, host, sizeof(host));
	snprintf(text, SHUNT_ADDRESS_ROOM, v4 ? "%s:%u" : "[%s]:%u", host, ntohs(port));
}
