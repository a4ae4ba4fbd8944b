/* SPDX-License-Identifier: MIT */
/*
 * A submission queue of io_uring in the program's memory, which may be anything, and may not be there. Input: four bytes
 * that say what the queue is like, the head and the tail, and its memory: first the array, then entries. Each walk ends,
 * stays inside of the memory that it was told of, and finds only entries that it was asked about.
 */
#include <signal.h>
#include <sys/mman.h>
#include "core/base/copy.h"
#include "core/fd/uring_sq.h"
#include "tests/fuzz/fuzz.h"

#define SLOTS 64
#define PAGE ((size_t)65536)	/* at least a page of any machine */
#define MOST 64		/* entries */

static unsigned char *memory;	/* one readable page, and one that is not */
static struct shunt_files *files;
static struct shunt_file one = { SHUNT_FILE_STREAM };

static void landed(int number, siginfo_t *info, void *context)
{
	(void)info;
	if (!shunt_copy_lands(context))
		signal(number, SIG_DFL);
}

static void set_up(void)
{
	struct sigaction action = { .sa_sigaction = landed, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fuzz_check(memory != MAP_FAILED && !mprotect(memory + PAGE, PAGE, PROT_NONE));
	files = calloc(1, sizeof(*files) + SLOTS * sizeof(files->slot[0]));
	fuzz_check(files);
	files->limit = SLOTS;
}

/* So many bytes of the input, before *end. */
static unsigned char *place(struct fuzz_input *in, unsigned char **end, size_t bytes)
{
	*end -= bytes;
	for (size_t i = 0; i < bytes; i++)
		(*end)[i] = fuzz_byte(in);
	return *end;
}

static bool by_number(enum shunt_sqe_kind kind)
{
	return kind == SHUNT_SQE_USES || kind == SHUNT_SQE_POLLS || kind == SHUNT_SQE_CLOSES;
}

static void check_found(const struct shunt_uring_walk *walk, uint32_t from, uint32_t to,
			enum shunt_sqe_kind kind)
{
	const unsigned char *where = (const unsigned char *)walk->where;

	fuzz_check(walk->position - from < to - from);
	if (kind == SHUNT_SQE_LOST)
		return;
	fuzz_check(where >= walk->sq->entries &&
		   where < walk->sq->entries + (size_t)walk->sq->count * walk->sq->stride);
	fuzz_check(!((size_t)(where - walk->sq->entries) % walk->sq->stride));
	fuzz_check(shunt_uring_sq_kind(walk->sqe.opcode) == kind);
	fuzz_check(!by_number(kind) || (!(walk->sqe.flags & SHUNT_SQE_FIXED) &&
					shunt_files_get(files, walk->sqe.fd)));
	fuzz_check(walk->chained || !(walk->sqe.flags & (SHUNT_SQE_LINK | SHUNT_SQE_HARDLINK)));
}

static void walk_all(const struct shunt_uring_sq *sq, uint32_t from, uint32_t to)
{
	struct shunt_uring_walk walk;
	enum shunt_sqe_kind kind;
	uint32_t found = 0;
	bool passes = to - from <= sq->count && shunt_uring_sq_passes(sq, from, to, files);

	shunt_uring_sq_begin(&walk, sq, from, to);
	while ((kind = shunt_uring_sq_next(&walk, files)) != SHUNT_SQE_PASSES) {
		fuzz_check(!passes && ++found <= sq->count);
		check_found(&walk, from, to, kind);
		if (kind == SHUNT_SQE_LOST)
			return;
	}
	fuzz_check(walk.at == walk.end);
	fuzz_check(!passes || !found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	struct shunt_uring_sq sq = { .count = 1 };
	uint8_t shape, lost, slots;
	unsigned char *end;
	uint32_t from = 0, to = 0;

	if (!memory)
		set_up();
	end = memory + PAGE;
	sq.count <<= fuzz_byte(&in) % 7;
	shape = fuzz_byte(&in);
	lost = fuzz_byte(&in);
	slots = fuzz_byte(&in);
	for (int fd = 0; fd < SLOTS; fd++)
		shunt_files_set(files, fd, slots >> fd % 8 & 1 ? &one : NULL);
	for (int i = 0; i < 4; i++) {
		from = from << 8 | fuzz_byte(&in);
		to = to << 8 | fuzz_byte(&in);
	}
	if (shape & 4)
		to = from + to % (2 * MOST);
	sq.stride = shape & 1 ? 128 : 64;
	sq.mixed = shape & 2;
	if (shape & 8)
		sq.array = (uint32_t *)place(&in, &end, sq.count * sizeof(uint32_t));
	sq.entries = place(&in, &end, (size_t)sq.count * sq.stride);
	if (lost & 1)
		sq.entries = memory + PAGE - (lost >> 2) * 8;
	if (lost & 2 && sq.array)
		sq.array = (uint32_t *)(memory + PAGE) - (lost >> 2);
	walk_all(&sq, from, to);
	return 0;
}
