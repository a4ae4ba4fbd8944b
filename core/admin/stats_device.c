/* SPDX-License-Identifier: MIT */
#include "core/admin/stats_device.h"
#include <stdlib.h>
#include <string.h>
#include "core/admin/hw_counters.h"
#include "core/device/soft/soft.h"
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/poll/cancel.h"

struct named {	/* a device that is open */
	char name[IBV_SYSFS_NAME_MAX];
	const char *kind;
	uint32_t inline_bytes, sends, receives;	/* as its trials have settled them; of a lane */
	bool is_tried;
	uint8_t port;
};

void shunt_stats_put_gauges(struct shunt_json *text, struct shunt_group *group)
{
	struct soft_gauges gauges = { 0 };

	if (group->devices[SHUNT_SOFT].open)
		soft_read_gauges(group->devices[SHUNT_SOFT].context, &gauges);
	if (!gauges.wr_max)
		return;
	shunt_json_number(text, "model_wr", gauges.wr);
	shunt_json_number(text, "model_wr_max", gauges.wr_max);
	shunt_json_number(text, "model_bytes", gauges.bytes);
	shunt_json_number(text, "model_bytes_max", gauges.bytes_max);
	shunt_json_number(text, "model_misses", gauges.misses);
	shunt_json_number(text, "model_pauses", gauges.pauses);
	shunt_json_number(text, "model_busy_ns", gauges.busy_ns);
	shunt_json_number(text, "model_mr_ns", gauges.mr_ns);
}

static int devices_list(struct shunt_engine *engine, struct named *devices)
{
	struct shunt_group *group = &engine->group;
	int count = 0;

	shunt_lock_take(&group->lock);
	for (int i = 0; i < SHUNT_DEVICES; i++) {
		const struct shunt_device *device = &group->devices[i];

		if (!device->open || device->gone)
			continue;
		devices[count] = (struct named) { .kind = device->kind->name,
						  .port = device->port,
						  .is_tried = device->kind->doubted,
						  .inline_bytes = device->most_inline,
						  .sends = device->sq_depth,
						  .receives = device->rq_depth };
		memcpy(devices[count].name, device->context->device->name,
		       sizeof(devices[count].name));
		count++;
	}
	shunt_lock_leave(&group->lock);
	return count;
}

static void put_port(struct shunt_json *text, const struct shunt_hw_port *port)
{
	shunt_json_put(text, ",\"port_state\":\"%s\",\"link_layer\":\"%s\",\"hw_counters\":{",
		       port->state, port->link_layer);
	text->comma = false;
	for (uint32_t i = 0; i < port->count; i++)
		shunt_json_number(text, port->counters[i].name, port->counters[i].value);
	shunt_json_put(text, "}");
}

static void put_sizes(struct shunt_json *text, const struct named *device)
{
	shunt_json_put(text, ",\"inline_bytes\":%u,\"send_queue\":%u,\"receive_queue\":%u",
		       device->inline_bytes, device->sends, device->receives);
}

static bool read_port(struct shunt_engine *engine, const struct named *device,
		      struct shunt_hw_port *port)
{
	int state = shunt_cancel_off(), result;

	shunt_own_fds_begin(&engine->fds);
	result = shunt_hw_counters_read(SHUNT_HW_ROOT, device->name, device->port, port);
	shunt_own_fds_end(&engine->fds);
	shunt_cancel_restore(state);
	return !result;
}

void shunt_stats_put_devices(struct shunt_json *text, struct shunt_engine *engine)
{
	struct shunt_hw_port *port = malloc(sizeof(*port));
	struct named devices[SHUNT_DEVICES];
	int count = devices_list(engine, devices);

	shunt_json_put(text, "\"devices\":[");
	for (int i = 0; i < count; i++) {
		shunt_json_put(text, "%s{\"name\":", i ? "," : "");
		shunt_json_string(text, devices[i].name);
		shunt_json_put(text, ",\"kind\":\"%s\",\"port\":%u", devices[i].kind,
			       devices[i].port);
		if (devices[i].is_tried)
			put_sizes(text, &devices[i]);
		if (port && read_port(engine, &devices[i], port))
			put_port(text, port);
		shunt_json_put(text, "}");
	}
	shunt_json_put(text, "],");
	free(port);
}
