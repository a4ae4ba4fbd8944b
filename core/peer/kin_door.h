/* SPDX-License-Identifier: MIT */
/*
 * The door for relatives of our peers: a fork's child takes over a stream whose owner does not answer
 * (core/stream/takeover.h). It is made when the first peer says that it has forked (KIN). One datagram is a question, and
 * counts if it shows what that peer has said. Others count against their sender's user (limits.h). Service thread.
 */
#ifndef SHUNT_CORE_PEER_KIN_DOOR_H
#define SHUNT_CORE_PEER_KIN_DOOR_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_link;
struct shunt_message;
struct shunt_service;

/* The peer has forked. False: it has said so before. */
bool shunt_kin_door_open(struct shunt_link *link, const struct shunt_message *message);
/* In a fork's child, too. */
void shunt_kin_door_close(struct shunt_service *service);

#endif
