/* SPDX-License-Identifier: MIT */
/* SO_RCVLOWAT, which the kernel keeps and the link has to honour. errno is kept. */
#ifndef SHUNT_CORE_STREAM_LOW_WATER_H
#define SHUNT_CORE_STREAM_LOW_WATER_H

struct shunt_stream;

/* The program has set it: what the kernel has made of that. */
void shunt_low_water_ask(struct shunt_stream *stream);
/* The stream is shared, and a relative may have set it. */
void shunt_low_water_look(struct shunt_stream *stream);

#endif
