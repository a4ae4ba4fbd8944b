/* The messages of a peer: what comes on a link's channel, and which part of the engine each is for. Service thread. */
#ifndef SHUNT_CORE_HEAR_H
#define SHUNT_CORE_HEAR_H

struct shunt_link;
struct shunt_message;

/* The channel is readable, or the peer has ended it. seats_lock held. */
void shunt_link_readable(struct shunt_link *link);

/* A message has come. fds stay the caller's. */
void shunt_hear_message(struct shunt_link *link, const struct shunt_message *message, const int *fds, int count);

#endif
