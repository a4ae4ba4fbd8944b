/*
 * What the service thread's epoll can report; the first member of whoever owns the descriptor.
 */
#ifndef SHUNT_CORE_SOURCE_H
#define SHUNT_CORE_SOURCE_H

enum shunt_source_kind {
	SHUNT_SOURCE_WAKE,
	SHUNT_SOURCE_RENDEZVOUS,
	SHUNT_SOURCE_STATISTICS,
	SHUNT_SOURCE_LINK,
	SHUNT_SOURCE_RIGHTS,
	SHUNT_SOURCE_STREAM,
	SHUNT_SOURCE_PROOF,
	SHUNT_SOURCE_DEVICE,
	SHUNT_SOURCE_CM,
	SHUNT_SOURCE_GATE,
};

struct shunt_source {
	enum shunt_source_kind kind;
};

#endif
