/* SPDX-License-Identifier: MIT */
/*
 * A process of another host, between the answer to its question and its link. It has a ticket for the gate and, once
 * it has come, a channel. Service thread.
 */
#ifndef SHUNT_CORE_PEER_REMOTE_GUEST_H
#define SHUNT_CORE_PEER_REMOTE_GUEST_H

#include "core/peer/remote_listener.h"
#include "core/peer/remote_words.h"

struct shunt_service;

/*
 * A ticket for the process that has asked, and whose packets go by this course. `answer` has no cookie yet; it gets all
 * it lacks. Returns how many bytes of it are to be sent, or -errno.
 */
int shunt_remote_guest_expect(struct shunt_remote_listener *gate, const struct shunt_course *course,
			      const struct remote_question *question, struct remote_answer *answer);
/* A ticket that the owner of our address has made (invite.h). 0 or -errno. */
int shunt_remote_guest_invited(struct shunt_remote_listener *gate,
			       const struct shunt_course *course,
			       const uint8_t ticket[SHUNT_TICKET_BYTES]);

/* The gate's callbacks. The link is made only with a process that is outside this host. */
void shunt_remote_guest_come(void *service, void *ticket, int fd);
void shunt_remote_guest_over(void *service, void *ticket);

#endif
