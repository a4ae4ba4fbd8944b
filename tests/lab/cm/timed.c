/* SPDX-License-Identifier: MIT */
/* How long the library keeps us: each call that might is timed. */
#include <errno.h>
#include "tests/lab/cm/cm.h"

static struct cm_calls real;

static int took(double since, const char *name, int result)
{
	int saved = errno;
	double ms = now() - since;

	if (ms > seen.slowest) {
		seen.slowest = ms;
		seen.slowest_call = name;
	}
	errno = saved;
	return result;
}

static int timed_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			enum rdma_port_space space)
{
	double since = now();

	return took(since, "create_id", real.create_id(channel, id, context, space));
}

static int timed_destroy(struct rdma_cm_id *id)
{
	double since = now();

	return took(since, "destroy_id", real.destroy_id(id));
}

static int timed_listen(struct rdma_cm_id *id, int backlog)
{
	double since = now();

	return took(since, "listen", real.listen(id, backlog));
}

static int timed_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
	double since = now();

	return took(since, "resolve_addr", real.resolve_addr(id, from, to, ms));
}

static int timed_resolve_route(struct rdma_cm_id *id, int ms)
{
	double since = now();

	return took(since, "resolve_route", real.resolve_route(id, ms));
}

static int timed_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	double since = now();

	seen.connects++;
	return took(since, "connect", real.connect(id, param));
}

static int timed_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	double since = now();

	return took(since, "reject", real.reject(id, data, bytes));
}

static int timed_get_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	double since = now();

	return took(since, "get_cm_event", real.get_cm_event(channel, event));
}

void time_calls(struct cm *cm)
{
	real = cm->calls;
	cm->calls.create_id = timed_create;
	cm->calls.destroy_id = timed_destroy;
	cm->calls.listen = timed_listen;
	cm->calls.resolve_addr = timed_resolve_addr;
	cm->calls.resolve_route = timed_resolve_route;
	cm->calls.connect = timed_connect;
	cm->calls.reject = timed_reject;
	cm->calls.get_cm_event = timed_get_event;
}
