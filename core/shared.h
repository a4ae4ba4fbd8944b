/*
 * Connections that a fork has given two owners. A page that all descendants see has a slot for each: who has used it
 * first, whether he has it on a link, and how many processes hold it. Who touches it owns it; where two touch it, it
 * is the kernel's for ever.
 */
#ifndef SHUNT_CORE_SHARED_H
#define SHUNT_CORE_SHARED_H

#include <stdbool.h>
#include <sys/types.h>

struct shunt_engine;
struct shunt_stream;

enum shunt_whose { SHUNT_OURS, SHUNT_KERNELS, SHUNT_ANOTHERS };

/* Before a fork: slots for what both processes will hold. streams_lock held. */
void shunt_shared_fork(struct shunt_engine *engine);
/* It is used for the first time by this process. A stream that nobody shares is ours. */
enum shunt_whose shunt_shared_touch(struct shunt_stream *stream);
/* It moves to a link of ours. False: somebody else has touched it. */
bool shunt_shared_commit(struct shunt_stream *stream);
/* It is to be the kernel's for all. False: it is on another process's link, who must be asked. */
bool shunt_shared_settle(struct shunt_stream *stream);
/* We hold it no more; once. */
void shunt_shared_leave(struct shunt_stream *stream);
/* Has it a slot that counts who holds it? */
bool shunt_shared_counts(const struct shunt_stream *stream);
/* Does another process hold it, as far as we know? */
bool shunt_shared_held(const struct shunt_stream *stream);
/* Whose link it is on; 0: nobody's, or it has no slot. */
pid_t shunt_shared_owner(const struct shunt_stream *stream);

#endif
