/* SPDX-License-Identifier: MIT */
/*
 * Streams that a fork has given two owners (PF-49). The link is one process's: the parent's, or who used it first
 * (fork_slots.h). A relative that touches such a stream marks it in the page that relatives share, and knocks at the
 * owner's door. The owner hands the stream back to the kernel. From then on both are ordinary owners of an ordinary
 * socket.
 *
 * A knock is a connection and nothing else. Nothing is read from it, whoever it comes from; it is hung up on when
 * there is an answer in the page. So a child may have changed its user, and a stranger who knocks costs a look.
 */
#ifndef SHUNT_CORE_STREAM_HANDOVER_H
#define SHUNT_CORE_STREAM_HANDOVER_H

#include <stdint.h>

struct shunt_engine;
struct shunt_stream;

/*
 * The owner of its link hands the stream back to the kernel; waits. 0 or -errno. The stream is plain then, except
 * with -ENOMEM, which is for now: the program must not get at the socket.
 */
int shunt_handover_ask(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/*
 * In a child of vfork(): the parent, whose stream it is, hands it back to the kernel. 0 or -errno.
 */
int shunt_handover_ask_parent(struct shunt_engine *engine, struct shunt_stream *stream);
/* The retirement a child asked for is over. */
void shunt_handover_answer(struct shunt_engine *engine, struct shunt_stream *stream);

#endif
