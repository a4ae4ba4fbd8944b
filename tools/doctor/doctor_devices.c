/* SPDX-License-Identifier: MIT */
/* RDMA devices as rows of the doctor, and what they need beside them. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/doctor/devices.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void check_libraries(struct shunt_findings *findings)
{
	const char *fault = shunt_devices_verbs_fault();

	if (!fault)
		fault = shunt_devices_cm_fault();
	if (!fault) {
		shunt_findings_add(findings, SHUNT_WELL, "rdma-core",
				   "libibverbs and librdmacm are there");
		return;
	}
	shunt_findings_add(findings, SHUNT_WARN, "rdma-core", "other hosts are not reached: %s",
			   fault);
	shunt_findings_advise(findings, "install libibverbs1, ibverbs-providers and librdmacm1");
}

/* The connection manager finds peers on other hosts. */
static void check_cm(struct shunt_findings *findings, const char *root)
{
	char path[PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/infiniband/rdma_cm", root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		shunt_findings_add(findings, SHUNT_WELL, "rdma_cm",
				   "the connection manager is there");
		return;
	}
	shunt_findings_add(
		findings, SHUNT_BAD, "rdma_cm",
		"/dev/infiniband/rdma_cm cannot be opened (%s): no peer on another host is found",
		strerror(errno));
	shunt_findings_advise(
		findings,
		errno == ENOENT ?
			"modprobe rdma_ucm; in a container also --device=/dev/infiniband/rdma_cm" :
			"give this user the right to it (udev rule)");
}

static void check_namespaces(struct shunt_findings *findings, const char *root)
{
	char mode[16];

	if (shunt_tree_read(root, mode, sizeof(mode), "/sys/module/ib_core/parameters/netns_mode") >
	    0)
		shunt_findings_add(
			findings, SHUNT_WELL, "rdma-netns",
			*mode == 'N' ?
				"each network namespace has RDMA devices of its own (exclusive)" :
				"all network namespaces share RDMA devices (shared)");
}

static void check_ports(struct shunt_findings *findings, const json_t *device)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, port)
	{
		const char *remark = text_of(port, "remark");

		if (*text_of(port, "why"))
			remark = text_of(port, "why");
		if (!*remark)
			continue;
		shunt_findings_add(
			findings, SHUNT_WARN, "port", "%s, port %lld: %s", text_of(device, "name"),
			(long long)json_integer_value(json_object_get(port, "port")), remark);
		shunt_findings_advise(findings, "%s", text_of(port, "do"));
	}
}

static void check_device(struct shunt_findings *findings, const json_t *device)
{
	const char *name = text_of(device, "name"), *remark = text_of(device, "remark");

	if (!json_is_true(json_object_get(device, "usable"))) {
		shunt_findings_add(findings, SHUNT_WARN, "device", "%s is not used: %s", name,
				   text_of(device, "why"));
		shunt_findings_advise(findings, "%s", text_of(device, "do"));
		return;
	}
	shunt_findings_add(findings, SHUNT_WELL, "device", "%s (%s) can be used", name,
			   text_of(device, "driver"));
	if (*remark) {
		shunt_findings_add(findings, SHUNT_WARN, "memlock", "%s: %s", name, remark);
		shunt_findings_advise(findings, "%s", text_of(device, "do"));
	}
	check_ports(findings, device);
}

void shunt_doctor_devices(struct shunt_findings *findings, const char *root)
{
	json_t *devices = shunt_devices_list(root);
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device) check_device(findings, device);
	if (json_array_size(devices) > 1) {
		check_libraries(findings);
		check_cm(findings, root);
		check_namespaces(findings, root);
	} else {
		shunt_findings_add(
			findings, SHUNT_WARN, "device",
			"there is no RDMA device: links are within this host, connections to others stay on TCP");
		shunt_findings_advise(findings,
				      "load the device's driver, or try the software device: "
				      "rdma link add rxe0 type rxe netdev DEVICE");
	}
	json_decref(devices);
}
