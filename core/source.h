/*
 * What the service thread's epoll can report; a member of whoever owns the descriptor.
 */
#ifndef SHUNT_CORE_SOURCE_H
#define SHUNT_CORE_SOURCE_H

#include <stddef.h>

enum shunt_source_kind {
	SHUNT_SOURCE_WAKE,
	SHUNT_SOURCE_RENDEZVOUS,
	SHUNT_SOURCE_STATISTICS,
	SHUNT_SOURCE_ADMIN,
	SHUNT_SOURCE_COMMAND,
	SHUNT_SOURCE_LINK,
	SHUNT_SOURCE_COMEBACK,
	SHUNT_SOURCE_RIGHTS,
	SHUNT_SOURCE_STREAM,
	SHUNT_SOURCE_PROOF,
	SHUNT_SOURCE_DEVICE,
	SHUNT_SOURCE_CM,
	SHUNT_SOURCE_GATE,
	SHUNT_SOURCE_HAVE,
	SHUNT_SOURCE_TELLER,
	SHUNT_SOURCE_OWNER,
};

struct shunt_source {
	enum shunt_source_kind kind;
};

/* What `source` is the member of. */
#define shunt_source_owner(source, type, member) ((type *)((char *)(source) - offsetof(type, member)))

#endif
