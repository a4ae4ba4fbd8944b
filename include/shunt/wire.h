/* SPDX-License-Identifier: MIT */
/*
 * The language of two processes. docs/dev/PROTOCOL.md is the prose of this file.
 *
 * Data lanes: RDMA WRITE_WITH_IMM only. The immediate is `type << 28 | stream`, with the receiver's
 * number of the stream. It has host order on the soft device, and network order in the work
 * request. DATA places its bytes in the stream's ring at `offset mod ring size`; the completion's
 * length says how many. Every other type carries one 64-bit value, placed in the stream's control
 * line at the word of that type. LANE's goes to line 0, at the word of the lane's number.
 *
 * Link channel: a SOCK_SEQPACKET Unix socket, one struct shunt_message a packet; between hosts a TCP connection.
 *
 * All values are native-endian: hosts of different byte order stay on TCP.
 */
#ifndef SHUNT_WIRE_H
#define SHUNT_WIRE_H

#include <stdint.h>

#define SHUNT_WIRE_VERSION 19
#define SHUNT_WIRE_MAGIC 0x53485431u	/* "SHT1" */

enum shunt_imm {
	SHUNT_IMM_DATA = 0,	/* length bytes of the stream */
	SHUNT_IMM_CREDIT,	/* the receiver has consumed the link's bytes up to this stream offset */
	SHUNT_IMM_UPGRADE,	/* TCP carries the bytes before this offset, the link the rest */
	SHUNT_IMM_HANDBACK,	/* the link carries the bytes before this offset, TCP the rest */
	SHUNT_IMM_SWITCHED,	/* the receiver has passed the announced switch offset */
	SHUNT_IMM_FIN,		/* the stream ends at this offset */
	SHUNT_IMM_RESET,	/* the sender's end is gone; what was delivered stays readable */
	SHUNT_IMM_RING,		/* a ring is offered: see shunt_ring_make() */
	SHUNT_IMM_RING_FROM,	/* bytes from this offset on are in the offered ring */
	SHUNT_IMM_RELEASE,	/* the sender will never name this stream again; SHUNT_RELEASE_… say more */
	SHUNT_IMM_LANE,		/* lane: receives that have been consumed and posted again, in all */
	SHUNT_IMM_BLOCKED,	/* the sender waits for credit, however little */
	SHUNT_IMM_ROUND,	/* as DATA; and before it, without a word, the bytes up to the ring's end were written */
	SHUNT_IMM_REPEAT,	/* a HANDBACK here, and TCP carries the link's bytes from this offset on, too */
	SHUNT_IMM_TYPES
};

#define SHUNT_IMM_SHIFT 28
#define SHUNT_IMM_STREAM_MASK ((1u << SHUNT_IMM_SHIFT) - 1)

static inline uint32_t shunt_imm_make(enum shunt_imm type, uint32_t stream)
{
	return (uint32_t)type << SHUNT_IMM_SHIFT | stream;
}

/*
 * Where a ring is, in one word: its key << 32 | (offset in the arena >> 12) << 6 | log2(bytes). Rings are
 * powers of two from 4 KiB, aligned to their size, and an arena has at most 32 GiB. No ring is 0.
 */
static inline uint64_t shunt_ring_make(uint32_t rkey, uint64_t offset, uint64_t bytes)
{
	return (uint64_t)rkey << 32 | offset >> 12 << 6 | (63 - __builtin_clzll(bytes));
}

static inline uint32_t shunt_ring_rkey(uint64_t ring)
{
	return (uint32_t)(ring >> 32);
}

static inline uint64_t shunt_ring_offset(uint64_t ring)
{
	return (ring & 0xffffffff) >> 6 << 12;
}

static inline uint64_t shunt_ring_bytes(uint64_t ring)
{
	return 1ull << (ring & 63);
}

/*
 * Two words of a line that its owner writes: bytes read by its program, and bytes it has accepted
 * but could not post at once. A peer whose link has died looks there to learn whether bytes were
 * lost with it.
 */
#define SHUNT_WAITERS 4	/* of the soft device, and of the descriptors of a HELLO */
#define SHUNT_CONTROL_READ 15
#define SHUNT_CONTROL_ACCEPTED 14

/*
 * Words of line 0 at a node that hands out tokens (core/qos/): the client's report, which the client writes without a
 * word. At the client: what its last FETCH_AND_ADD has fetched, which its own device writes.
 */
#define SHUNT_CONTROL_REPORT 13
#define SHUNT_CONTROL_FETCHED 12

/* Of FIN's offset: the sender's program has closed. Its RELEASE may come later. */
#define SHUNT_FIN_AND_CLOSED (1ull << 63)

/*
 * The value of RELEASE is the offset up to which the sender's program has read. With this bit the sender keeps the
 * connection. When both ends do, the acceptor says RELEASE again, with the second value: its end has begun anew, and the
 * connector may. So does its RELEASE of what has begun anew and is given up.
 */
#define SHUNT_RELEASE_AND_KEEP (1ull << 63)
#define SHUNT_RELEASE_ANEW UINT64_MAX

/* One control line: the words that the peer writes, one per type. Two cache lines. */
struct shunt_control {
	_Alignas(128) uint64_t word[16];
};

/* --- the link channel --- */

enum shunt_message_type {
	SHUNT_MSG_HELLO = 1,	/* + 2 descriptors of the soft device: segment, and what wakes the sender; perhaps + SHUNT_WAITERS, for waiters */
	SHUNT_MSG_CLAIM,
	SHUNT_MSG_ACCEPT,	/* the claim is good, the acceptor is ready to receive on the link */
	SHUNT_MSG_CONFIRM,	/* so is the claimant: both may announce upgrades */
	SHUNT_MSG_REFUSE,	/* by either, instead of ACCEPT or CONFIRM: the connection stays on TCP */
	SHUNT_MSG_LEAVE,	/* of your link's bytes I have those before `offset`: send the rest on TCP, please, for ever */
	SHUNT_MSG_LEFT,		/* done: the link will carry no more; `reason` nonzero: it cannot be done. Stream 0: no LEAVE of a dead link follows */
	SHUNT_MSG_EXPECT,	/* with nonces: I shall take yours out of TCP at the place that you have said; write it */
	SHUNT_MSG_MOCK,		/* our operator wants the stream on TCP: please send there until told otherwise */
	SHUNT_MSG_REDIRECT,	/* by the acceptor instead of ACCEPT: `onward` says which process has the connection, claim it there */
	SHUNT_MSG_KNOCK = 15,	/* on a unix channel, by both, first of all; + its credentials. The number is the same in each version */
	SHUNT_MSG_ASK,		/* within one network namespace, before CLAIM: do you hold this connection? We shall both show that we do */
	SHUNT_MSG_CHALLENGE,	/* yes; the acceptor's half of what decides what the sockets are to show */
	SHUNT_MSG_REVEAL,	/* the claimant's half, which ASK has the digest of; its socket shows the first part */
	SHUNT_MSG_SHOWN,	/* your socket shows what it should, and ours its part `round` */
	SHUNT_MSG_NONCE,	/* with nonces: mine will stand in TCP at `offset` */
	SHUNT_MSG_PROVEN,	/* I have read yours there */
	SHUNT_MSG_NO_NONCE,	/* I shall not write it, or cannot take yours out: the stream stays on TCP */
	SHUNT_MSG_QOS,		/* by the claimant, before CLAIM: I should like to be of this class; by the acceptor, before ACCEPT and again when it changes: you are, with this limit */
	SHUNT_MSG_QOS_REPORT,	/* by the acceptor: write reports until this period ends; by the claimant, once a period while it sends: tokens so far */
	SHUNT_MSG_QOS_POOL,	/* by the acceptor: tokens for all are in this word; + on the soft device its page's descriptor */
	SHUNT_MSG_QOS_PERIOD,	/* by the acceptor: a period begins, and these are your tokens */
	SHUNT_MSG_TRACE,	/* please offer rings for records of sends; or: here they are */
	SHUNT_MSG_CLOCK,	/* between hosts: what is your time? or: the answer */
	SHUNT_MSG_KIN,		/* within one host: I have forked; my relatives show `kin` at your door (struct shunt_take) */
	SHUNT_MSG_TAKE,		/* a relative of mine has the stream, and `take` is where it was: TCP for ever; LEFT is the answer */
};

/* Why an acceptor refuses; a value that the claimant does not know means what the first one means. */
enum shunt_refusal {
	SHUNT_REFUSED_NOT_HAD,	/* neither it nor a process that it has heard of has the connection */
	SHUNT_REFUSED_UNUSED,	/* its program has accepted the connection, but not used it in time */
	SHUNT_REFUSED_STRANGER,	/* as the first; and a process of another user accepts at the address */
	SHUNT_REFUSED_NO_ROOM,	/* its rings have no room, or the connection is closed */
	SHUNT_REFUSED_UNPROVEN,	/* it may not be linked any more */
	SHUNT_REFUSED_UNSEEN,	/* the acceptor's kernel does not show it the claimant's socket */
	SHUNT_REFUSED_DISPROVEN,	/* the claimant's socket does not show what it should */
	SHUNT_REFUSED_SILENT,	/* a proof has taken too long */
	SHUNT_REFUSED_ELSEWHERE,	/* across hosts: the channel has other addresses than the connection */
	SHUNT_REFUSED_RULE,	/* a rule of the acceptor leaves it on TCP */
	SHUNT_REFUSED_NO_GATE,	/* across hosts: the process that has it lets no other host in, or too many come */
};

#define SHUNT_IDENTITY_BYTES 16

/* Chance that names a process (core/base/identity.h). */
struct shunt_identity {
	uint8_t bytes[SHUNT_IDENTITY_BYTES];
};

/* A TCP connection as one end sees it; IPv4 as v4-mapped IPv6 (PF-56). Ports in network order. */
struct shunt_tuple {
	uint8_t local[16];
	uint8_t peer[16];
	uint16_t local_port;
	uint16_t peer_port;
};

#define SHUNT_NONCE_BYTES 16	/* what stands in TCP (core/stream/nonce.h) */
#define SHUNT_CHANCE_BYTES 16
#define SHUNT_LANES_MAX 8
#define SHUNT_ADDRESS_BYTES 32	/* what a kind of device tells of a QP */

/* Where the sender of a message wants the bytes of one stream. */
struct shunt_place {
	uint64_t ring_offset;	/* in the sender's arena */
	uint32_t ring_bytes;	/* a power of two */
	uint32_t stream;	/* the sender's number for the stream */
	uint32_t rkey;		/* of the memory region that the ring is in */
	uint32_t lane;		/* CLAIM: which is to carry the stream; ACCEPT: the same; else 0 */
};

struct shunt_knock {
	uint32_t magic;		/* as in HELLO, and where HELLO has it; so is the next */
	uint32_t version;
	uint32_t proves;	/* 1: connections are to be proven, because the sender could not ptrace the peer, or not the other way; or 0 */
	struct shunt_identity process;	/* the sender's */
};

/*
 * The proof of a connection (core/peer/possession.h). Each end has a number for the proof, with
 * this bit, which no stream's number has. It is the `stream` of these messages, and of the REFUSE
 * or REDIRECT that answers an ASK.
 */
#define SHUNT_PROOF_BIT 0x80000000u
#define SHUNT_PROOF_ROUNDS 8		/* of four bits each; SHOWN of this round: all parts have been seen */
#define SHUNT_DIGEST_BYTES 32

#define SHUNT_MAPS_BYTES (64u << 10)

struct shunt_hello {
	uint32_t magic;
	uint32_t version;
	uint64_t arena_address;	/* what RDMA calls the first byte of the sender's arena */
	uint64_t arena_bytes;
	uint32_t rkey;		/* of the control lines */
	uint32_t receives;	/* posted on each lane */
	uint32_t streams;	/* highest stream number plus one; control lines start the arena */
	uint32_t pid;
	uint32_t kind;		/* of device: 1 soft, 2 verbs */
	uint32_t lanes;		/* 1 to SHUNT_LANES_MAX; in the answer, no more than were offered: so many it is */
	uint16_t nonces;	/* 1: connections are proven by nonces; both ends alike; or 0 */
	uint16_t retains;	/* 1: the sender keeps what has not arrived, and sends it over TCP if the QP dies; or 0 */
	uint32_t maps;		/* soft: of the receiver's segment the sender maps so many SHUNT_MAPS_BYTES; 0: all of it, as earlier versions did */
	uint8_t address[SHUNT_LANES_MAX][SHUNT_ADDRESS_BYTES];	/* of each lane's QP */
};

#define SHUNT_QOS_NAME 32	/* of a class, with its final 0 */

struct shunt_qos_word { /* what a type does not name is 0 */
	uint64_t rate;	/* QOS: thousandths of a token a second, of the claimant; 0: any */
	uint64_t taken;	/* QOS_REPORT: tokens, since the link is up */
	uint64_t waits;	/* QOS_REPORT: how often bytes have had to wait for tokens */
	uint32_t period_ms;	/* QOS: of the reports */
	char name[SHUNT_QOS_NAME]; /* QOS: letters, digits, '.', '-' and '_', then 0 */
};

/* A word of memory that several clients change by FETCH_AND_ADD: core/qos/pool.h. */
struct shunt_qos_pool {
	uint64_t address;	/* a multiple of 8 */
	uint32_t rkey;
	uint32_t zero;
};

struct shunt_qos_grant {	/* QOS_REPORT of an acceptor: the number alone */
	uint64_t rate;	/* of all tokens, as in shunt_qos_word */
	uint32_t number;	/* below 2^16, one more than that of the last one, or 0 behind the highest */
	uint32_t period_ms;	/* 0: no tokens are needed any more, and all else is 0 */
	uint32_t reservation;	/* tokens of this client alone */
	uint32_t batch;	/* tokens that it takes from the pool at a time */
	uint32_t paced;	/* 1: the reservation is to be spent in proportion to time; or 0 */
	uint32_t zero;
};

/*
 * Records of sends that are followed (core/trace/). Each lane has a ring of them in the receiver's
 * arena. A record is written by a WRITE without a word, on the stream's lane, before the last byte
 * of its send. So it is there when that byte is. When the sender knows more, it writes the last two
 * words again.
 */
#define SHUNT_TRACE_SLOTS 64	/* of a ring; record `number` is in slot number mod this */
#define SHUNT_TRACE_ANSWER 0x80000000u	/* in `bytes`: the program had read a followed send, whose id this is, on this stream */

struct shunt_trace_record {	/* 64 bytes; times in ns of the sender's CLOCK_MONOTONIC */
	uint64_t number;	/* of the lane's records, from 1 */
	uint64_t id;
	uint64_t end;		/* stream offset behind the last byte of the send */
	uint32_t stream;	/* the receiver's number */
	uint32_t bytes;		/* of the send, at most 2^31 - 1; and SHUNT_TRACE_ANSWER */
	uint64_t called;	/* the program's call began */
	uint64_t accepted;	/* the call ended before the last byte was posted; 0: it was posted at once */
	uint64_t posted;	/* the last byte was given to the device */
	uint64_t placed;	/* the device had it in the receiver's memory; 0: not known yet; perhaps SHUNT_TRACE_LATEST */
};

#define SHUNT_TRACE_LATEST (1ull << 63)	/* in `placed`: a completion has told, which may have waited for a poll of the sender */
#define SHUNT_TRACE_LATER 48	/* offset of `posted`, from where on a record is written again */

struct shunt_trace_rings {
	uint64_t offset;	/* in the sender's arena: as that of a ring of streams */
	uint32_t rkey;
	uint32_t lanes;		/* rings that are offered, one behind the other; 0: please offer */
};

struct shunt_clock_word {	/* ns of CLOCK_MONOTONIC */
	uint64_t asked;		/* of the process that asks */
	uint64_t heard;		/* of the process that answers: when the question came; 0 in a question */
	uint64_t told;		/* of the same: when the answer went; 0 in a question */
};

#define SHUNT_TICKET_BYTES 16

#define SHUNT_KIN_BYTES 16

/* Where the end of a stream stands that a relative takes over: as it was at the fork, and has been since. */
struct shunt_stand {
	uint64_t offset;	/* its reader: the link's bytes from here on come again over TCP */
	uint64_t announced;	/* UPGRADEs and HANDBACKs of its sender */
	uint64_t sent;		/* behind its last byte on the link: TCP has the rest; all ones: its direction is on TCP already */
};

/* To the door of the link's other process, in one datagram; the answer is a struct shunt_yielded. */
struct shunt_take {
	uint32_t magic;
	uint32_t version;
	uint32_t owner;		/* process id of the process whose link it is */
	uint32_t stream;	/* the receiver's number */
	uint8_t kin[SHUNT_KIN_BYTES];	/* as KIN of that process has it */
	struct shunt_stand stand;
};

struct shunt_yielded {
	uint32_t magic;
	uint32_t done;		/* 1: the stream is TCP's */
};

struct shunt_onward {	/* where a claim is to be made; between hosts with the way in, else with 0 */
	struct shunt_identity process;
	uint8_t ticket[SHUNT_TICKET_BYTES];	/* good once, at that process's gate */
	uint16_t gate;	/* its TCP port, network order */
};

/* A stream leaves the link. */
struct shunt_leave {
	uint64_t offset;	/* behind the last byte of the link that the program has read; DEAD: that the link has delivered */
	uint64_t announced;	/* UPGRADEs and HANDBACKs of the sender so far: to be seen before the answer */
	uint64_t heard;		/* DEAD: UPGRADEs and HANDBACKs of the receiver that have come; else 0, as are the next two */
	uint64_t sent;		/* DEAD: behind the last byte that the sender has given to the link; 0 none */
	uint32_t how;		/* enum shunt_leave_how */
};

enum shunt_leave_how {
	SHUNT_LEAVE_ONE,	/* this stream, and LEFT is the answer */
	SHUNT_LEAVE_DEAD,	/* the queue pair is dead, so all streams do: each end says so of each, and then LEFT of stream 0 */
	SHUNT_LEAVE_ALONE,	/* as DEAD, but the sender does not wait for the peer's, and sends nothing before `sent` again */
};

struct shunt_message {
	uint32_t type;
	uint32_t stream;	/* the receiver's number; 0 in KNOCK, HELLO, CLAIM, ASK, QOS…, TRACE, CLOCK, KIN */
	union {
		struct shunt_hello hello;
		struct shunt_knock knock;
		struct {	/* ASK, CHALLENGE, REVEAL, SHOWN; what a type does not name is 0 */
			uint32_t number;	/* ASK, CHALLENGE: the sender's for this proof */
			uint32_t round;		/* SHOWN: up to SHUNT_PROOF_ROUNDS */
			struct shunt_tuple tuple;	/* ASK */
			uint64_t network;		/* ASK: as in CLAIM */
			uint8_t bytes[SHUNT_DIGEST_BYTES];	/* ASK: the digest of what REVEAL has; CHALLENGE, REVEAL: chance */
		} proof;
		struct {
			struct shunt_tuple tuple;
			struct shunt_place place;
			uint8_t chance[SHUNT_CHANCE_BYTES];	/* with nonces: of what decides them; else 0 */
			uint64_t network;	/* SO_NETNS_COOKIE of its socket; 0: not told */
		} claim;
		struct {
			struct shunt_place place;
			uint8_t chance[SHUNT_CHANCE_BYTES];	/* as in CLAIM */
			uint32_t tcp;	/* as MOCK */
		} accept;
		struct {	/* REFUSE by the acceptor */
			uint64_t sent;	/* messages that it has sent on the stream's lane; some may name the stream */
			uint32_t why;	/* enum shunt_refusal; for people */
		};
		struct shunt_leave leave;
		struct {
			uint64_t offset;
		} nonce;
		uint32_t reason;
		uint32_t tcp;	/* MOCK, CONFIRM: 1, or 0 for otherwise */
		struct shunt_onward onward;	/* REDIRECT */
		struct shunt_qos_word qos;
		struct shunt_qos_pool pool;
		struct shunt_qos_grant period;
		struct shunt_trace_rings rings;
		struct shunt_clock_word clock;
		uint8_t kin[SHUNT_KIN_BYTES];	/* chance */
		struct shunt_stand take;
	};
};

/* --- the have channel: between processes that accept connections at one address --- */

enum shunt_have_type {
	SHUNT_HAVE_JOIN = 1, /* first of all */
	SHUNT_HAVE_TUPLE, /* the sender has accepted and used this connection */
	SHUNT_HAVE_WANTED, /* by the owner: such messages are wanted from now on (`on` 1), or not (0) */
	SHUNT_HAVE_INVITE, /* by the owner: a process of another host comes to the receiver's gate for `tuple` */
	SHUNT_HAVE_QUESTION, /* to the owner, first and last: another host has asked the sender who listens there */
	SHUNT_HAVE_ANSWER, /* by the owner: the answer to a QUESTION */
};

/* Bytes that a question or an answer may have (core/peer/remote_words.h). */
#define SHUNT_HAVE_WORDS 64

struct shunt_invitation {	/* the guest's ticket, and how packets go to its host: core/base/verbs.h */
	uint8_t ticket[SHUNT_TICKET_BYTES];
	char device[64];	/* with its final 0 */
	uint8_t gid[16];
	uint16_t pkey, slid, dlid;
	uint8_t port, sl, traffic_class, hop_limit, mtu;
	uint8_t zero[5];
};

struct shunt_have_words { /* of a question to this host, or of its answer */
	uint32_t bytes; /* of the next that count */
	uint8_t words[SHUNT_HAVE_WORDS];
};

struct shunt_have {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t on;
	/* TUPLE: as the sender sees it; INVITE: as the receiver does; QUESTION: the address asked for, and the asker's. */
	struct shunt_tuple tuple;
	struct shunt_identity process;	/* TUPLE: the sender's: claims of the connection are sent there */
	/* TUPLE: the TCP port of the sender's gate for other hosts, network order; 0: it has none. */
	uint32_t gate;
	union {
		struct shunt_invitation invitation; /* INVITE */
		struct shunt_have_words said; /* QUESTION, ANSWER */
	};
};

#endif
