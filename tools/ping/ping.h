/* SPDX-License-Identifier: MIT */
/*
 * shunt ping: the way to a host, step by step. Targets (ping_target.c) are asked step by step: the
 * machine at one end (ping_machine.c), the kernel's round trip (ping_tcp.c), the rendezvous
 * (ping_ask.c). The shunted ends are ping_client.c and ping_server.c, as `shunt ping-end`.
 * The cause of a missing link is found in ping_cause.c. All steps of a target are in ping_way.c,
 * text and JSON in ping_show.c. The mesh of a list of hosts is in ping_matrix.c, ping_table.c and
 * ping_page.c; ping.c has the options.
 */
#ifndef SHUNT_TOOLS_PING_H
#define SHUNT_TOOLS_PING_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include "core/base/config.h"

#define PING_PORT 4792 /* where `shunt ping --serve` answers unless told otherwise */
#define PING_COUNT_MAX 1000
#define PING_NEVER UINT64_MAX /* a time that was not measured */

union ping_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct ping_options {
	unsigned int count; /* samples of each time */
	unsigned int interval_ms; /* between two of them */
	unsigned int wait_ms; /* the longest that a step may take */
	const char *from; /* address of ours that connections begin at; NULL: the kernel's choice */
	char program[4096]; /* this command */
	char library[4096]; /* libshunt.so */
	char scratch[4096]; /* a folder for files of the shunted end; "": none yet */
	struct shunt_config config; /* as the shunted end will have it */
};

/* ---- ping_target.c ---- */

#define PING_TARGET_MAX 300 /* bytes of HOST[:PORT] */
#define PING_ADDRESS_TEXT 64

struct ping_target {
	char text[PING_TARGET_MAX]; /* as it was given */
	char host[PING_TARGET_MAX];
	uint16_t port; /* host order */
	bool given; /* the port was: anything may listen there */
	union ping_address address;
	const char *why; /* it has no address, because */
};

/* HOST, HOST:PORT, [V6]:PORT or an IPv6 address: 0, or -1 where it is none of them. */
int ping_target_parse(struct ping_target *target, const char *text);
/* Finds its address; else `why` says why there is none. */
void ping_target_resolve(struct ping_target *target);
/* A numeric address, with port 0. 0 or -1. */
int ping_address_parse(const char *text, union ping_address *address);
socklen_t ping_address_length(const union ping_address *address);
const char *ping_address_text(const union ping_address *address, char text[PING_ADDRESS_TEXT]);
/* Is it one of this network namespace's? */
bool ping_address_is_ours(const union ping_address *address);
uint64_t ping_median(uint64_t *values, size_t count);

/* ---- ping_machine.c ---- */

/* RDMA devices and limits of this machine, and what the variables say: JSON for the other end. */
json_t *ping_machine(const struct shunt_config *config);
/* The name of the interface by which packets to `to` leave, or "". */
void ping_interface(const union ping_address *to, const char *from, char name[32]);
/* The RDMA device over a network interface, of ping_machine()'s; NULL: none. */
const json_t *ping_device_on(const json_t *machine, const char *interface);
const char *ping_json_text(const json_t *object, const char *key);

/* ---- ping_tcp.c ---- */

struct ping_tcp {
	int error; /* 0, or an errno */
	uint64_t connect_ns; /* median: SYN and its answer, and what this host needs */
	uint64_t rtt_ns; /* as the kernel measured it, TCP_INFO; median */
};

void ping_tcp(const struct ping_target *target, const struct ping_options *options,
	      struct ping_tcp *tcp);
/* A connection of the target's address, or -errno. */
int ping_connect(const union ping_address *to, const char *from, unsigned int wait_ms);

/* ---- ping_ask.c ---- */

enum ping_answer {
	PING_UNASKED, /* there is no way to ask: `why` */
	PING_SOUND,
	PING_NOBODY, /* no shunted process listens there */
	PING_SILENT,
	PING_NO_DEVICE, /* no RDMA device leads there */
	PING_OTHER_VERSION,
	PING_OTHER_KEY,
	PING_NO_KEY, /* here */
	PING_SHUT, /* somebody hung up: another user's (SHUNT_TRUST) */
};

struct ping_rendezvous {
	enum ping_answer answer;
	bool host; /* asked by a name of this host; else by the connection manager */
	uint32_t version; /* of the wire; 0: not known */
	uint64_t ns; /* median of those that answered */
	char device[64]; /* by which the connection manager asked */
	char why[160];
};

void ping_ask(const struct ping_target *target, const struct ping_options *options,
	      struct ping_rendezvous *rendezvous);

/* ---- ping_way.c: one target ---- */

enum ping_verdict { PING_LINK, PING_TCP, PING_UNREACHABLE };

#define PING_SAYS_MAX 512

struct ping_cause {
	const char *key; /* a word for scripts */
	char says[PING_SAYS_MAX];
	const char *help; /* an advice, or "" */
};

struct ping_way {
	struct ping_target target;
	struct ping_tcp tcp;
	struct ping_rendezvous rendezvous;
	json_t *here; /* ping_machine() */
	json_t *end; /* what the shunted end here found (ping_client.c); NULL: it did not run */
	const json_t *far; /* what the answering end said of itself, part of `end`; NULL */
	char interface[32];
	enum ping_verdict verdict;
	struct ping_cause cause;
};

/* 0, or -1 after saying why nothing could be measured. */
int ping_way(struct ping_way *way, const struct ping_options *options);
void ping_way_free(struct ping_way *way);
/* ping_cause.c: the verdict and its cause. */
void ping_cause(struct ping_way *way);

/* A time in the shunted end's JSON, or PING_NEVER. */
uint64_t ping_time(const json_t *object, const char *key);

/* ---- ping_show.c ---- */

void ping_show(const struct ping_way *way);
json_t *ping_json(const struct ping_way *way);
const char *ping_time_text(uint64_t ns, char text[24]);
extern const char *const ping_verdict_words[];

/* ---- ping_matrix.c: the exit status ---- */

struct ping_matrix_options {
	const char *file;
	const char *ssh; /* what is put before a host and a command */
	const char *html; /* NULL: no page */
	bool json;
};

int ping_matrix(const struct ping_matrix_options *matrix, struct ping_options *options);

/* The cell from one host to another. */
struct ping_cell {
	bool self, known;
	enum ping_verdict verdict;
	uint64_t ns; /* the time that is shown */
	char cause[32];
	char says[PING_SAYS_MAX];
};

struct ping_mesh {
	size_t count;
	char (*names)[PING_TARGET_MAX];
	struct ping_cell *cells; /* of row * count + column */
};

/* ping_table.c, ping_page.c */
void ping_table(const struct ping_mesh *mesh, bool colours);
json_t *ping_mesh_json(const struct ping_mesh *mesh);
int ping_page(const struct ping_mesh *mesh, const char *path);

/* ---- the shunted ends: arguments as ping_way.c and ping.c give them; the exit status ---- */

int ping_client(int argc, char **argv);
int ping_server(int argc, char **argv);
/* Becomes the answering end: does not return where that works. */
int ping_serve(const char *where);

/* Words between client and server, on a connection that begins with the server's banner. */
#define PING_BANNER "shunt-ping 1 " /* then JSON of one line */
#define PING_BANNER_MAX 65536
#define PING_BYTES_MAX (256u << 10) /* of an echo */

struct ping_request {
	uint8_t magic[3]; /* "SPG" */
	uint8_t kind; /* 'e': the bytes behind it come back; 's': what the server knows of the connection */
	uint32_t bytes; /* behind it, network order */
};

#define PING_MAGIC "SPG"

#endif
