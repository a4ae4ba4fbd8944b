/* SPDX-License-Identifier: MIT */
/* Queue pairs that the connection manager connects. */
#include "core/device/cm/pair.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/cm/inside.h"

#define BACKLOG 64 /* pairs that the kernel keeps for us; further ones are refused by it */
#define RESOLVE_MS 2000
#define PORTS_TRIED 16 /* of those that the system chooses: sockets of TCP have some of them */

struct cm_pair {
	struct cm_end end; /* the id is NULL until the peer has come */
	struct cm_pair *next;
	uint32_t qp_num;
	enum { ON_ITS_WAY, JOINED, OVER } state;
	union cm_address peer; /* whom an expected one is for */
	uint8_t word[CM_WORD];
};

/* --- listening --- */

static uint16_t *port_of(union cm_address *address)
{
	return &address->v4.sin_port; /* both families have it in the same place */
}

static int pair_listen_at(struct cm *cm, const union cm_address *at, struct cm_listener *listener)
{
	union cm_address address = *at;
	int err;

	if (cm->calls.create_id(cm->channel, &listener->end.id, &listener->end, RDMA_PS_TCP))
		return -errno;
	if (!cm->calls.bind_addr(listener->end.id, &address.any) &&
	    !cm->calls.listen(listener->end.id, BACKLOG))
		return 0;
	err = errno;
	cm->calls.destroy_id(listener->end.id);
	return -err;
}

static bool is_taken(int result)
{
	return result == -EADDRINUSE || result == -EADDRNOTAVAIL;
}

static int listen_somewhere(struct cm *cm, const union cm_address *at, uint16_t first,
			    uint16_t last, struct cm_listener *listener)
{
	union cm_address address = *at;
	int tries = first ? last - first + 1 : PORTS_TRIED, result = -EADDRINUSE;

	for (int i = 0; i < tries && is_taken(result); i++) {
		*port_of(&address) = first ? htons((uint16_t)(first + i)) : 0;
		result = pair_listen_at(cm, &address, listener);
	}
	return result;
}

int cm_pair_listen(struct cm *cm, const union cm_address *at, uint16_t first, uint16_t last,
		   struct cm_listener **made, uint16_t *port)
{
	struct cm_listener *listener = calloc(1, sizeof(*listener));
	int result;

	if (!listener)
		return cm_fail(cm, ENOMEM, "out of memory");
	listener->end.role = CM_WAITS;
	result = listen_somewhere(cm, at, first, last, listener);
	if (result) {
		free(listener);
		return cm_fail(cm, -result, "no port for queue pairs: %s", strerror(-result));
	}
	cm_adopt_device(cm, listener->end.id);
	*port = listener->end.id->route.addr.src_sin.sin_port;
	listener->next = cm->listeners;
	cm->listeners = listener;
	*made = listener;
	return 0;
}

/* --- pairs --- */

static struct cm_pair *pair_make(struct cm *cm, uint32_t qp_num, const uint8_t word[CM_WORD],
				 void *arg)
{
	struct cm_pair *pair = calloc(1, sizeof(*pair));

	if (!pair)
		return NULL;
	pair->end = (struct cm_end) { .arg = arg, .role = CM_PAIRS };
	pair->qp_num = qp_num;
	memcpy(pair->word, word, CM_WORD);
	pair->next = cm->pairs;
	cm->pairs = pair;
	return pair;
}

void cm_pair_drop(struct cm *cm, struct cm_pair *pair)
{
	struct cm_pair **p = &cm->pairs;

	while (*p != pair)
		p = &(*p)->next;
	*p = pair->next;
	if (pair->end.id)
		cm->calls.destroy_id(pair->end.id);
	free(pair);
}

void cm_pairs_free(struct cm *cm, bool destroy)
{
	struct cm_pair *pair;

	while ((pair = cm->pairs) != NULL) {
		cm->pairs = pair->next;
		if (destroy && pair->end.id)
			cm->calls.destroy_id(pair->end.id);
		free(pair);
	}
}

int cm_pair_expect(struct cm *cm, const union cm_address *peer, uint32_t qp_num,
		   const uint8_t word[CM_WORD], void *arg, struct cm_pair **made)
{
	struct cm_pair *pair = pair_make(cm, qp_num, word, arg);

	if (!pair)
		return -ENOMEM;
	pair->peer = *peer;
	*made = pair;
	return 0;
}

int cm_pair_connect(struct cm *cm, const union cm_address *local, const union cm_address *peer,
		    uint32_t qp_num, const uint8_t word[CM_WORD], void *arg, struct cm_pair **made)
{
	struct cm_pair *pair = pair_make(cm, qp_num, word, arg);
	union cm_address from = *local, to = *peer;
	int err;

	if (!pair)
		return -ENOMEM;
	if (!cm->calls.create_id(cm->channel, &pair->end.id, &pair->end, RDMA_PS_TCP) &&
	    !cm->calls.resolve_addr(pair->end.id, &from.any, &to.any, RESOLVE_MS)) {
		*made = pair;
		return 0;
	}
	err = errno;
	cm_pair_drop(cm, pair);
	return -err;
}

static struct rdma_conn_param param_of(const struct cm *cm, const struct cm_pair *pair)
{
	return (struct rdma_conn_param) { .qp_num = pair->qp_num,
					  .responder_resources = cm->reads,
					  .initiator_depth = cm->reads };
}

static int pair_knock(struct cm *cm, struct cm_pair *pair)
{
	struct rdma_conn_param param = param_of(cm, pair);
	struct cm_frame frame;

	param.private_data = &frame;
	param.private_data_len = cm_frame_make(&frame, CM_KIND_PAIR, pair->word, CM_WORD);
	return cm->calls.connect(pair->end.id, &param) ? -errno : 0;
}

/* --- events --- */

static bool is_from(const struct rdma_cm_id *id, const union cm_address *peer)
{
	const struct sockaddr *from = &id->route.addr.dst_addr;

	if (from->sa_family != peer->any.sa_family)
		return false;
	if (from->sa_family == AF_INET)
		return id->route.addr.dst_sin.sin_addr.s_addr == peer->v4.sin_addr.s_addr;
	return !memcmp(&id->route.addr.dst_sin6.sin6_addr, &peer->v6.sin6_addr,
		       sizeof(peer->v6.sin6_addr));
}

static struct cm_pair *expected(struct cm *cm, const struct rdma_cm_id *id,
				const uint8_t word[CM_WORD])
{
	struct cm_pair *pair = cm->pairs;

	while (pair &&
	       (pair->end.id || memcmp(pair->word, word, CM_WORD) || !is_from(id, &pair->peer)))
		pair = pair->next;
	return pair;
}

/* A queue pair of a peer wants to be connected to one of ours. */
void cm_pair_come(struct cm *cm, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct rdma_conn_param param;
	struct cm_pair *pair = NULL;
	struct cm_frame frame;

	if (cm_frame_read(&frame, CM_KIND_PAIR, CM_WORD, event->param.conn.private_data,
			  event->param.conn.private_data_len) == CM_WORD)
		pair = expected(cm, id, frame.data);
	cm->calls.ack_cm_event(event);
	if (!pair) {
		cm->calls.reject(id, NULL, 0);
		cm->calls.destroy_id(id);
		return;
	}
	pair->end.id = id;
	id->context = &pair->end;
	param = param_of(cm, pair);
	if (!cm->calls.accept(id, &param))
		return;
	pair->state = OVER;
	cm->callbacks->joined(pair->end.arg, -errno);
}

/* The meaning of an event for a pair: 0, or why the pair is over. */
static int step(struct cm *cm, struct cm_pair *pair, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return cm->calls.resolve_route(pair->end.id, RESOLVE_MS) ? -errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return pair_knock(cm, pair);
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return cm_error_of(event->status);
	case RDMA_CM_EVENT_CONNECT_RESPONSE: /* of a device whose queue pairs are led by hand */
		return -EOPNOTSUPP;
	default:
		return 0;
	}
}

void cm_pair_event(struct cm *cm, struct cm_pair *pair, struct rdma_cm_event *event)
{
	bool joins = event->event == RDMA_CM_EVENT_ESTABLISHED;
	int status = step(cm, pair, event), before = pair->state;

	cm->calls.ack_cm_event(event);
	if (before == OVER || (!status && !joins))
		return;
	pair->state = status ? OVER : JOINED;
	if (before == JOINED && status)
		cm->callbacks->parted(pair->end.arg);
	else if (before == ON_ITS_WAY)
		cm->callbacks->joined(pair->end.arg, status);
}
