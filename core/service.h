/*
 * The service thread: rendezvous, claims, links, statistics. One per process, started when a listener
 * offers a rendezvous or a connection asks for one. Data never wakes it (DESIGN 7).
 *
 * Everything in struct shunt_service belongs to that thread but the fields named otherwise.
 */
#ifndef SHUNT_CORE_SERVICE_H
#define SHUNT_CORE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/un.h>
#include "core/engine.h"
#include "core/sleepcost.h"
#include "core/source.h"

struct shunt_name {		/* an abstract Unix name */
	uint8_t length;
	char text[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

struct cm_listener;
struct shunt_abroad;

struct shunt_rendezvous {	/* what we offer for one listening address */
	struct shunt_source source;
	int fd;
	struct shunt_stream *listener;
	struct shunt_service *service;
	struct cm_listener *abroad;	/* the same for other hosts; service thread, as is the next */
	bool tried_abroad;
	struct shunt_rendezvous *next;
};

struct shunt_parked {		/* a claim whose connection the program has not used yet */
	struct shunt_link *link;
	struct shunt_tuple tuple;
	struct shunt_place place;
	uint8_t nonce[SHUNT_NONCE_BYTES];
	uint64_t deadline;
	struct shunt_parked *next;
};

struct shunt_refused {		/* an address where nobody answers for a while */
	struct shunt_name name;
	uint64_t until;
};

#define SHUNT_REFUSED_SLOTS 64

struct shunt_service {
	struct shunt_source wake_source;
	struct shunt_engine *engine;
	int epfd;
	int wake_fd;
	pthread_t thread;
	bool threaded;
	struct shunt_sleepcost sleepcost;
	_Atomic bool stopping;
	_Atomic bool watching;		/* any thread: a lane waits for credit */
	_Atomic bool proving;		/* any thread: a nonce is to be asked for */
	_Atomic bool listening;		/* any thread: a rendezvous has been added or withdrawn */
	_Atomic bool woken;		/* any thread: wake_fd has been written */
	_Atomic bool gathering;		/* any thread: a stream holds bytes for more that was announced */
	_Atomic bool trimming;		/* any thread: there may be memory to let go */

	struct shunt_lock inbox_lock;	/* of the next three; any thread */
	struct shunt_stream *offers;	/* used for the first time */
	struct shunt_stream *connecting;/* connect() has not finished */
	struct shunt_rendezvous *rendezvous;

	struct shunt_stream *asked;	/* by their peers to go back to the kernel; not answered yet */
	_Atomic uint32_t refusing;	/* streams of which the program wants nothing more: see tx.c */
	_Atomic uint32_t resends;	/* streams that wait for room on their sockets */

	uint64_t gather_look;		/* when to look for streams that have gathered long enough */
	uint64_t trim_look;		/* and for memory that is not needed */

	struct shunt_link *links;
	struct shunt_abroad *abroad;	/* NULL: never needed */
	struct shunt_parked *parked;
	_Atomic uint32_t parked_count;
	struct shunt_refused refused[SHUNT_REFUSED_SLOTS];
	uint32_t refused_next;

	struct shunt_source statistics_source;
	int statistics_fd;
	struct shunt_source rights_source;
	int rights_fd;
};

void shunt_service_want_write(struct shunt_link *link, bool on);
void shunt_service_forget(struct shunt_link *link);
int shunt_service_add(struct shunt_service *service, int fd, struct shunt_source *source);

/* --- claim.c: which connections move to a link --- */

/* A message of the peer. fds stay the caller's. */
void shunt_claim_message(struct shunt_link *link, const struct shunt_message *message,
			 const int *fds, int count);
void shunt_claim_link_up(struct shunt_link *link);
void shunt_claim_link_down(struct shunt_link *link);
/* Everything posted on the link's lane has arrived. */
void shunt_claim_settled(struct shunt_link *link);
/* A stream the program has just used: claim it, or see whether it has been claimed. Takes the
 * caller's hold. */
void shunt_claim_offer(struct shunt_service *service, struct shunt_stream *stream);
/* The stream is to be carried by this link. Service thread. */
void shunt_claim_on(struct shunt_link *link, struct shunt_stream *stream);
/* It stays on TCP, and so do others to that address for a while. */
void shunt_claim_fails(struct shunt_service *service, struct shunt_stream *stream, const char *reason);
/* Whatever has waited too long. Milliseconds until the next look, -1: nothing waits. */
int shunt_claim_tick(struct shunt_service *service);

/* --- trim.c: memory that is not needed --- */

/* Milliseconds until the next look, -1: nothing is to be let go. */
int shunt_trim_tick(struct shunt_service *service);

/* --- rendezvous.c: finding the peer's process --- */

/* Both ends of a connection, as `fd` has them. 0 or -errno (-ENOTCONN: still connecting). */
int shunt_rendezvous_tuple(struct shunt_engine *engine, int fd, struct shunt_tuple *tuple);
bool shunt_rendezvous_is_local(struct shunt_engine *engine, const struct shunt_tuple *tuple);
/* A channel to the process that offers a rendezvous for the tuple's peer, or -errno. */
int shunt_rendezvous_connect(struct shunt_engine *engine, const struct shunt_tuple *tuple,
			     struct shunt_name *name);
/* The name of the rendezvous for a peer address; `any`: for its port on every address. */
void shunt_rendezvous_name(const uint8_t address[16], uint16_t port, bool any,
			   struct shunt_name *name);
/* Offers a rendezvous for the address `fd` listens on: a listening private descriptor, or -errno. */
int shunt_rendezvous_offer(struct shunt_engine *engine, int fd);
/* The next peer that has come, or -errno. */
int shunt_rendezvous_accept(struct shunt_engine *engine, int fd);

#endif
