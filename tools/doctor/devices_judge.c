/* SPDX-License-Identifier: MIT */
/*
 * Would Shunt use the device? As core/device/verbs/open.c and device_verbs.c decide, and before that whether
 * this user reaches it at all. A remark is about a port that works and could do better.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/doctor/devices.h"

#define SMALL_MTU 1024 /* less than the MTU of 1500 of Ethernet leaves */
#define LOCKED_LEAST (64UL << 20) /* bytes: some tens of MiB for a link */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

__attribute__((format(printf, 3, 4))) static void set(json_t *object, const char *key,
						      const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_set_new(object, key, json_string(text));
}

/* ---- ports ---- */

static void judge_state(const json_t *device, json_t *port)
{
	const json_t *netdev = json_array_get(json_object_get(port, "netdevs"), 0);
	const char *name = text_of(netdev, "name");

	set(port, "why", "port %d is %s (physical state: %s)",
	    (int)json_integer_value(json_object_get(port, "port")), text_of(port, "state"),
	    text_of(port, "phys_state"));
	if (*name && strcmp(text_of(netdev, "state"), "up"))
		set(port, "do", "ip link set %s up, and look at the cable", name);
	else if (!strcmp(text_of(port, "link_layer"), "InfiniBand"))
		set(port, "do", "look at the cable and at the subnet manager (ibstat, sminfo)");
	else
		set(port, "do", "look at the cable and the switch: rdma link show %s",
		    text_of(device, "name"));
}

/* Of the network devices of one port, with VLANs and bonds, that they carry packets of one size. */
static void remark_mtu(json_t *port)
{
	int mtu = (int)json_integer_value(json_object_get(port, "mtu")), first = 0;
	const json_t *netdev;
	size_t i;

	json_array_foreach(json_object_get(port, "netdevs"), i, netdev)
	{
		int bytes = (int)json_integer_value(json_object_get(netdev, "mtu"));

		if (first && bytes && bytes != first) {
			set(port, "remark",
			    "its network devices have different MTUs, %d and %d (%s): RDMA "
			    "packets that are too large for a path are lost",
			    first, bytes, text_of(netdev, "name"));
			set(port, "do",
			    "give all of them, the peers and the switch one MTU "
			    "(ip link set DEVICE mtu N)");
			return;
		}
		first = first ? first : bytes;
	}
	if (!mtu || mtu >= SMALL_MTU)
		return;
	set(port, "remark",
	    "RDMA packets have %d bytes only, because the network device's MTU is %d", mtu, first);
	set(port, "do",
	    "raise the MTU of %s and of its peers, to 4200 or more if the switch allows",
	    text_of(json_array_get(json_object_get(port, "netdevs"), 0), "name"));
}

static bool judge_port(const json_t *device, json_t *port)
{
	bool active = !strcmp(text_of(port, "state"), "ACTIVE");
	bool addressed = json_array_size(json_object_get(port, "gids")) > 0;

	if (!active) {
		judge_state(device, port);
	} else if (!addressed) {
		set(port, "why", "port %d has no address (GID)",
		    (int)json_integer_value(json_object_get(port, "port")));
		set(port, "do", "give its network device an IP address in this network namespace");
	} else {
		remark_mtu(port);
	}
	json_object_set_new(port, "usable", json_boolean(active && addressed));
	return active && addressed;
}

/* ---- devices ---- */

static void refuse(json_t *device, const char *why, const char *todo)
{
	set(device, "why", "%s", why);
	set(device, "do", "%s", todo);
}

/* Says why this user does not reach the device, whatever its ports are. False: nothing is in the way. */
static bool is_refused(json_t *device, int libraries)
{
	const char *error = text_of(device, "uverbs_error");

	if (strcmp(text_of(device, "node_type"), "CA") &&
	    !json_is_true(json_object_get(device, "iwarp"))) {
		refuse(device, "it is no channel adapter: it has no reliable connections (RC)",
		       "use another device");
	} else if (!*text_of(device, "uverbs")) {
		refuse(device, "the kernel offers it to no program: there is no uverbs device",
		       "modprobe ib_uverbs");
	} else if (*error) {
		set(device, "why", "/dev/infiniband/%s cannot be opened: %s",
		    text_of(device, "uverbs"), error);
		set(device, "do",
		    "give this user the right to it (udev rule), or the container the device "
		    "(--device=/dev/infiniband/%s)",
		    text_of(device, "uverbs"));
	} else if (libraries < 2) {
		refuse(device, "rdma-core is not there: libibverbs.so.1 or librdmacm.so.1",
		       "install libibverbs1, ibverbs-providers and librdmacm1");
	} else if (json_is_false(json_object_get(device, "listed"))) {
		refuse(device,
		       "libibverbs does not know it: its provider is missing, or its network "
		       "namespace is another one",
		       "install ibverbs-providers; see `rdma system` for namespaces");
	} else if (json_is_false(json_object_get(device, "opens"))) {
		refuse(device, "libibverbs cannot open it", "look at dmesg, and at ulimit -l");
	} else {
		return false;
	}
	return true;
}

static void remark_iwarp(json_t *device)
{
	if (!json_is_true(json_object_get(device, "iwarp")))
		return;
	set(device, "remark",
	    "an iWARP device: other hosts ask at one TCP port who listens here (SHUNT_TUNE=directory)");
	set(device, "do", "let that port and those of SHUNT_PORTS through the firewall");
}

static void judge_memory(json_t *device)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >= LOCKED_LEAST)
		return;
	set(device, "remark",
	    "ulimit -l lets this shell's programs lock %lu KiB; the rings of a link need "
	    "some tens of MiB",
	    (unsigned long)(limit.rlim_cur >> 10));
	set(device, "do", "raise ulimit -l, or LimitMEMLOCK= of the unit");
}

static void judge(json_t *device, int libraries)
{
	const json_t *last = NULL;
	bool usable = false;
	json_t *port;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, port)
	{
		usable |= judge_port(device, port);
		last = port;
	}
	if (is_refused(device, libraries)) {
		usable = false;
	} else if (usable) {
		remark_iwarp(device);
		judge_memory(device);
	} else {
		set(device, "why", "%s", last ? text_of(last, "why") : "it has no port");
		set(device, "do", "%s", last ? text_of(last, "do") : "look at dmesg");
	}
	json_object_set_new(device, "usable", json_boolean(usable));
}

void shunt_devices_judge(json_t *devices, int libraries)
{
	json_t *device;
	size_t i;

	json_array_foreach(devices, i, device) judge(device, libraries);
}
