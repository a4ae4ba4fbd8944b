/* SPDX-License-Identifier: MIT */
/* The next steps of a stream when its lane has posted something, or its device has carried it out (lane.h). */
#ifndef SHUNT_CORE_STREAM_DELIVERED_H
#define SHUNT_CORE_STREAM_DELIVERED_H

struct shunt_lane_hooks;

extern const struct shunt_lane_hooks shunt_delivered_hooks;

#endif
