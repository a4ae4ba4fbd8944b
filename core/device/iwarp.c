/* SPDX-License-Identifier: MIT */
#include "core/device/iwarp.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/address.h"

#define DEVICES "/sys/class/infiniband"
#define PORTS 8 /* of a device that are looked at */

/* A line of a file, without its newline. False: none. */
static bool read_line(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, text, room - 1);
	close(fd);
	text[got > 0 ? got : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return got > 0;
}

static bool is_iwarp(const char *root, const char *device)
{
	char path[PATH_MAX], type[32];

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/node_type", root, device);
	return read_line(path, type, sizeof(type)) && !strncmp(type, "4:", 2);
}

/* sysfs writes a GID as IPv6 addresses are written. */
static bool has_mac(const char *root, const char *device, int port,
		    const uint8_t mac[SHUNT_IWARP_MAC])
{
	char path[PATH_MAX], text[INET6_ADDRSTRLEN];
	uint8_t gid[16];

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/ports/%d/gids/0", root, device, port);
	return read_line(path, text, sizeof(text)) && inet_pton(AF_INET6, text, gid) == 1 &&
	       !memcmp(gid, mac, SHUNT_IWARP_MAC);
}

/* The next iWARP device, or NULL. */
static const char *next_device(const char *root, DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < SHUNT_IWARP_NAME &&
		    is_iwarp(root, entry->d_name))
			return entry->d_name;
	return NULL;
}

static DIR *open_devices(const char *root)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s" DEVICES, root);
	return opendir(path);
}

bool shunt_iwarp_is_there(const char *root)
{
	DIR *dir = open_devices(root);
	bool there = dir && next_device(root, dir);

	if (dir)
		closedir(dir);
	return there;
}

/* 0: no port has it. */
static int port_with(const char *root, const char *device, const uint8_t mac[SHUNT_IWARP_MAC])
{
	for (int port = 1; port <= PORTS; port++)
		if (has_mac(root, device, port, mac))
			return port;
	return 0;
}

int shunt_iwarp_find(const char *root, const uint8_t mac[SHUNT_IWARP_MAC],
		     struct shunt_iwarp_port *found)
{
	DIR *dir = open_devices(root);
	const char *device;
	int port = 0;

	while (dir && !port && (device = next_device(root, dir)) != NULL) {
		port = port_with(root, device, mac);
		memset(found, 0, sizeof(*found));
		memcpy(found->device, device, strlen(device));
		found->port = (uint8_t)port;
	}
	if (dir)
		closedir(dir);
	return port ? 0 : -ENODEV;
}

/* --- addresses --- */

static bool is_address(const struct ifaddrs *entry, const uint8_t address[16])
{
	struct sockaddr_storage storage = { 0 };
	uint8_t its[16];
	uint16_t port;

	if (!entry->ifa_addr)
		return false;
	if (entry->ifa_addr->sa_family == AF_INET)
		memcpy(&storage, entry->ifa_addr, sizeof(struct sockaddr_in));
	else if (entry->ifa_addr->sa_family == AF_INET6)
		memcpy(&storage, entry->ifa_addr, sizeof(struct sockaddr_in6));
	return !shunt_address_of(&storage, its, &port) && !memcmp(its, address, sizeof(its));
}

/* An alias ("eth0:1") is a label of its network device's. */
static bool is_same_device(const char *name, const char *alias)
{
	size_t length = strcspn(alias, ":");

	return strlen(name) == length && !memcmp(name, alias, length);
}

static bool mac_of(const struct ifaddrs *entry, const char *alias, uint8_t mac[SHUNT_IWARP_MAC])
{
	const struct sockaddr_ll *link = (const struct sockaddr_ll *)entry->ifa_addr;

	if (!link || link->sll_family != AF_PACKET || link->sll_halen != SHUNT_IWARP_MAC ||
	    link->sll_hatype == ARPHRD_LOOPBACK || !is_same_device(entry->ifa_name, alias))
		return false;
	memcpy(mac, link->sll_addr, SHUNT_IWARP_MAC);
	return true;
}

int shunt_iwarp_mac(const uint8_t address[16], uint8_t mac[SHUNT_IWARP_MAC])
{
	struct ifaddrs *all, *with, *entry;

	if (getifaddrs(&all))
		return -errno;
	with = all;
	while (with && !is_address(with, address))
		with = with->ifa_next;
	entry = with ? all : NULL;
	while (entry && !mac_of(entry, with->ifa_name, mac))
		entry = entry->ifa_next;
	freeifaddrs(all);
	return entry ? 0 : -ENODEV;
}
