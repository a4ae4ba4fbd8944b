/* SPDX-License-Identifier: MIT */
/* RDMA devices as sysfs has them: /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/net. */
#include "tools/doctor/devices.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/common/proc.h"

#define CLASS "/sys/class/infiniband"
#define PORTS_MAX 255
#define GIDS_MAX 256 /* of a port: indices above do not fit an address handle */
#define TEXT_BYTES 128
#define PATH_BYTES 512 /* behind the root; a name has 255 at most */
/* Headers of RoCEv2 that a packet has beside its data, as the kernel counts them (ib_addr.h, iboe_get_mtu). */
#define HEADERS 96

/* Text of a file as a JSON string of printable ASCII. */
static json_t *text_json(const char *text)
{
	char shown[4 * TEXT_BYTES];

	return json_string(shunt_escape(text, shown, sizeof(shown)));
}

static long number_at(const char *root, const char *path, const char *name)
{
	char text[TEXT_BYTES];

	return shunt_tree_read(root, text, sizeof(text), "%s/%s", path, name) > 0 ?
		       strtol(text, NULL, 10) :
		       -1;
}

/* "4: ACTIVE" → "ACTIVE" */
static const char *word_of(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon ? colon + 1 + strspn(colon + 1, " ") : text;
}

static void set_text(json_t *object, const char *key, const char *root, const char *path,
		     const char *name)
{
	char text[TEXT_BYTES];

	shunt_tree_read(root, text, sizeof(text), "%s/%s", path, name);
	json_object_set_new(object, key, text_json(word_of(text)));
}

/* ---- addresses of a port ---- */

/* An index that has no address reads as zeros, or not at all. */
static bool gid_read(const char *root, const char *port, int index, struct in6_addr *gid)
{
	static const struct in6_addr none;
	char text[TEXT_BYTES];

	return shunt_tree_read(root, text, sizeof(text), "%s/gids/%d", port, index) > 0 &&
	       inet_pton(AF_INET6, text, gid) == 1 && memcmp(gid, &none, sizeof(none));
}

static void gid_text(const struct in6_addr *gid, char text[INET6_ADDRSTRLEN])
{
	if (IN6_IS_ADDR_V4MAPPED(gid))
		inet_ntop(AF_INET, gid->s6_addr + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}

/* As verbs_open() ranks them. */
static int gid_rank(const struct in6_addr *gid, const char *type)
{
	if (strcmp(type, "RoCE v2"))
		return 1;
	return IN6_IS_ADDR_V4MAPPED(gid) ? 3 : 2;
}

static void gids_read(const char *root, const char *path, json_t *port)
{
	json_t *gids = json_array();
	int best = 0;

	for (int i = 0; i < GIDS_MAX; i++) {
		char type[TEXT_BYTES], netdev[TEXT_BYTES], text[INET6_ADDRSTRLEN];
		struct in6_addr gid;

		if (!gid_read(root, path, i, &gid))
			continue;
		gid_text(&gid, text);
		shunt_tree_read(root, type, sizeof(type), "%s/gid_attrs/types/%d", path, i);
		shunt_tree_read(root, netdev, sizeof(netdev), "%s/gid_attrs/ndevs/%d", path, i);
		json_array_append_new(gids, json_pack("{s:i, s:s, s:o, s:o}", "index", i, "gid",
						      text, "type", text_json(type), "netdev",
						      text_json(netdev)));
		if (gid_rank(&gid, type) <= best)
			continue;
		best = gid_rank(&gid, type);
		json_object_set_new(port, "gid_used", json_integer(i));
	}
	json_object_set_new(port, "gids", gids);
}

/* ---- network devices of a port ---- */

static bool has_netdev(const json_t *netdevs, const char *name)
{
	const json_t *netdev;
	size_t i;

	json_array_foreach(netdevs, i,
			   netdev) if (!strcmp(json_string_value(json_object_get(netdev, "name")),
					       name)) return true;
	return false;
}

/* A device that is not in this network namespace has no folder here. */
static void netdev_add(const char *root, const char *name, json_t *netdevs)
{
	char path[PATH_BYTES], state[TEXT_BYTES];
	long mtu;

	if (!*name || strchr(name, '/') || has_netdev(netdevs, name))
		return;
	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	mtu = number_at(root, path, "mtu");
	shunt_tree_read(root, state, sizeof(state), "%s/operstate", path);
	json_array_append_new(netdevs,
			      json_pack("{s:s, s:b, s:i, s:o}", "name", name, "here", mtu >= 0,
					"mtu", mtu >= 0 ? (int)mtu : 0, "state", text_json(state)));
}

/* Network devices of its addresses, and children of the same hardware. */
static json_t *netdevs_read(const char *root, const char *device, const json_t *port)
{
	json_t *netdevs = json_array();
	char path[PATH_MAX + PATH_BYTES], parent[TEXT_BYTES];
	const struct dirent *entry;
	const json_t *gid;
	size_t i;
	DIR *dir;

	json_array_foreach(json_object_get(port, "gids"), i, gid)
		netdev_add(root, json_string_value(json_object_get(gid, "netdev")), netdevs);
	if (shunt_tree_read(root, parent, sizeof(parent), "%s/parent", device) > 0)
		netdev_add(root, parent, netdevs);
	snprintf(path, sizeof(path), "%s%s/device/net", root, device);
	dir = json_array_size(netdevs) ? NULL : opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			netdev_add(root, entry->d_name, netdevs);
	if (dir)
		closedir(dir);
	return netdevs;
}

/* The largest data of a packet that the smallest of the network devices takes; 0: none. */
static int rdma_mtu(const json_t *netdevs)
{
	const json_t *netdev;
	int least = 0, mtu = 4096;
	size_t i;

	json_array_foreach(netdevs, i, netdev)
	{
		int bytes = (int)json_integer_value(json_object_get(netdev, "mtu"));

		if (bytes && (!least || bytes < least))
			least = bytes;
	}
	while (mtu >= 256 && mtu > least - HEADERS)
		mtu /= 2;
	return mtu >= 256 ? mtu : 0;
}

/* ---- ports and devices ---- */

static json_t *port_read(const char *root, const char *device, int number)
{
	json_t *port = json_pack("{s:i}", "port", number), *netdevs;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/ports/%d", device, number);
	set_text(port, "state", root, path, "state");
	set_text(port, "phys_state", root, path, "phys_state");
	set_text(port, "link_layer", root, path, "link_layer");
	set_text(port, "rate", root, path, "rate");
	gids_read(root, path, port);
	netdevs = netdevs_read(root, device, port);
	if (!strcmp(json_string_value(json_object_get(port, "link_layer")), "Ethernet")) {
		json_object_set_new(port, "mtu", json_integer(rdma_mtu(netdevs)));
		json_object_set_new(port, "mtu_from", json_string("netdev"));
	}
	json_object_set_new(port, "netdevs", netdevs);
	return port;
}

static void ports_read(const char *root, const char *path, json_t *device)
{
	json_t *ports = json_array();
	char text[TEXT_BYTES];

	for (int i = 1; i <= PORTS_MAX; i++) {
		if (shunt_tree_read(root, text, sizeof(text), "%s/ports/%d/state", path, i) < 0)
			break;
		json_array_append_new(ports, port_read(root, path, i));
	}
	json_object_set_new(device, "ports", ports);
}

/* Software devices have no driver's link: rxe has a parent, siw a type of node. */
static void driver_read(const char *root, const char *path, json_t *device)
{
	char driver[TEXT_BYTES], type[TEXT_BYTES], parent[TEXT_BYTES];

	shunt_tree_read(root, type, sizeof(type), "%s/node_type", path);
	if (shunt_tree_link(root, driver, sizeof(driver), "%s/device/driver", path) < 0) {
		if (shunt_tree_read(root, parent, sizeof(parent), "%s/parent", path) > 0)
			snprintf(driver, sizeof(driver), "rdma_rxe");
		else
			snprintf(driver, sizeof(driver), "%s", atoi(type) == 4 ? "siw" : "virtual");
	}
	json_object_set_new(device, "driver", text_json(driver));
	json_object_set_new(device, "node_type", text_json(word_of(type)));
	json_object_set_new(device, "iwarp", json_boolean(atoi(type) == 4));
}

/* The device file by which programs reach it, and whether this user may open it. */
static void uverbs_read(const char *root, const char *name, json_t *device)
{
	char path[PATH_MAX + PATH_BYTES], its[TEXT_BYTES];
	int fd = -1, error = ENOENT;
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    shunt_tree_read(path, its, sizeof(its), "/%s/ibdev", entry->d_name) <= 0 ||
		    strcmp(its, name))
			continue;
		json_object_set_new(device, "uverbs", text_json(entry->d_name));
		snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		error = fd < 0 ? errno : 0;
		break;
	}
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
	json_object_set_new(device, "uverbs_error", json_string(error ? strerror(error) : ""));
}

static json_t *device_read(const char *root, const char *name)
{
	json_t *device = json_pack("{s:o, s:s, s:s}", "name", text_json(name), "uverbs", "",
				   "atomics", "unknown");
	char path[PATH_BYTES - 64];

	snprintf(path, sizeof(path), CLASS "/%s", name);
	driver_read(root, path, device);
	set_text(device, "firmware", root, path, "fw_ver");
	json_object_set_new(device, "numa",
			    json_integer(number_at(root, path, "device/numa_node")));
	uverbs_read(root, name, device);
	ports_read(root, path, device);
	return device;
}

json_t *shunt_devices_read(const char *root)
{
	json_t *devices = json_array();
	struct dirent **entries = NULL;
	char path[PATH_MAX + PATH_BYTES];
	int count;

	snprintf(path, sizeof(path), "%s" CLASS, root);
	count = scandir(path, &entries, NULL, versionsort);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.')
			json_array_append_new(devices, device_read(root, entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
	return devices;
}
