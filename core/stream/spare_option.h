/* SPDX-License-Identifier: MIT */
/*
 * Options of a spare's socket (core/stream/spare.h). Those that the program has set are put back when it closes, so the next
 * program finds the socket as the kernel would have made it. A connection with another one is not kept.
 */
#ifndef SHUNT_CORE_STREAM_SPARE_OPTION_H
#define SHUNT_CORE_STREAM_SPARE_OPTION_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_stream;

/* Of struct shunt_options.changed. */
uint16_t shunt_spare_option_bit(int level, int name);
/* The program is about to set an option of the stream's socket. Its thread; errno is kept. */
void shunt_spare_option_changes(struct shunt_stream *stream, int level, int name);
/* The program has set none that cannot be put back. */
bool shunt_spare_option_may_keep(const struct shunt_stream *stream);
/* The connection may be used again, and the next two are of use. */
bool shunt_spare_option_any(const struct shunt_stream *stream);
/* The socket has the value from a connection before, so that it need not be set. Its thread. */
bool shunt_spare_option_has(struct shunt_stream *stream, int level, int name, int value);
/* The socket has taken the value. Its thread. */
void shunt_spare_option_note(struct shunt_stream *stream, int level, int name, int value);
/* Before the program asks for an option's value: the socket has that of a new connection. Its thread; errno is kept. */
void shunt_spare_option_shows(struct shunt_stream *stream, int level, int name);
/* The same for several (shunt_spare_option_bit), before the socket is another process's, too. tx.lock is free. */
void shunt_spare_option_freshen(struct shunt_stream *stream, uint16_t which);
#define SHUNT_SPARE_OPTION_ALL UINT16_MAX
/* All that it has set are as they were first, or will be when somebody looks. False: one is not, and the connection cannot be kept. Both locks held. */
bool shunt_spare_option_put_back(struct shunt_stream *stream);
/* The program has set no option of the fresh socket but those that a spare can be given. */
bool shunt_spare_option_may_carry(const struct shunt_stream *fresh);
/* The spare is given those that the program has set of the fresh socket `fd`. Both locks of the spare held. */
bool shunt_spare_option_carry(struct shunt_stream *fresh, int fd, struct shunt_stream *stream);
/* An earlier close() did not find SO_LINGER with a time of zero, and the program has not set it since. */
bool shunt_spare_option_lingers_not(const struct shunt_stream *stream);

#endif
