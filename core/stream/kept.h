/* SPDX-License-Identifier: MIT */
/* Spares (core/stream/spare.h), for those who only look whether a stream is one, or note that something has happened. */
#ifndef SHUNT_CORE_STREAM_KEPT_H
#define SHUNT_CORE_STREAM_KEPT_H

#include <stdbool.h>

struct shunt_engine;
struct shunt_stream;

/* The copy of its socket is closed: it is kept no longer. streams_lock held. */
void shunt_kept_forget(struct shunt_engine *engine, struct shunt_stream *stream);
/* Something has happened to one: both ends have released it, the peer has said something, its link has ended. Any lock may be held. */
void shunt_kept_later(struct shunt_stream *stream);
/* The service thread is to give it up. Any lock may be held. */
void shunt_kept_ends(struct shunt_stream *stream);
/* Both have released it, and keep it. */
bool shunt_kept_by_both(const struct shunt_stream *stream);
/* The program has ended its direction, and the kernel's end is put off. Any lock may be held. */
bool shunt_kept_shut(const struct shunt_stream *stream);
/* It is not any longer, and the caller says it. False: it was not. tx.lock held. */
bool shunt_kept_unshut(struct shunt_stream *stream);
/* This end has closed it, and says so when the peer has read all. Any lock may be held. */
bool shunt_kept_waits(const struct shunt_stream *stream);
/* Nobody uses it, and it may be taken. Any thread that keeps the stream. */
bool shunt_kept_rests(const struct shunt_stream *stream);

#endif
