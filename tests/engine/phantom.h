/* SPDX-License-Identifier: MIT */
/* Links of clients that there are not, at the node of a bed: as many as a test likes, for the price of their memory. */
#ifndef TESTS_ENGINE_PHANTOM_H
#define TESTS_ENGINE_PHANTOM_H

enum { PHANTOM_FD = 1 << 30 }; /* of their channels: what they are told is sent there */

struct shunt_link;

/* One more, as if a connection of the bed's first pair had come by it. */
struct shunt_link *phantom_come(void);
/* The one that came last goes. */
void phantom_go(struct shunt_link *link);

#endif
