/* SPDX-License-Identifier: MIT */
#include "core/admin/stats_device.h"
#include "core/device/soft/soft.h"
#include "core/engine.h"

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
