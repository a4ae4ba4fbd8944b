/* SPDX-License-Identifier: MIT */
/* How the clients of `shunt perf qos` share a demand: Haechi's distributions (HA-18). */
#include "tools/perf/qos/perf_qos.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.6
#define ZIPF_GROUP 2 /* clients that have the same weight */
#define SPIKE_LARGE 340
#define SPIKE_SMALL 80

static double uniform_weight(uint32_t index, uint32_t clients)
{
	(void)index;
	(void)clients;
	return 1;
}

/* Three of ten clients are large. */
static double spike_weight(uint32_t index, uint32_t clients)
{
	uint32_t large = (3 * clients + 5) / 10;

	return index < (large ? large : 1) ? SPIKE_LARGE : SPIKE_SMALL;
}

static double zipf_weight(uint32_t index, uint32_t clients)
{
	(void)clients;
	return pow(index / ZIPF_GROUP + 1, -ZIPF_EXPONENT);
}

static const struct {
	const char *name;
	double (*weight)(uint32_t index, uint32_t clients);
} distributions[] = {
	{ "uniform", uniform_weight },
	{ "spike", spike_weight },
	{ "zipf", zipf_weight },
};

/* Each share is rounded by itself, so clients of one weight have one demand. */
int perf_qos_demand(const char *name, uint64_t total, uint32_t clients, uint32_t *demands)
{
	double (*weight)(uint32_t, uint32_t) = NULL;
	double sum = 0;

	for (size_t i = 0; i < sizeof(distributions) / sizeof(distributions[0]); i++)
		if (!strcmp(name, distributions[i].name))
			weight = distributions[i].weight;
	if (!weight)
		return -1;
	for (uint32_t i = 0; i < clients; i++)
		sum += weight(i, clients);
	for (uint32_t i = 0; i < clients; i++)
		demands[i] = (uint32_t)lround((double)total * weight(i, clients) / sum);
	return 0;
}

int perf_qos_demand_list(const char *text, uint32_t clients, uint32_t *demands)
{
	for (uint32_t i = 0; i < clients; i++) {
		size_t length = strcspn(text, ",");
		char word[24];
		uint64_t number;

		if (length >= sizeof(word) || (text[length] == ',') != (i + 1 < clients))
			return -1;
		memcpy(word, text, length);
		word[length] = '\0';
		if (perf_number(word, 0, PERF_QOS_DEMAND_MAX, &number))
			return -1;
		demands[i] = (uint32_t)number;
		text += length + 1;
	}
	return 0;
}
