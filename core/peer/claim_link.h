/* SPDX-License-Identifier: MIT */
/* The claims that go out on a link, at once or when it is up. Service thread throughout. */
#ifndef SHUNT_CORE_PEER_CLAIM_LINK_H
#define SHUNT_CORE_PEER_CLAIM_LINK_H

struct shunt_link;
struct shunt_stream;

/* The stream is to be carried by this link. */
void shunt_claim_on(struct shunt_link *link, struct shunt_stream *stream);
/* The same for a stream that was on a link before. */
void shunt_claim_again(struct shunt_link *link, struct shunt_stream *stream);
/* The peer has knocked, and connections are proven on this link. */
void shunt_claim_link_met(struct shunt_link *link);
void shunt_claim_link_up(struct shunt_link *link);

#endif
