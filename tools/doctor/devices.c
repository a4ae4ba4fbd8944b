/* SPDX-License-Identifier: MIT */
/* shunt doctor devices: the RDMA devices of this machine, and the soft device. */
#include "tools/doctor/devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"
#include "tools/doctor/probe.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt doctor devices [--json] [--root DIR]\n"
	"       shunt doctor devices --probe[=DEVICE] [--json]\n\n"
	"Shows the RDMA devices and ports of this machine and the soft device: state, speed, MTU, addresses,\n"
	"network devices, whether this user may open them, and whether Shunt would use them and why not.\n"
	"Files of /sys say most of it; where libibverbs is there, it is asked, too.\n\n"
	"With --probe one of them, or the first that has an active port, is tried: it gives the queues and the\n"
	"memory of a first link, and sends to itself. That takes a second, and no peer. Its result belongs in a\n"
	"report about a card: docs/dev/HARDWARE.md.\n\n"
	"  --json      the same as JSON\n"
	"  --probe[=DEVICE]  tries a device\n"
	"  --root DIR  /sys and /dev of another root, as /proc/PID/root of a container\n\n"
	"Exit status: 0; 1: links would not come up over the probed device; 2: wrong usage.\n";

/* ---- the list ---- */

static json_t *soft_device(void)
{
	json_t *device = json_pack("{s:s, s:s, s:b}", "name", "soft", "driver", "shared memory",
				   "usable", 1);
	int fd = memfd_create("shunt", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0) {
		close(fd);
		return device;
	}
	json_object_set_new(device, "usable", json_false());
	json_object_set_new(device, "why", json_sprintf("memfd_create: %s", strerror(errno)));
	json_object_set_new(device, "do",
			    json_string("allow memfd_create(2): it is there from Linux 3.17 "
					"on, and a seccomp filter may forbid it"));
	return device;
}

/* Addresses of this network namespace's devices. */
static void add_addresses(json_t *port)
{
	struct ifaddrs *all = NULL;
	json_t *netdev;
	size_t i;

	if (getifaddrs(&all))
		return;
	json_array_foreach(json_object_get(port, "netdevs"), i, netdev)
	{
		const char *name = json_string_value(json_object_get(netdev, "name"));
		json_t *addresses = json_array();

		for (struct ifaddrs *one = all; one; one = one->ifa_next) {
			int family = one->ifa_addr ? one->ifa_addr->sa_family : AF_UNSPEC;
			char text[INET6_ADDRSTRLEN];
			const void *address =
				family == AF_INET ?
					(const void *)&((struct sockaddr_in *)(void *)one->ifa_addr)
						->sin_addr :
					(const void *)&(
						(struct sockaddr_in6 *)(void *)one->ifa_addr)
						->sin6_addr;

			if ((family == AF_INET || family == AF_INET6) &&
			    !strcmp(one->ifa_name, name) &&
			    inet_ntop(family, address, text, sizeof(text)))
				json_array_append_new(addresses, json_string(text));
		}
		json_object_set_new(netdev, "addresses", addresses);
	}
	freeifaddrs(all);
}

json_t *shunt_devices_list(const char *root)
{
	json_t *devices = shunt_devices_read(root), *device, *port;
	int libraries = !shunt_devices_verbs_fault() + !shunt_devices_cm_fault();
	size_t i, k;

	if (!*root) {
		shunt_devices_ask(devices);
		json_array_foreach(devices, i, device)
			json_array_foreach(json_object_get(device, "ports"), k, port)
				add_addresses(port);
	}
	shunt_devices_judge(devices, libraries);
	json_array_insert_new(devices, 0, soft_device());
	return devices;
}

/* ---- the table ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void show_line(const char *title, const char *text)
{
	char shown[1024];

	if (*text)
		shunt_print_wrapped(14, printf("    %-9s ", title),
				    shunt_escape(text, shown, sizeof(shown)));
}

static void show_netdevs(const json_t *port)
{
	const json_t *netdev, *address;
	char line[1024];
	size_t i, k;

	json_array_foreach(json_object_get(port, "netdevs"), i, netdev)
	{
		int length = snprintf(line, sizeof(line), "%s: %s, MTU %d", text_of(netdev, "name"),
				      json_is_true(json_object_get(netdev, "here")) ?
					      text_of(netdev, "state") :
					      "not in this network namespace",
				      (int)json_integer_value(json_object_get(netdev, "mtu")));

		json_array_foreach(json_object_get(netdev, "addresses"), k,
				   address) if (length < (int)sizeof(line))
			length += snprintf(line + length, sizeof(line) - (size_t)length, ", %s",
					   json_string_value(address));
		show_line("netdev", line);
	}
}

static void show_gids(const json_t *port)
{
	json_int_t used = json_integer_value(json_object_get(port, "gid_used"));
	const json_t *gid;
	char line[512];
	size_t i;

	json_array_foreach(json_object_get(port, "gids"), i, gid)
	{
		json_int_t index = json_integer_value(json_object_get(gid, "index"));

		snprintf(line, sizeof(line), "%lld %s %s %s%s", (long long)index,
			 text_of(gid, "gid"), text_of(gid, "type"), text_of(gid, "netdev"),
			 index == used ? " (used)" : "");
		show_line("gid", line);
	}
}

static void show_port(const json_t *port)
{
	json_int_t mtu = json_integer_value(json_object_get(port, "mtu"));
	char line[1024], size[48] = "";

	if (mtu)
		snprintf(size, sizeof(size), ", MTU %lld%s", (long long)mtu,
			 strcmp(text_of(port, "mtu_from"), "verbs") ? " (by its netdev)" : "");
	snprintf(line, sizeof(line), "%lld: %s, %s, %s, %s%s",
		 (long long)json_integer_value(json_object_get(port, "port")),
		 text_of(port, "state"), text_of(port, "phys_state"), text_of(port, "link_layer"),
		 text_of(port, "rate"), size);
	show_line("port", line);
	show_netdevs(port);
	show_gids(port);
	if (!json_is_true(json_object_get(port, "usable")))
		show_line("not used", text_of(port, "why"));
	show_line("remark", text_of(port, "remark"));
	show_line("do", text_of(port, "do"));
}

static void show_file(const json_t *device)
{
	json_int_t numa = json_integer_value(json_object_get(device, "numa"));
	const char *error = text_of(device, "uverbs_error");
	char line[512], node[24] = "unknown";

	if (numa >= 0)
		snprintf(node, sizeof(node), "%lld", (long long)numa);
	snprintf(line, sizeof(line), "%s: %s; NUMA node %s; atomics: %s",
		 *text_of(device, "uverbs") ? text_of(device, "uverbs") : "none",
		 *error ? error : "opens", node, text_of(device, "atomics"));
	show_line("file", line);
}

static void show_device(const json_t *device)
{
	const json_t *port;
	char line[512];
	size_t i;

	snprintf(line, sizeof(line), "%s (%s%s%s): %s", text_of(device, "name"),
		 text_of(device, "driver"), *text_of(device, "firmware") ? ", firmware " : "",
		 text_of(device, "firmware"),
		 json_is_true(json_object_get(device, "usable")) ? "Shunt can use it" :
								   "Shunt does not use it");
	shunt_print_wrapped(4, 0, line);
	if (json_object_get(device, "uverbs"))
		show_file(device);
	show_line("why", text_of(device, "why"));
	show_line("remark", text_of(device, "remark"));
	show_line("do", text_of(device, "do"));
	json_array_foreach(json_object_get(device, "ports"), i, port) show_port(port);
}

static void show(const json_t *devices)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device) show_device(device);
	if (json_array_size(devices) < 2)
		puts("no RDMA device: links are within this host");
}

/* ---- the command ---- */

static int probe(const char *name, int json)
{
	json_t *result = shunt_probe(name), *top;
	int good;

	if (!result) {
		fputs("shunt doctor devices: no process or memory for the probe\n", stderr);
		return 1;
	}
	if (json) {
		top = json_pack("{s:i, s:s, s:O}", "schema", SHUNT_JSON_SCHEMA, "version",
				PACKAGE_VERSION, "probe", result);
		shunt_print_json(stdout, top, JSON_INDENT(2));
		json_decref(top);
		good = json_is_true(json_object_get(result, "usable"));
	} else {
		good = shunt_probe_show(result);
	}
	json_decref(result);
	return !good;
}

int shunt_devices(int argc, char **argv)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "root", required_argument, NULL, 'r' },
		{ "probe", optional_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *root = "", *probed = NULL;
	int json = 0, probes = 0, c;
	json_t *devices;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'r')
			root = optarg;
		if (c == 'p') {
			probes = 1;
			probed = optarg;
		}
		json |= c == 'j';
	}
	if (optind < argc) {
		fprintf(stderr,
			"shunt doctor devices: no argument '%s'; `shunt doctor devices --help` says how\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	if (probes)
		return probe(probed, json);
	devices = shunt_devices_list(root);
	if (json) {
		json_t *top = json_pack("{s:i, s:s, s:O}", "schema", SHUNT_JSON_SCHEMA, "version",
					PACKAGE_VERSION, "devices", devices);

		shunt_print_json(stdout, top, JSON_INDENT(2));
		json_decref(top);
	} else {
		show(devices);
	}
	json_decref(devices);
	return 0;
}
