/* SPDX-License-Identifier: MIT */
/* Facts of a device that only libibverbs knows: the MTU in use, its atomics, and whether it can be opened. */
#include <string.h>

#include "core/device/cm/inside.h"
#include "core/device/verbs/verbs.h"
#include "tools/doctor/devices.h"

static const char *atomics_word(enum ibv_atomic_cap capability)
{
	return capability == IBV_ATOMIC_GLOB ? "global" :
	       capability == IBV_ATOMIC_HCA  ? "within the device" :
					       "none";
}

static void ask_port(const struct verbs_device *verbs, struct ibv_context *context, json_t *port)
{
	int number = (int)json_integer_value(json_object_get(port, "port"));
	struct ibv_port_attr attr;

	memset(&attr, 0, sizeof(attr)); /* the call knows a shorter structure */
	if (verbs->setup.query_port(context, (uint8_t)number, &attr))
		return;
	json_object_set_new(port, "mtu", json_integer(128 << attr.active_mtu));
	json_object_set_new(port, "mtu_from", json_string("verbs"));
}

static void ask_device(const struct verbs_device *verbs, struct ibv_device *which, json_t *device)
{
	struct ibv_context *context = verbs->setup.open_device(which);
	struct ibv_device_attr limits;
	json_t *port;
	size_t i;

	json_object_set_new(device, "opens", json_boolean(context != NULL));
	if (!context)
		return;
	if (!verbs->verbs.query_device(context, &limits)) {
		json_object_set_new(device, "atomics",
				    json_string(atomics_word(limits.atomic_cap)));
		json_object_set_new(device, "max_qp", json_integer(limits.max_qp));
		json_object_set_new(device, "max_mr", json_integer(limits.max_mr));
	}
	json_array_foreach(json_object_get(device, "ports"), i, port)
		ask_port(verbs, context, port);
	verbs->setup.close_device(context);
}

/* Devices that libibverbs does not list, for want of a provider, say so. */
void shunt_devices_ask(json_t *devices)
{
	struct verbs_device verbs;
	struct ibv_device **list;
	json_t *device;
	size_t i;

	if (!json_array_size(devices) || verbs_library_open(&verbs, "libibverbs.so.1"))
		return;
	list = verbs.setup.get_device_list(NULL);
	json_array_foreach(devices, i, device)
	{
		const char *name = json_string_value(json_object_get(device, "name"));
		size_t at = 0;

		while (list && list[at] && strcmp(list[at]->name, name))
			at++;
		json_object_set_new(device, "listed", json_boolean(list && list[at]));
		if (list && list[at])
			ask_device(&verbs, list[at], device);
	}
	if (list)
		verbs.setup.free_device_list(list);
	verbs_library_close(&verbs);
}

const char *shunt_devices_verbs_fault(void)
{
	static struct verbs_device verbs;

	if (verbs_library_open(&verbs, "libibverbs.so.1"))
		return verbs.error;
	verbs_library_close(&verbs);
	return NULL;
}

const char *shunt_devices_cm_fault(void)
{
	static struct cm cm;

	if (cm_library_open(&cm, "librdmacm.so.1"))
		return cm.error;
	cm_library_close(&cm);
	return NULL;
}
