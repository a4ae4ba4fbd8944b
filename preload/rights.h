/* SPDX-License-Identifier: MIT */
/* Streams that another program will get, which knows nothing of what we know about them. */
#ifndef SHUNT_PRELOAD_RIGHTS_H
#define SHUNT_PRELOAD_RIGHTS_H

#include "preload/process.h"

/* Gives the stream behind fd back to the kernel for good, if it is one. errno is kept. */
void shunt_rights_retire(int fd, enum shunt_cause cause);
/* The same for what a message carries as SCM_RIGHTS. */
void shunt_rights_message(const struct msghdr *message);
/* The same for all streams, before a ring of io_uring may see them. */
void shunt_rights_ring(void);
/* The same for everything that the next program will find open after exec or spawn. */
void shunt_rights_exec(void);
void shunt_rights_spawn(void);

#endif
