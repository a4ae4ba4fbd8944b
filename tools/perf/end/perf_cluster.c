/* SPDX-License-Identifier: MIT */
/*
 * The requests of a large cluster: the smallest power of two with which throughput is at its
 * maximum, within what two measurements differ by anyway.
 */
#include "tools/perf/perf.h"

#define LARGEST 1024
#define AT_MAXIMUM 0.95
#define MEASURED_MS 200
#define WARM_MS 50

static uint32_t smallest_at_maximum(const double *rates, size_t count)
{
	double maximum = 0;
	size_t i;

	for (i = 0; i < count; i++)
		if (rates[i] > maximum)
			maximum = rates[i];
	for (i = 0; i < count && rates[i] < maximum * AT_MAXIMUM; i++)
		;
	return 1U << i;
}

/* Two doublings in a row that gained nothing. */
static bool is_flat(const double *rates, size_t count)
{
	return count > 2 && rates[count - 1] * AT_MAXIMUM < rates[count - 3] &&
	       rates[count - 2] * AT_MAXIMUM < rates[count - 3];
}

int perf_cluster_find(const struct perf_bench *bench, struct perf_model *model,
		      const struct perf_transport *transport, const struct perf_setup *setup,
		      char why[SHUNT_WHY_MAX])
{
	struct perf_setup brief = *setup;
	double rates[16];
	size_t count = 0;
	struct perf_run run;
	int rc;

	if (brief.measured_ms > MEASURED_MS)
		brief.measured_ms = MEASURED_MS;
	brief.warm_ms = WARM_MS;
	for (uint32_t size = 1; size <= LARGEST && !is_flat(rates, count); size *= 2) {
		perf_model_set_cluster(model, size);
		rc = perf_measure(bench, model, transport, &brief, &run, why);
		if (rc)
			return rc;
		rates[count++] = run.metrics[0][PERF_RATE];
	}
	model->large = smallest_at_maximum(rates, count);
	return 0;
}
