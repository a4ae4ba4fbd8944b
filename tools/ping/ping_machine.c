/* SPDX-License-Identifier: MIT */
/* The machine of one end: RDMA devices and their ports (sysfs), limits, and the variables that matter to a peer. */
#include "tools/ping/ping.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shunt/wire.h"
#include "tools/shunt.h"

#define CLASS "/sys/class/infiniband"
#define PATH_ROOM (sizeof(CLASS) + 2 * (NAME_MAX + 1) + 64)	/* of a device and a port, and a name of ours */

const char *ping_json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The first line of a file, or "". */
static void read_line(const char *path, char *line, int room)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (!file)
		return;
	if (!fgets(line, room, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

/* --- devices --- */

static void add_interface(json_t *port, const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };

	json_object_set_new(port, "interface", json_string(name));
	if (fd < 0)
		return;
	memcpy(request.ifr_name, name, strnlen(name, sizeof(request.ifr_name) - 1));
	if (!ioctl(fd, SIOCGIFMTU, &request))
		json_object_set_new(port, "mtu", json_integer(request.ifr_mtu));
	if (!ioctl(fd, SIOCGIFFLAGS, &request))
		json_object_set_new(port, "up",
				    json_boolean((request.ifr_flags & (IFF_UP | IFF_RUNNING)) ==
						 (IFF_UP | IFF_RUNNING)));
	close(fd);
}

/* "4: ACTIVE": the words behind the number. */
static const char *state_word(const char *line)
{
	const char *colon = strchr(line, ':');

	return colon ? colon + 1 + (colon[1] == ' ') : line;
}

static json_t *look_at_port(const char *device, const char *number)
{
	char path[PATH_ROOM], line[128];
	json_t *port = json_object();

	json_object_set_new(port, "device", json_string(device));
	json_object_set_new(port, "port", json_integer(atoi(number)));
	snprintf(path, sizeof(path), CLASS "/%s/ports/%s/state", device, number);
	read_line(path, line, sizeof(line));
	json_object_set_new(port, "state", json_string(state_word(line)));
	snprintf(path, sizeof(path), CLASS "/%s/ports/%s/link_layer", device, number);
	read_line(path, line, sizeof(line));
	json_object_set_new(port, "layer", json_string(line));
	snprintf(path, sizeof(path), CLASS "/%s/ports/%s/gid_attrs/ndevs/0", device, number);
	read_line(path, line, sizeof(line));
	if (!line[0]) { /* a port without addresses; rxe and siw tell */
		snprintf(path, sizeof(path), CLASS "/%s/parent", device);
		read_line(path, line, sizeof(line));
	}
	if (line[0])
		add_interface(port, line);
	return port;
}

static void look_at_device(json_t *devices, const char *device)
{
	char path[PATH_ROOM];
	struct dirent *entry;
	DIR *ports;

	snprintf(path, sizeof(path), CLASS "/%s/ports", device);
	ports = opendir(path);
	while (ports && (entry = readdir(ports)))
		if (entry->d_name[0] != '.')
			json_array_append_new(devices, look_at_port(device, entry->d_name));
	if (ports)
		closedir(ports);
}

static json_t *look_at_devices(void)
{
	json_t *devices = json_array();
	DIR *dir = opendir(CLASS);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < 64)
			look_at_device(devices, entry->d_name);
	if (dir)
		closedir(dir);
	return devices;
}

const json_t *ping_device_on(const json_t *machine, const char *interface)
{
	const json_t *devices = json_object_get(machine, "devices"), *device;
	size_t i;

	json_array_foreach(devices, i,
			   device) if (interface[0] && !strcmp(ping_json_text(device, "interface"),
							       interface)) return device;
	return NULL;
}

/* --- the process --- */

/* May this process lock any amount of memory? */
static bool locks_freely(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &header, data) && (data[0].effective & (1u << CAP_IPC_LOCK));
}

static json_t *memory_lock(void)
{
	struct rlimit limit;

	if (locks_freely() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return json_null();
	return json_integer((json_int_t)limit.rlim_cur);
}

static json_t *network(void)
{
	struct stat status;

	return json_integer(stat("/proc/self/ns/net", &status) ? 0 : (json_int_t)status.st_ino);
}

json_t *ping_machine(const struct shunt_config *config)
{
	char boot[64];
	json_t *machine = json_object();

	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	json_object_set_new(machine, "shunt", json_string(PACKAGE_VERSION));
	json_object_set_new(machine, "wire", json_integer(SHUNT_WIRE_VERSION));
	json_object_set_new(machine, "boot", json_string(boot));
	json_object_set_new(machine, "network", network());
	json_object_set_new(machine, "memlock", memory_lock());
	json_object_set_new(machine, "user", json_integer(geteuid()));
	json_object_set_new(machine, "choice", json_string(config->device));
	json_object_set_new(machine, "enabled", json_boolean(config->enable));
	json_object_set_new(machine, "wants_key", json_boolean(config->trust == SHUNT_TRUST_KEY));
	json_object_set_new(machine, "key", json_boolean(config->key_file[0]));
	json_object_set_new(machine, "devices", look_at_devices());
	return machine;
}

/* --- the route --- */

static void interface_of(const union ping_address *ours, char name[32])
{
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *one = list; one; one = one->ifa_next) {
		char a[PING_ADDRESS_TEXT], b[PING_ADDRESS_TEXT];
		union ping_address other = { 0 };

		if (!one->ifa_addr || one->ifa_addr->sa_family != ours->any.sa_family)
			continue;
		memcpy(&other, one->ifa_addr, ping_address_length(ours));
		if (!strcmp(ping_address_text(ours, a), ping_address_text(&other, b)))
			snprintf(name, 32, "%s", one->ifa_name);
	}
	freeifaddrs(list);
}

/* Is an IPv4 address in the network of an interface's own? Its routes are gone where it is down. */
static bool is_near(const struct ifaddrs *one, const union ping_address *to)
{
	in_addr_t ours, mask;

	if (!one->ifa_addr || !one->ifa_netmask || one->ifa_addr->sa_family != AF_INET ||
	    to->any.sa_family != AF_INET)
		return false;
	ours = ((const struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr;
	mask = ((const struct sockaddr_in *)one->ifa_netmask)->sin_addr.s_addr;
	return mask && !((ours ^ to->v4.sin_addr.s_addr) & mask);
}

static void near_interface(const union ping_address *to, char name[32])
{
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *one = list; one; one = one->ifa_next)
		if (is_near(one, to))
			snprintf(name, 32, "%s", one->ifa_name);
	freeifaddrs(list);
}

/* A datagram socket that is connected sends nothing, and has the address that the route gives. */
void ping_interface(const union ping_address *to, const char *from, char name[32])
{
	int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union ping_address ours = { 0 };
	socklen_t length = sizeof(ours);

	name[0] = '\0';
	if (fd >= 0 && from && !ping_address_parse(from, &ours))
		bind(fd, &ours.any, ping_address_length(&ours));
	if (fd >= 0 && !connect(fd, &to->any, ping_address_length(to)) &&
	    !getsockname(fd, &ours.any, &length))
		interface_of(&ours, name);
	else
		near_interface(to, name);
	if (fd >= 0)
		close(fd);
}
