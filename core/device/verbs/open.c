/* SPDX-License-Identifier: MIT */
/* Finding a device and its port, and opening it. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "core/device/verbs/verbs.h"

__attribute__((format(printf, 3, 4))) static int open_fail(struct verbs_device *device, int err,
							   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(device->error, sizeof(device->error), format, args);
	va_end(args);
	return err ? -err : -EIO;
}

/* How much we want an address of the port. */
static int gid_rank(const struct ibv_gid_entry *entry, const struct shunt_way *way)
{
	const struct in6_addr *address = (const struct in6_addr *)entry->gid.raw;
	int wanted = way && !memcmp(&way->gid, &entry->gid, sizeof(way->gid)) ? 3 : 0;

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return wanted + 1;
	return wanted + (IN6_IS_ADDR_V4MAPPED(address) ? 3 : 2);
}

/* Indices above 255 do not fit an address handle. Empty entries are told as ENODATA. */
static int gid_choose(struct verbs_device *device, const struct ibv_port_attr *attr, const struct shunt_way *way)
{
	int best = 0, count = attr->gid_tbl_len < 256 ? attr->gid_tbl_len : 256;
	struct ibv_gid_entry entry;

	for (int i = 0; i < count; i++) {
		if (device->setup.query_gid_ex(device->context, device->port.number, (uint32_t)i, &entry, 0,
					       sizeof(entry)) || gid_rank(&entry, way) <= best)
			continue;
		best = gid_rank(&entry, way);
		device->port.gid_index = (uint8_t)i;
		device->port.gid = entry.gid;
	}
	return best;
}

/* The port of the way, or the first; active, and with an address. */
static int port_find(struct verbs_device *device, const struct shunt_way *way)
{
	struct ibv_device_attr limits;
	struct ibv_port_attr attr;
	int err = device->verbs.query_device(device->context, &limits);

	if (err)
		return open_fail(device, err, "%s does not tell of itself: %s",
				 device->context->device->name, strerror(err));
	for (uint8_t number = 1; number && number <= limits.phys_port_cnt; number++) {
		if (way && way->port != number)
			continue;
		memset(&attr, 0, sizeof(attr)); /* the call knows a shorter structure */
		if (device->setup.query_port(device->context, number, &attr) || attr.state != IBV_PORT_ACTIVE)
			continue;
		device->port = (struct verbs_port) { .number = number,
						     .lid = attr.lid,
						     .pkeys = attr.pkey_tbl_len,
						     .mtu = attr.active_mtu };
		if (gid_choose(device, &attr, way))
			return 0;
	}
	return open_fail(device, ENETDOWN, "%s has no active port with an address",
			 device->context->device->name);
}

static int device_open(struct verbs_device *device, struct ibv_device *which, const struct shunt_way *way)
{
	int result;

	errno = 0;
	device->context = device->setup.open_device(which);
	if (!device->context)
		return open_fail(device, errno, "%s cannot be opened: %s", which->name,
				 strerror(errno));
	result = port_find(device, way);
	if (!result)
		return 0;
	device->setup.close_device(device->context);
	device->context = NULL;
	return result;
}

/* For rdma-core before 35, which does not say it: Linux 5.12 and later. */
static bool kernel_copies_on_fork(void)
{
	struct utsname kernel;
	unsigned int major = 0, minor = 0;

	return !uname(&kernel) && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 12));
}

/*
 * Before Linux 5.12, fork() gives the parent copies of pages that the device writes: its rings are silent from then on.
 * After ibv_fork_init() providers keep their pages from children. That comes too late where the program has registered
 * memory of its own.
 */
static int keep_from_forks(struct verbs_device *device)
{
	int err;

	if (device->is_fork_initialized ? device->is_fork_initialized() == IBV_FORK_UNNEEDED :
					  kernel_copies_on_fork())
		return 0;
	err = device->setup.fork_init();
	if (err)
		return open_fail(
			device, err,
			"this kernel's fork() would take the device's memory: ibv_fork_init: %s",
			strerror(err));
	device->marks_pages = true;
	return 0;
}

/* The last device's refusal is the one that is told. */
static int list_open(struct verbs_device *device, struct ibv_device **list, const char *name, const struct shunt_way *way)
{
	int result = *list ? keep_from_forks(device) : 0;

	if (result)
		return result;
	result = name ? open_fail(device, ENODEV, "there is no RDMA device %s", name) :
			    open_fail(device, ENODEV, "there is no RDMA device");

	for (; *list; list++) {
		if (name && strcmp((*list)->name, name))
			continue;
		result = device_open(device, *list, way);
		if (!result)
			break;
	}
	return result;
}

bool verbs_port_again(struct verbs_device *device, const struct shunt_way *way)
{
	struct verbs_port before = device->port;
	struct shunt_way now = { .port = before.number, .gid = way && way->port ? way->gid : before.gid };

	if (!port_find(device, &now) &&
	    (!way || !way->port || !memcmp(&device->port.gid, &way->gid, sizeof(way->gid)) ||
	     !memcmp(&device->port.gid, &before.gid, sizeof(before.gid))))
		return true;
	device->port = before;
	return false;
}

int verbs_open(struct verbs_device *device, const char *name, const struct shunt_way *way)
{
	int result = verbs_library_open(device, "libibverbs.so.1");
	struct ibv_device **list;

	if (result)
		return result;
	list = device->setup.get_device_list(NULL);
	if (list) {
		result = list_open(device, list, way ? way->device : name, way);
		device->setup.free_device_list(list);
	} else {
		result = open_fail(device, ENODEV, "there is no RDMA device: %s", strerror(errno));
	}
	if (result)
		verbs_library_close(device);
	return result;
}

void verbs_close(struct verbs_device *device)
{
	device->setup.close_device(device->context);
	device->context = NULL;
	verbs_library_close(device);
}
