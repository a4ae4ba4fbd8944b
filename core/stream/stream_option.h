/* SPDX-License-Identifier: MIT */
/*
 * O_NONBLOCK belongs to the open file description and options to the socket, so a fork's relatives change them for each
 * other. Each notes that it has changed something (fork_slots.h), and asks the kernel anew when another has.
 */
#ifndef SHUNT_CORE_STREAM_STREAM_OPTION_H
#define SHUNT_CORE_STREAM_STREAM_OPTION_H

struct shunt_engine;
struct shunt_stream;

/* The stream is shared: what relatives have changed counts from here on. None of its locks held. */
void shunt_stream_look_at_mode(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* Another process may have set any of those that are cached: they are asked for again. No lock held. */
void shunt_stream_forget_options(struct shunt_engine *engine, int fd, struct shunt_stream *stream);
/* Asks the kernel what the connections that a listener made elsewhere accepts will inherit. */
void shunt_stream_option_adopt(struct shunt_stream *stream);

#endif
