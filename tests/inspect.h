/* SPDX-License-Identifier: MIT */
/*
 * Questions that tests ask of a stream, and moves that no call of it makes. Tests name no field of a stream's two
 * directions, its switch, its proof and its end: they ask here, and core/stream/stream.h may be rearranged.
 * A function takes no lock unless its comment says so.
 */
#ifndef TESTS_INSPECT_H
#define TESTS_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/stream/stream.h"

struct shunt_lane;
struct shunt_link;
struct shunt_pin;

/* --- the stream as a whole --- */

enum shunt_state stream_state(const struct shunt_stream *stream);
/* NULL: it has no seat on a link. */
struct shunt_link *stream_link(const struct shunt_stream *stream);
struct shunt_lane *stream_lane(const struct shunt_stream *stream);
/* The peer is known to have attached it, too. */
bool stream_is_agreed(const struct shunt_stream *stream);
/* RELEASE has come: the peer has closed. */
bool stream_is_released(const struct shunt_stream *stream);
/* Its way back to the kernel, as this end asked for it, and as the peer did. */
enum shunt_retiring stream_retiring(const struct shunt_stream *stream);
enum shunt_asked stream_asked(const struct shunt_stream *stream);
/* The locks of the two directions, for calls that want one held. */
struct shunt_lock *stream_sender_lock(struct shunt_stream *stream);
struct shunt_lock *stream_reader_lock(struct shunt_stream *stream);
/* All that a test which has failed may want to know, in lines that begin with `prefix`. */
void stream_print(FILE *file, const char *prefix, const struct shunt_stream *stream);

/* --- the switch between the two tracks --- */

bool stream_sends_on_link(const struct shunt_stream *stream);
bool stream_receives_on_link(const struct shunt_stream *stream);
/* Both directions are on the link, and the peer has passed the switch of ours. */
bool stream_is_on_link(const struct shunt_stream *stream);
/* Switches that this end has announced: all, and those that the peer has not passed. */
uint64_t stream_switches_announced(const struct shunt_stream *stream);
unsigned int stream_switches_unpassed(const struct shunt_stream *stream);
/* Switches of the peer that have come. */
uint64_t stream_switches_heard(const struct shunt_stream *stream);
/* The last HANDBACK has been given to the queue pair. */
bool stream_handback_is_posted(const struct shunt_stream *stream);
/* SHUNT_HELD_... of mock.h: what keeps the sender on TCP. */
uint8_t stream_held(const struct shunt_stream *stream);

/* Nothing of the stream is under way: both directions are proven, open and empty. */
void stream_set_idle(struct shunt_stream *stream);
/* The program has sent so many bytes, of which none is posted. */
void stream_set_staged(struct shunt_stream *stream, uint64_t bytes);
/* The next send shall be on that track. */
void stream_want_link(struct shunt_stream *stream, bool on);
/* The same, and the direction changes tracks now if it can. Takes the sender's lock. */
void stream_turn(struct shunt_stream *stream, bool on);
/* UPGRADE is announced, and the direction stays on TCP. Takes the sender's lock. */
void stream_announce_upgrade_only(struct shunt_stream *stream);
/* FIN is announced behind what was sent. Takes the sender's lock. */
void stream_announce_end(struct shunt_stream *stream);
/* The lane is asked for some work of the stream, enum shunt_work. */
void stream_request(struct shunt_stream *stream, uint32_t work);

/* --- bytes --- */

enum stream_offset {
	STREAM_READ,		/* behind what the program has got */
	STREAM_ARRIVED,		/* behind what the link has placed */
	STREAM_SENT,		/* behind what was accepted from the program */
	STREAM_POSTED,		/* behind what the queue pair was given, or is about to be */
	STREAM_PEER_READ,	/* up to which the peer's credit has come */
	STREAM_UPGRADED,	/* of the last UPGRADE announced */
	STREAM_HANDED_BACK,	/* of the last HANDBACK announced */
	STREAM_BOUNDARY,	/* where the peer leaves the track that is read; SHUNT_NEVER: nowhere yet */
	STREAM_RING_END,	/* up to which the ring has room for the peer, when all that came is read */
};

uint64_t stream_offset(const struct shunt_stream *stream, enum stream_offset of);

enum stream_memory {
	STREAM_RING,		/* this end's, into which the peer writes */
	STREAM_OFFERED_RING,	/* the one that was offered to the peer instead; 0: none */
	STREAM_PEER_RING,	/* the peer's, as the sender uses it */
	STREAM_STAGE,		/* this end's, for what could not be posted at once; 0: none */
};

uint32_t stream_memory(const struct shunt_stream *stream, enum stream_memory of);
/* The peer has offered another ring, which is not used yet. */
bool stream_has_offer(const struct shunt_stream *stream);
/* Bytes that the peer's ring has room for. */
uint64_t stream_room(const struct shunt_stream *stream);
/* Bytes wait in the stage, and the ring has no room for them. */
bool stream_waits_for_room(const struct shunt_stream *stream);
/* Bytes that TCP is to get first wait for room there. */
bool stream_owes_tcp(const struct shunt_stream *stream);
/* The stage takes bytes that the ring has no room for. */
bool stream_stage_is_open(const struct shunt_stream *stream);
/* All that was staged has been posted. */
bool stream_is_posted(const struct shunt_stream *stream);
/* A send is registered where it lies in the program's memory. */
bool stream_is_pinned(const struct shunt_stream *stream);
uint64_t stream_sent_by_link(const struct shunt_stream *stream);
/* Bytes that a link has brought of a stream whose former link has died. 0: there was none, or this one is dead, too. */
uint64_t stream_carried_again(const struct shunt_stream *stream);

/* A stream that has done nothing yet: TCP has carried so much of either direction before. */
void stream_start_at(struct shunt_stream *stream, uint64_t out, uint64_t in);
/* As if the link had carried so much more of what it sends. False: the direction cannot be so, and nothing is changed. */
bool stream_age(struct shunt_stream *stream, uint64_t bytes);
/* As if credit had come up to there. */
void stream_peer_has_read(struct shunt_stream *stream, uint64_t offset);
/* As if a send were under way from there; NULL: none. */
void stream_pin(struct shunt_stream *stream, struct shunt_pin *pin);
/* As if the device used what was staged before, and could not be waited for. */
void stream_fill_stage(struct shunt_stream *stream);
/* The key of the peer's ring is another. */
void stream_spoil_key(struct shunt_stream *stream);
/* Frees the memory of all seats, and what it keeps for the next ones. */
void seats_free(struct shunt_engine *engine);

/* --- a stream without a peer --- */

/* An open stream on `lane` that sends on the link, and receives on it or on TCP. */
void stream_make(struct shunt_stream *stream, struct shunt_seat *seat, struct shunt_lane *lane,
		 bool receives_on_link);
/* One more byte has come by the link. */
void stream_arrive(struct shunt_stream *stream);
/* The program takes what has come. Returns how much. */
uint64_t stream_take_all(struct shunt_stream *stream);

/* --- the end --- */

/* Something is to be written to TCP before anything else. */
/* It has come from another process, and been on a link since. */
bool stream_came_to_link(const struct shunt_stream *stream);
bool stream_resends(const struct shunt_stream *stream);
/* The end of the direction is said on a descriptor of its own, when FIN has arrived. */
bool stream_keeps_end(const struct shunt_stream *stream);
/* Nothing can be sent any more: EPIPE. */
bool stream_is_broken(const struct shunt_stream *stream);
/* A reset is to be reported as this; 0: none, or it has been. */
int stream_error(const struct shunt_stream *stream);
/* A reset has answered data that nobody wants. */
bool stream_has_refused(const struct shunt_stream *stream);

/* As if the stream had that state. */
void stream_set_state(struct shunt_stream *stream, enum shunt_state state);

/* --- the proof: nonces in TCP --- */

/* One of the two nonces: this end's, or the peer's. */
enum stream_nonce { STREAM_SHOWS, STREAM_READS };

enum shunt_show stream_show(const struct shunt_stream *stream);
enum shunt_proof stream_proof(const struct shunt_stream *stream);
/* SHUNT_NONCE_BYTES of it. */
const uint8_t *stream_nonce(const struct shunt_stream *stream, enum stream_nonce whose);
/* How many bytes of it TCP has carried; of what is read also those that turned out to be the program's. */
uint64_t stream_nonce_moved(const struct shunt_stream *stream, enum stream_nonce whose);
/* The service thread's copy of the socket, while it waits for the nonce; -1: none. */
int stream_proof_fd(const struct shunt_stream *stream);
void stream_set_proof(struct shunt_stream *stream, enum shunt_proof proof);

#endif
