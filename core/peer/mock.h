/* SPDX-License-Identifier: MIT */
/*
 * A stream's bytes stay on TCP although the link could carry them (XR-38, "mock"). That is the word of an operator,
 * by SHUNT_MOCK or `shunt adm`, of the peer's operator, or of the rule about slow completions. Each is a bit of
 * seat.out.held, and shunt_track_choose() looks at nothing but whether one is set. So is the program's own word, a rate that it
 * has set (core/qos/pacing.h).
 *
 * An operator's word is about both directions, so the peer is told of it. The rule is about ours alone: it is ours
 * whose completions are slow.
 *
 * When a bit changes the service thread has the switch announced at once, so that an idle stream moves, too. The
 * command shunt stat shows which it is.
 */
#ifndef SHUNT_CORE_PEER_MOCK_H
#define SHUNT_CORE_PEER_MOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stream/track.h"

struct shunt_answer;
struct shunt_engine;
struct shunt_lane;
struct shunt_task;
struct shunt_stream;

enum shunt_mock { SHUNT_MOCK_AUTO, SHUNT_MOCK_TCP, SHUNT_MOCK_RDMA };	/* SHUNT_MOCK's words */

/* The stream comes to a link: what is said of it, and of the lane. Both locks held. */
void shunt_mock_begin(struct shunt_stream *stream);
/* Our operator wants it on TCP: what the peer is told when both ends agree on the stream. */
bool shunt_mock_wants_tcp(struct shunt_stream *stream);
/* The peer's operator has spoken. Service thread. */
void shunt_mock_asked(struct shunt_stream *stream, bool tcp);
/* The command `mock`: 0, or -1 and why not. Service thread. */
int shunt_mock_command(struct shunt_engine *engine, int count, char **words, struct shunt_answer *answer);
/* An operator's word for one stream. Service thread. */
void shunt_mock_set(struct shunt_stream *stream, enum shunt_mock mock);
/* For statistics: who holds the stream's bytes on TCP; "" nobody. */
const char *shunt_mock_text(uint8_t held);

/* Looks for lanes whose completions do not come (core/lane/slow_lane.h). */
void shunt_mock_run(struct shunt_task *task);

#endif
