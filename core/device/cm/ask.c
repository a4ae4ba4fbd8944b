/* SPDX-License-Identifier: MIT */
/* The side that asks: the address, then the route, then the question. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "core/device/cm/inside.h"

/*
 * Our own deadline is the one that counts. The kernel gives up on a neighbour that did not answer
 * at once only when its time is over. Until then it may miss an answer that came too soon (seen
 * with Linux 6.1 over veth). So each of its tries is short.
 */
#define ADDRESS_MS 250
#define ROUTE_MS 60000
/* A datagram may be lost, or find the peer's backlog full; the kernel asks again after four seconds at the earliest. */
#define AGAIN_MS 1000

/* Reasons of a rejection: IBA specification volume 1, 12.6.7.2. */
enum { NO_RESOURCES = 3, NO_SERVICE = 8, STALE = 10, CONSUMER = 28 };

struct cm_ask {
	struct cm_end end;
	struct cm_ask *next;
	uint64_t deadline;
	uint64_t again;		/* when to start anew; CM_NEVER: not asked yet */
	unsigned int bytes;
	bool routed;
	bool bound;		/* to an address, `from` */
	union cm_address from, to;
	struct cm_route route;
	uint8_t question[CM_QUESTION_MAX];
};

static void unlink_ask(struct cm *cm, struct cm_ask *ask)
{
	struct cm_ask **p = &cm->asks;

	while (*p != ask)
		p = &(*p)->next;
	*p = ask->next;
}

/* Every event of it has been acknowledged. */
static void ask_finish(struct cm *cm, struct cm_ask *ask, int status, const struct cm_frame *frame)
{
	struct cm_ask done = *ask;

	cm_cancel(cm, ask);
	cm->callbacks->answer(done.end.arg, status, frame ? frame->data : NULL, frame ? frame->bytes : 0,
			      done.routed ? &done.route : NULL);
}

/*
 * The request must name a QP, and none exists. Were it another's, the peer would take this for a
 * new try of an old connection, and refuse this one and end that one. Devices count from below.
 */
static uint32_t no_such_qp(void)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = 0;
	return 0xf00000 | (number & 0xfffff);
}

static int resolve(struct cm *cm, struct cm_ask *ask)
{
	return cm->calls.resolve_addr(ask->end.id, ask->bound ? &ask->from.any : NULL, &ask->to.any, ADDRESS_MS) ?
	       -errno : 0;
}

static int send_question(struct cm *cm, struct cm_ask *ask)
{
	struct cm_frame frame;
	struct rdma_conn_param param = { .private_data = &frame, .qp_num = no_such_qp(), .retry_count = 7,
					 .rnr_retry_count = 7 };

	cm_route_of(&ask->route, ask->end.id);
	ask->routed = true;
	if (ask->route.iwarp)
		return -EOPNOTSUPP;
	ask->again = cm->now + AGAIN_MS;
	param.private_data_len = cm_frame_make(&frame, CM_KIND_QUESTION, ask->question, ask->bytes);
	return cm->calls.connect(ask->end.id, &param) ? -errno : 0;
}

/* A rejection: the answer, or the reason for its absence. */
static int read_rejection(struct cm_frame *frame, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	if (event->status == CONSUMER || event->status == -ECONNREFUSED) {	/* the latter from iWARP */
		int bytes = cm_frame_read(frame, CM_KIND_ANSWER, CM_ANSWER_MAX, conn->private_data,
					  conn->private_data_len);

		return bytes >= 0 ? 0 : event->status == CONSUMER ? -EPROTO : -ECONNREFUSED;
	}
	if (event->status == NO_SERVICE)
		return -ECONNREFUSED;
	return event->status == STALE || event->status == NO_RESOURCES ? -EAGAIN : -EPROTO;
}

/* The kernel's -errno; -1 is the library's own, which then cannot use the device. */
int cm_error_of(int status)
{
	return status == -1 ? -ENODEV : status < 0 ? status : -EHOSTUNREACH;
}

void cm_ask_event(struct cm *cm, struct cm_ask *ask, struct rdma_cm_event *event)
{
	struct cm_frame frame;
	int status = 0;
	bool over = false;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (cm->calls.resolve_route(ask->end.id, ROUTE_MS))
			status = -errno;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		status = send_question(cm, ask);
		break;
	case RDMA_CM_EVENT_REJECTED:
		status = read_rejection(&frame, event);
		over = true;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		status = -ETIMEDOUT;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		status = -ENODEV;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:	/* somebody wants to be connected */
	case RDMA_CM_EVENT_ESTABLISHED:
		status = -EPROTO;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		status = event->status == -ETIMEDOUT ? resolve(cm, ask) :
						       cm_error_of(event->status);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		status = cm_error_of(event->status);
		break;
	default:
		break;
	}
	cm->calls.ack_cm_event(event);
	if (status || over)
		ask_finish(cm, ask, status, status ? NULL : &frame);
}

static int set_tos(struct cm *cm, struct cm_ask *ask)
{
	uint8_t tos = (uint8_t)cm->tos;

	if (cm->tos < 0)
		return 0;
	return cm->calls.set_option(ask->end.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1) ?
		       -errno :
		       0;
}

/* The id that it had is gone. */
static int start(struct cm *cm, struct cm_ask *ask)
{
	int result;

	ask->again = CM_NEVER;
	if (cm->calls.create_id(cm->channel, &ask->end.id, &ask->end, RDMA_PS_TCP)) {
		ask->end.id = NULL;
		return -errno;
	}
	result = set_tos(cm, ask);
	if (!result)
		result = resolve(cm, ask);
	if (result) {
		cm->calls.destroy_id(ask->end.id);
		ask->end.id = NULL;
	}
	return result;
}

static void start_anew(struct cm *cm, struct cm_ask *ask)
{
	int result;

	cm->calls.destroy_id(ask->end.id);
	result = start(cm, ask);
	if (result)
		ask_finish(cm, ask, result, NULL);
}

int cm_ask(struct cm *cm, const struct sockaddr *local, const struct sockaddr *remote, const void *question,
	   unsigned int bytes, uint64_t deadline_ms, void *arg, struct cm_ask **made)
{
	struct cm_ask *ask;
	int result;

	if (bytes > CM_QUESTION_MAX)
		return -EMSGSIZE;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	if (cm_address(&ask->to, remote) || (local && cm_address(&ask->from, local))) {
		free(ask);
		return -EAFNOSUPPORT;
	}
	ask->bound = local;
	ask->from.v4.sin_port = 0;	/* both families have it in the same place */
	ask->end.arg = arg;
	ask->deadline = deadline_ms;
	ask->bytes = bytes;
	if (bytes)
		memcpy(ask->question, question, bytes);
	result = start(cm, ask);
	if (result) {
		free(ask);
		return result;
	}
	ask->next = cm->asks;
	cm->asks = ask;
	if (made)
		*made = ask;
	return 0;
}

void cm_cancel(struct cm *cm, struct cm_ask *ask)
{
	unlink_ask(cm, ask);
	if (ask->end.id)
		cm->calls.destroy_id(ask->end.id);
	free(ask);
}

void cm_asks_free(struct cm *cm, bool destroy)
{
	struct cm_ask *ask;

	while ((ask = cm->asks) != NULL) {
		cm->asks = ask->next;
		if (destroy)
			cm->calls.destroy_id(ask->end.id);
		free(ask);
	}
}

uint64_t cm_ask_first_deadline(const struct cm *cm)
{
	uint64_t first = CM_NEVER;

	for (const struct cm_ask *ask = cm->asks; ask; ask = ask->next) {
		first = ask->deadline < first ? ask->deadline : first;
		first = ask->again < first ? ask->again : first;
	}
	return first;
}

/* One that is due, or NULL. */
static struct cm_ask *next_due(struct cm *cm)
{
	for (struct cm_ask *ask = cm->asks; ask; ask = ask->next)
		if (ask->deadline <= cm->now || ask->again <= cm->now)
			return ask;
	return NULL;
}

/* Looks from the start after each: a callback may have changed the list. */
void cm_ask_expire(struct cm *cm)
{
	struct cm_ask *ask;

	while ((ask = next_due(cm)) != NULL) {
		if (ask->deadline <= cm->now)
			ask_finish(cm, ask, -ETIMEDOUT, NULL);
		else
			start_anew(cm, ask);
	}
}
