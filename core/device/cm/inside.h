/* SPDX-License-Identifier: MIT */
/* Calls of the files of core/device/cm among themselves. */
#ifndef SHUNT_CORE_DEVICE_CM_INSIDE_H
#define SHUNT_CORE_DEVICE_CM_INSIDE_H

#include "core/device/cm/cm.h"

/* The context of every rdma_cm_id of ours points at one. */
struct cm_end {
	struct rdma_cm_id *id;
	void *arg;
	enum cm_role { CM_ASKS, CM_IS_ASKED, CM_WAITS, CM_PAIRS } role;
};

struct cm_listener {
	struct cm_end end;
	struct cm_listener *next;
};

/* Private data in either direction: four bytes, and what they say is there. rdma_cm pads it with zeros. */
struct cm_frame {
	uint8_t magic[2];
	uint8_t kind;
	uint8_t bytes;
	uint8_t data[CM_ANSWER_MAX];
};
#define CM_FRAME_HEAD 4

enum cm_kind { CM_KIND_QUESTION = 1, CM_KIND_ANSWER = 2, CM_KIND_PAIR = 3 };

__attribute__((format(printf, 3, 4)))
int cm_fail(struct cm *cm, int err, const char *format, ...);

/* frame.c. Building returns the length of the whole. Reading returns how much data there is, or -EPROTO. */
uint8_t cm_frame_make(struct cm_frame *frame, enum cm_kind kind, const void *data, unsigned int bytes);
int cm_frame_read(struct cm_frame *frame, enum cm_kind kind, unsigned int limit, const void *given, unsigned int bytes);

/* route.c */
void cm_route_of(struct cm_route *route, const struct rdma_cm_id *id);
/* The library may have opened its device just now. */
void cm_adopt_device(struct cm *cm, struct rdma_cm_id *id);
/* It is gone. */
void cm_forget_device(struct cm *cm, struct rdma_cm_id *id);

/* ask.c: what the kernel, or the library (-1), says of an address or a route: -errno. */
int cm_error_of(int status);

/* ask.c, listen.c, pair.c: an event of one of theirs. Acknowledge it before anything that may call back. */
void cm_ask_event(struct cm *cm, struct cm_ask *ask, struct rdma_cm_event *event);
void cm_ask_expire(struct cm *cm);
uint64_t cm_ask_first_deadline(const struct cm *cm);
void cm_listener_event(struct cm *cm, struct cm_listener *listener, struct rdma_cm_event *event);
void cm_pair_come(struct cm *cm, struct rdma_cm_event *event);
void cm_pair_event(struct cm *cm, struct cm_pair *pair, struct rdma_cm_event *event);
void cm_pairs_free(struct cm *cm, bool destroy);
void cm_asks_free(struct cm *cm, bool destroy);
void cm_listeners_free(struct cm *cm, bool destroy);

#endif
