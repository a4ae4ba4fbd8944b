/* SPDX-License-Identifier: MIT */
#include "core/fd/uring_sq.h"

enum { NOP128 = 63, URING_CMD128 = 64 };	/* of a mixed queue: these have two entries */

/* By opcode, as in linux/io_uring.h of 6.19. */
static const uint8_t kinds[] = {
	[1] = SHUNT_SQE_READS, /* READV */
	[2] = SHUNT_SQE_USES, /* WRITEV */
	[4] = SHUNT_SQE_READS, /* READ_FIXED */
	[5] = SHUNT_SQE_USES, /* WRITE_FIXED */
	[6] = SHUNT_SQE_POLLS, /* POLL_ADD */
	[9] = SHUNT_SQE_SENDS, /* SENDMSG */
	[10] = SHUNT_SQE_READS, /* RECVMSG */
	[13] = SHUNT_SQE_USES, /* ACCEPT */
	[16] = SHUNT_SQE_USES, /* CONNECT */
	[19] = SHUNT_SQE_CLOSES, /* CLOSE */
	[20] = SHUNT_SQE_REGISTERS, /* FILES_UPDATE */
	[22] = SHUNT_SQE_READS, /* READ */
	[23] = SHUNT_SQE_USES, /* WRITE */
	[26] = SHUNT_SQE_USES, /* SEND */
	[27] = SHUNT_SQE_READS, /* RECV */
	[SHUNT_SQE_EPOLL_CTL] = SHUNT_SQE_CONTROLS,
	[30] = SHUNT_SQE_SPLICES, /* SPLICE */
	[33] = SHUNT_SQE_SPLICES, /* TEE */
	[34] = SHUNT_SQE_USES, /* SHUTDOWN */
	[46] = SHUNT_SQE_USES, /* URING_CMD: options and queues of sockets */
	[47] = SHUNT_SQE_USES, /* SEND_ZC */
	[48] = SHUNT_SQE_SENDS, /* SENDMSG_ZC */
	[49] = SHUNT_SQE_READS, /* READ_MULTISHOT */
	[56] = SHUNT_SQE_USES, /* BIND */
	[57] = SHUNT_SQE_USES, /* LISTEN */
	[58] = SHUNT_SQE_READS, /* RECV_ZC */
	[59] = SHUNT_SQE_POLLS, /* EPOLL_WAIT */
	[60] = SHUNT_SQE_READS, /* READV_FIXED */
	[61] = SHUNT_SQE_USES, /* WRITEV_FIXED */
	[URING_CMD128] = SHUNT_SQE_USES,
};

enum shunt_sqe_kind shunt_uring_sq_kind(uint8_t opcode)
{
	return opcode < sizeof(kinds) ? kinds[opcode] : SHUNT_SQE_UNKNOWN;
}

void shunt_uring_sq_begin(struct shunt_uring_walk *walk, const struct shunt_uring_sq *sq,
			  uint32_t from, uint32_t to)
{
	walk->sq = sq;
	walk->at = from;
	walk->end = to - from > sq->count ? from + sq->count : to;
	walk->linked = false;
}

/* The first word of an entry. */
struct begins {
	uint8_t opcode, flags;
	uint16_t ioprio;
	int32_t fd;
};

/* Where the entry at this position lies; NULL: the kernel drops it. False: the array is not there. */
static inline bool locate(const struct shunt_uring_sq *sq, uint32_t position, unsigned char **where)
{
	uint32_t index = position & (sq->count - 1);

	if (sq->array && !shunt_uring_sq_load(sq->array + index, &index))
		return false;
	*where = index < sq->count ? sq->entries + (size_t)index * sq->stride : NULL;
	return true;
}

/* Kinds whose number decides. The others are rare, and have more than one, or none that tells. */
static inline bool by_number(enum shunt_sqe_kind kind)
{
	return kind == SHUNT_SQE_USES || kind == SHUNT_SQE_POLLS || kind == SHUNT_SQE_CLOSES;
}

bool shunt_uring_sq_passes(const struct shunt_uring_sq *sq, uint32_t from, uint32_t to,
			   struct shunt_files *files)
{
	struct begins begins;
	unsigned char *where;
	uint8_t kind;

	for (; from != to; from++) {
		if (!locate(sq, from, &where) || !where || !shunt_copy_8(&begins, where))
			return false;
		kind = begins.opcode < sizeof(kinds) ? kinds[begins.opcode] : SHUNT_SQE_UNKNOWN;
		if (kind != SHUNT_SQE_PASSES &&
		    (!by_number(kind) || !(begins.flags & SHUNT_SQE_FIXED ||
					   !shunt_files_get(files, begins.fd))))
			return false;
	}
	return true;
}

/* The entry in `walk->where` is what is to be looked at, unless it has changed meanwhile. */
static enum shunt_sqe_kind found(struct shunt_uring_walk *walk)
{
	return shunt_copy_plain(&walk->sqe, walk->where, sizeof(walk->sqe)) ?
		       shunt_uring_sq_kind(walk->sqe.opcode) :
		       SHUNT_SQE_LOST;
}

enum shunt_sqe_kind shunt_uring_sq_next(struct shunt_uring_walk *walk, struct shunt_files *files)
{
	enum shunt_sqe_kind kind;
	struct begins begins;
	unsigned char *where;

	while (walk->at != walk->end) {
		walk->position = walk->at++;
		if (!locate(walk->sq, walk->position, &where))
			return SHUNT_SQE_LOST;
		if (!where)
			continue;
		if (!shunt_copy_8(&begins, where))
			return SHUNT_SQE_LOST;
		walk->chained = walk->linked ||
				begins.flags &
					(SHUNT_SQE_LINK | SHUNT_SQE_HARDLINK | SHUNT_SQE_DRAIN);
		walk->linked = begins.flags & (SHUNT_SQE_LINK | SHUNT_SQE_HARDLINK);
		if (walk->sq->mixed && (begins.opcode == NOP128 || begins.opcode == URING_CMD128) &&
		    walk->at != walk->end)
			walk->at++;
		kind = shunt_uring_sq_kind(begins.opcode);
		if (kind == SHUNT_SQE_PASSES ||
		    (by_number(kind) && (begins.flags & SHUNT_SQE_FIXED ||
					 !shunt_files_get(files, begins.fd))))
			continue;
		walk->where = (struct shunt_sqe *)where;
		kind = found(walk);
		if (kind != SHUNT_SQE_PASSES)
			return kind;
	}
	return SHUNT_SQE_PASSES;
}
