/* SPDX-License-Identifier: MIT */
/*
 * Work that polls leave until group.lock is free: lanes are served, and streams that nobody reads pass their
 * switches.
 */
#ifndef SHUNT_CORE_STREAM_SETTLE_H
#define SHUNT_CORE_STREAM_SETTLE_H

struct shunt_group;
struct shunt_stream;

/* The stream has a switch to pass, if nobody is reading. group.lock held. */
void shunt_settle_later(struct shunt_stream *stream);
/* Until nothing is left. No lock held but of a stream. */
void shunt_settle_all(struct shunt_group *group);

#endif
