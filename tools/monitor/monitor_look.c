/* SPDX-License-Identifier: MIT */
/* Looks at processes: one for all that ask within a while, and none where nobody asks. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tools/ask/budget.h"
#include "tools/metrics/metrics.h"
#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

/* Seconds, with all processes; a scrape waits so long for one that is stopped. */
#define PATIENCE 1.0

int monitor_look_open(struct monitor *monitor)
{
	pthread_mutex_init(&monitor->lock, NULL);
	monitor->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return monitor->bell < 0 ? -errno : 0;
}

/* ---- references ---- */

static void end(struct monitor_look *look)
{
	shunt_look_free(&look->look);
	shunt_look_free(&look->before);
	json_decref(look->events);
	for (int i = 0; i < MONITOR_VIEWS; i++)
		free(look->text[i]);
	free(look);
}

void monitor_look_leave(struct monitor *monitor, struct monitor_look *look)
{
	unsigned int left;

	if (!look)
		return;
	pthread_mutex_lock(&monitor->lock);
	left = --look->references;
	pthread_mutex_unlock(&monitor->lock);
	if (!left)
		end(look);
}

struct monitor_look *monitor_look_take(struct monitor *monitor, enum monitor_kind kind, bool any)
{
	struct monitor_look *look;

	pthread_mutex_lock(&monitor->lock);
	look = monitor->now[kind];
	if (look && !any && shunt_seconds() - look->at > monitor->options.interval)
		look = NULL;
	if (look)
		look->references++;
	pthread_mutex_unlock(&monitor->lock);
	return look;
}

void monitor_look_close(struct monitor *monitor)
{
	for (int i = 0; i < MONITOR_KINDS; i++)
		monitor_look_leave(monitor, monitor->now[i]);
	close(monitor->bell);
	pthread_mutex_destroy(&monitor->lock);
}

/* ---- looking ---- */

/* This host's. jansson's counts of references are atomic, and nobody changes the values. */
static void copy(struct shunt_look *to, const struct shunt_look *from)
{
	*to = (struct shunt_look) { .shut = from->shut };
	to->processes = calloc(from->count, sizeof(*to->processes));
	if (!to->processes)
		abort();
	for (size_t i = 0; i < from->count; i++) {
		if (from->processes[i].host)
			continue;
		to->processes[to->count++] = from->processes[i];
		json_incref(from->processes[i].process);
	}
}

static void look_now(struct monitor *monitor, enum monitor_kind kind, struct monitor_look *look)
{
	struct monitor_look *last = monitor_look_take(monitor, kind, true);
	double start = shunt_seconds();

	if (kind == MONITOR_LOGS)
		look->events = monitor_log();
	else
		shunt_look_within(&look->look, NULL, 0, PATIENCE, &shunt_budget_monitor);
	look->at = shunt_seconds();
	look->took = look->at - start;
	if (last && last->look.count)
		copy(&look->before, &last->look);
	if (kind == MONITOR_STATISTICS)
		monitor_hosts_add(monitor, &look->look, &look->before);
	monitor_look_leave(monitor, last);
}

static void renew(struct monitor *monitor, enum monitor_kind kind)
{
	struct monitor_look *look = calloc(1, sizeof(*look)), *last;

	if (!look)
		abort();
	look_now(monitor, kind, look);
	look->references = 1;
	pthread_mutex_lock(&monitor->lock);
	last = monitor->now[kind];
	monitor->now[kind] = look;
	monitor->wanted[kind] = false;
	pthread_mutex_unlock(&monitor->lock);
	monitor_look_leave(monitor, last);
}

void monitor_look_renew(struct monitor *monitor)
{
	uint64_t rung;

	if (read(monitor->bell, &rung, sizeof(rung)) < 0)
		return;
	for (unsigned int i = 0; i < MONITOR_KINDS; i++) {
		bool wanted;

		pthread_mutex_lock(&monitor->lock);
		wanted = monitor->wanted[i];
		pthread_mutex_unlock(&monitor->lock);
		if (wanted)
			renew(monitor, (enum monitor_kind)i);
	}
}

/* ---- what is made of it ---- */

void monitor_look_make(struct monitor *monitor, struct monitor_look *look, enum monitor_view view)
{
	const struct monitor_options *options = &monitor->options;
	size_t *bytes = &look->bytes[view];

	if (look->text[view])
		return;
	switch (view) {
	case MONITOR_VIEW_TEXT:
		look->text[view] = shunt_metrics_text(&look->look, SHUNT_METRICS_TEXT,
						      options->detail, bytes);
		break;
	case MONITOR_VIEW_OPEN:
		look->text[view] = shunt_metrics_text(&look->look, SHUNT_METRICS_OPEN,
						      options->detail, bytes);
		break;
	case MONITOR_VIEW_PAGE:
		look->text[view] = monitor_page(options, look, bytes);
		break;
	case MONITOR_VIEW_LOG:
		look->text[view] = monitor_log_text(look->events, bytes);
		break;
	case MONITOR_VIEWS:
		break;
	}
}
