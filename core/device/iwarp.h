/* SPDX-License-Identifier: MIT */
/*
 * iWARP devices of this machine, as sysfs shows them. Their node_type is 4 (RNIC), and the GID of a port begins with
 * the MAC address of its network device. That is how the kernel itself finds the device of an address
 * (iw_addr_get_sgid() in include/rdma/ib_addr.h). `root` stands before /sys; tests have a tree of their own. Callers
 * bracket these calls with shunt_own_fds_begin(). Errors are -errno.
 */
#ifndef SHUNT_CORE_DEVICE_IWARP_H
#define SHUNT_CORE_DEVICE_IWARP_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_IWARP_NAME 64
#define SHUNT_IWARP_MAC 6

struct shunt_iwarp_port {
	char device[SHUNT_IWARP_NAME];
	uint8_t port;
};

bool shunt_iwarp_is_there(const char *root);
/* The port of an iWARP device whose network device has this MAC address. -ENODEV: none has. */
int shunt_iwarp_find(const char *root, const uint8_t mac[SHUNT_IWARP_MAC],
		     struct shunt_iwarp_port *found);
/* The MAC address of the network device that has an IP address, as in struct shunt_tuple. -ENODEV: none has. */
int shunt_iwarp_mac(const uint8_t address[16], uint8_t mac[SHUNT_IWARP_MAC]);

#endif
