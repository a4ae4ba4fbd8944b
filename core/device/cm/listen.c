/* SPDX-License-Identifier: MIT */
/* The side that is asked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/cm/inside.h"

#define BACKLOG 64	/* questions that the kernel keeps for us; further ones are refused by it */

static int listener_give_back(struct cm *cm, struct cm_listener *listener, const char *what)
{
	int err = errno;

	if (listener->end.id)
		cm->calls.destroy_id(listener->end.id);
	free(listener);
	/* The latter, too: where one of the two is a wildcard. */
	if (err == EADDRINUSE || err == EADDRNOTAVAIL)
		return cm_fail(cm, EADDRINUSE, "another process listens there with the RDMA connection manager");
	if (err == ENODEV)
		return cm_fail(cm, ENODEV, "no RDMA device has this address");
	if (err == EOPNOTSUPP)
		return cm_fail(cm, EOPNOTSUPP, "%s", what);
	return cm_fail(cm, err, "%s: %s", what, strerror(err));
}

/* Its listener would be one of TCP, at the very port that the program listens on. */
static bool is_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

int cm_listen(struct cm *cm, const struct sockaddr *address, bool only_v6, void *arg, struct cm_listener **made)
{
	struct cm_listener *listener;
	union cm_address at;
	int only = only_v6, result = cm_address(&at, address);

	if (result)
		return cm_fail(cm, -result, "neither an IPv4 nor an IPv6 address");
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return cm_fail(cm, ENOMEM, "out of memory");
	listener->end = (struct cm_end) { .arg = arg, .role = CM_IS_ASKED };
	if (cm->calls.create_id(cm->channel, &listener->end.id, &listener->end, RDMA_PS_TCP)) {
		listener->end.id = NULL;
		return listener_give_back(cm, listener, "no id of the RDMA connection manager");
	}
	if (at.any.sa_family == AF_INET6 &&
	    cm->calls.set_option(listener->end.id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only)))
		return listener_give_back(cm, listener, "IPv6 cannot be told from IPv4");
	if (cm->calls.bind_addr(listener->end.id, &at.any))
		return listener_give_back(cm, listener, "the address cannot be bound");
	if (is_iwarp(listener->end.id)) {
		cm_adopt_device(cm, listener->end.id);
		errno = EOPNOTSUPP;
		return listener_give_back(
			cm, listener,
			"an iWARP device has this address: its listeners take TCP ports");
	}
	if (cm->calls.listen(listener->end.id, BACKLOG))
		return listener_give_back(cm, listener, "the address cannot be listened on");
	cm_adopt_device(cm, listener->end.id);
	listener->next = cm->listeners;
	cm->listeners = listener;
	*made = listener;
	return 0;
}

void cm_unlisten(struct cm *cm, struct cm_listener *listener)
{
	struct cm_listener **p = &cm->listeners;

	while (*p != listener)
		p = &(*p)->next;
	*p = listener->next;
	cm->calls.destroy_id(listener->end.id);
	free(listener);
}

void cm_listeners_free(struct cm *cm, bool destroy)
{
	struct cm_listener *listener;

	while ((listener = cm->listeners) != NULL) {
		cm->listeners = listener->next;
		if (destroy)
			cm->calls.destroy_id(listener->end.id);
		free(listener);
	}
}

/* The id of the request lives for as long as this takes. The listener may go within the callback. */
static void question_answer(struct cm *cm, void *arg, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct cm_frame asked, answered;
	uint8_t data[CM_ANSWER_MAX], length = 0;
	struct cm_route route;
	int bytes = cm_frame_read(&asked, CM_KIND_QUESTION, CM_QUESTION_MAX, event->param.conn.private_data,
				  event->param.conn.private_data_len);

	cm->calls.ack_cm_event(event);
	if (bytes >= 0 && id->verbs) {
		cm_route_of(&route, id);
		bytes = cm->callbacks->question(arg, asked.data, bytes, &route, data);
		if (bytes >= 0 && bytes <= CM_ANSWER_MAX)
			length = cm_frame_make(&answered, CM_KIND_ANSWER, data, bytes);
	}
	cm->calls.reject(id, length ? &answered : NULL, length);
	cm->calls.destroy_id(id);
}

void cm_listener_event(struct cm *cm, struct cm_listener *listener, struct rdma_cm_event *event)
{
	void *arg = listener->end.arg;
	bool removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (listener->end.role == CM_WAITS)
			cm_pair_come(cm, event);
		else
			question_answer(cm, arg, event);
		return;
	}
	cm->calls.ack_cm_event(event);
	if (removed && cm->callbacks->lost)
		cm->callbacks->lost(arg);
}
