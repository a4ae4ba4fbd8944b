/* SPDX-License-Identifier: MIT */
/* The end of streams whose time is over (user_timeout.h). Service thread. */
#ifndef SHUNT_CORE_STREAM_EXPIRE_H
#define SHUNT_CORE_STREAM_EXPIRE_H

struct shunt_stream;
struct shunt_task;

void shunt_expire_run(struct shunt_task *task);
/* The connection is over with that error. Both locks held; the program is told after tx.lock is left. */
void shunt_expire_end(struct shunt_stream *stream, int error);
/* rx.lock held. */
void shunt_expire_tell(struct shunt_stream *stream);

#endif
