/* SPDX-License-Identifier: MIT */
/* Opening and closing, and the events. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/cm/inside.h"

#define EVENTS 32	/* in one step, before others have their turn */

int cm_fail(struct cm *cm, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cm->error, sizeof(cm->error), format, args);
	va_end(args);
	return err ? -err : -EIO;
}

/* --- life --- */

static int channel_open(struct cm *cm)
{
	int fd;

	errno = 0;
	cm->channel = cm->calls.create_event_channel();
	if (!cm->channel && (errno == ENOENT || errno == ENXIO))
		return cm_fail(cm, ENODEV, "this kernel has no RDMA connection manager (rdma_ucm)");
	if (!cm->channel && errno == ENODEV)
		return cm_fail(cm, ENODEV, "there is no RDMA device");
	if (!cm->channel)
		return cm_fail(cm, errno, "the RDMA connection manager cannot be opened: %s", strerror(errno));
	if (cm->callbacks->keep) {
		fd = cm->callbacks->keep(cm->arg, cm->channel->fd);
		if (fd < 0)
			return cm_fail(cm, -fd, "no descriptor for the connection manager: %s", strerror(-fd));
		cm->callbacks->drop(cm->arg, cm->channel->fd);
		cm->channel->fd = fd;
	}
	if (fcntl(cm->channel->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return cm_fail(cm, errno, "the connection manager's descriptor is not as it should be: %s",
			       strerror(errno));
	return 0;
}

/* The library's own close would be the program's closing what is not its. */
static void channel_close(struct cm *cm)
{
	if (!cm->channel)
		return;
	if (cm->callbacks->drop) {
		cm->callbacks->drop(cm->arg, cm->channel->fd);
		cm->channel->fd = -1;
	}
	cm->calls.destroy_event_channel(cm->channel);
	cm->channel = NULL;
}

int cm_open(struct cm *cm, const struct cm_callbacks *callbacks, void *arg)
{
	int result = cm_library_open(cm, "librdmacm.so.1");

	if (result)
		return result;
	cm->callbacks = callbacks;
	cm->arg = arg;
	cm->tos = -1;
	result = channel_open(cm);
	if (result) {
		channel_close(cm);
		cm_library_close(cm);
	}
	return result;
}

/* The library stays: it holds the devices that it has opened, and would open them again, and never close them. */
void cm_close(struct cm *cm)
{
	cm_asks_free(cm, true);
	cm_pairs_free(cm, true);
	cm_listeners_free(cm, true);
	channel_close(cm);
}

void cm_forget(struct cm *cm)
{
	cm_asks_free(cm, false);
	cm_pairs_free(cm, false);
	cm_listeners_free(cm, false);
	channel_close(cm);
}

/* --- events --- */

int cm_fd(const struct cm *cm)
{
	return cm->channel->fd;
}

uint64_t cm_next_deadline(const struct cm *cm)
{
	return cm_ask_first_deadline(cm);
}

static void dispatch(struct cm *cm, struct rdma_cm_event *event)
{
	bool asked = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct cm_end *end = asked ? event->listen_id->context : event->id->context;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		cm_forget_device(cm, event->id);
	else
		cm_adopt_device(cm, event->id);
	switch (end->role) {
	case CM_ASKS:
		cm_ask_event(cm, (struct cm_ask *)end, event);
		break;
	case CM_IS_ASKED:
	case CM_WAITS:
		cm_listener_event(cm, (struct cm_listener *)end, event);
		break;
	case CM_PAIRS:
		cm_pair_event(cm, (struct cm_pair *)end, event);
		break;
	}
}

void cm_step(struct cm *cm, uint64_t now_ms)
{
	struct rdma_cm_event *event;

	cm->now = now_ms;
	for (int i = 0; i < EVENTS && !cm->calls.get_cm_event(cm->channel, &event); i++)
		dispatch(cm, event);
	cm_ask_expire(cm);
}
