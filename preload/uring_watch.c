/* SPDX-License-Identifier: MIT */
#include "preload/uring_watch.h"
#include <linux/membarrier.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include "core/base/copy.h"
#include "core/stream/uring.h"
#include "preload/rights.h"
#include "preload/uring.h"

#define FIXED_INPUT (1U << 31)	/* SPLICE_F_FD_IN_FIXED */
enum { GETEVENTS = 1 << 0, EXT_ARG = 1 << 3, REGISTERED = 1 << 4 };	/* IORING_ENTER_* */

/* --- what a look does --- */

static void bar(int fd, struct shunt_stream *stream, bool reads)
{
	int saved = errno;

	if (shunt_process_foreign())
		shunt_rights_retire(fd, SHUNT_CAUSE_URING);
	else
		shunt_inside(shunt_uring_bar(shunt_process.engine, fd, stream, reads));
	errno = saved;
}

static bool use_for(int fd, bool reads)
{
	struct shunt_file *file = shunt_lookup(fd);

	if (shunt_as_stream(file))
		bar(fd, shunt_as_stream(file), reads);
	return !file || file->kind != SHUNT_FILE_PRIVATE;
}

/* False: the number is one of our own, and for the program nothing is open there. */
static bool use(int fd)
{
	return use_for(fd, false);
}

void shunt_uring_use(int fd)
{
	use(fd);
}

void shunt_uring_look_numbers(const void *numbers, uint32_t count)
{
	const int *from = numbers;
	int some[64];

	while (count) {
		uint32_t part = count < 64 ? count : 64;

		if (!shunt_copy_plain(some, from, part * sizeof(int)))
			return;	/* the kernel finds out, too */
		for (uint32_t i = 0; i < part; i++)
			use(some[i]);
		from += part;
		count -= part;
	}
}

static void look_message(uint64_t at)
{
	struct msghdr message;

	if (shunt_copy_plain(&message, (void *)(uintptr_t)at, sizeof(message)) &&
	    message.msg_control && message.msg_controllen)
		shunt_rights_message(&message);
}

/* Room for a change, which begins as no change. */
static struct shunt_uring_change *change(struct shunt_uring_look *look,
					 const struct shunt_uring_walk *walk)
{
	struct shunt_uring_change *made = &look->changes[look->count++];

	made->position = walk->position;
	made->at = (uint64_t *)walk->where;
	memcpy(made->before, &walk->sqe, sizeof(made->before));
	memcpy(made->after, &walk->sqe, sizeof(made->after));
	return made;
}

static void change_to(struct shunt_uring_change *made, const struct shunt_sqe *sqe)
{
	memcpy(made->after, sqe, sizeof(made->after));
	(void)!shunt_copy_plain(made->at, made->after, sizeof(made->after));
}

/* The entry shall fail with EBADF, as a call with one of our numbers does. */
static void hide(struct shunt_uring_look *look, const struct shunt_uring_walk *walk)
{
	struct shunt_sqe sqe = walk->sqe;

	if (!look->serves)
		return;
	sqe.fd = -1;
	change_to(change(look, walk), &sqe);
}

static void look_close(struct shunt_uring_look *look, const struct shunt_uring_walk *walk)
{
	struct shunt_file *file = walk->sqe.other ? NULL : shunt_lookup(walk->sqe.fd);

	if (!file)
		return;
	if (file->kind == SHUNT_FILE_PRIVATE) {
		hide(look, walk);
		return;
	}
	/* It may wait, or never happen: so what was sent before must not wait for it. */
	if (walk->chained && shunt_as_stream(file))
		bar(walk->sqe.fd, shunt_as_stream(file), false);
	if (!shunt_process_foreign())
		shunt_process_drop(walk->sqe.fd);
}

/* --- EPOLL_CTL --- */

/*
 * A set of our own, which gives results: `in` is a member, `out` is none. One for each process: a child has no copies of
 * our descriptors.
 */
static struct {
	_Atomic pid_t made;	/* for this process */
	_Atomic pid_t making;
	int set, in, out;
} results;

static struct epoll_event nothing;

static bool results_make(void)
{
	struct shunt_fds *fds = shunt_engine_fds(shunt_process.engine);

	results.set = shunt_own_fds_make(fds, real(epoll_create1)(EPOLL_CLOEXEC));
	results.in = shunt_own_fds_make(fds, eventfd(0, EFD_CLOEXEC));
	results.out = shunt_own_fds_make(fds, eventfd(0, EFD_CLOEXEC));
	if (results.set >= 0 && results.in >= 0 && results.out >= 0 &&
	    !real(epoll_ctl)(results.set, EPOLL_CTL_ADD, results.in, &nothing))
		return true;
	shunt_own_fds_close(fds, results.set);
	shunt_own_fds_close(fds, results.in);
	shunt_own_fds_close(fds, results.out);
	return false;
}

static bool results_there(void)
{
	pid_t us = shunt_process.pid, before = atomic_load(&results.making);

	if (atomic_load(&results.made) == us)
		return true;
	if (before == us || !atomic_compare_exchange_strong(&results.making, &before, us))
		return false;	/* another thread is at it, or it is impossible */
	if (!results_make())
		return false;
	atomic_store(&results.made, us);
	return true;
}

/* The kernel shall answer this entry with `result`. False: it has to do the work itself. */
static bool answer(struct shunt_uring_look *look, const struct shunt_uring_walk *walk, int result)
{
	struct shunt_sqe sqe = walk->sqe;

	if (!result) {
		sqe.opcode = SHUNT_SQE_NOP;
		sqe.fd = -1;
		sqe.len = sqe.op_flags = 0;
	} else if ((result == -EEXIST || result == -ENOENT) && results_there()) {
		sqe.fd = results.set;
		sqe.off = (uint64_t)(result == -EEXIST ? results.in : results.out);
		sqe.addr = (uintptr_t)&nothing;
		sqe.len = result == -EEXIST ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	} else {
		return false;
	}
	change_to(change(look, walk), &sqe);
	return true;
}

/* May it be done now? Otherwise the kernel does it, or refuses it. */
static bool is_servable(const struct shunt_uring_look *look, const struct shunt_uring_walk *walk)
{
	return look->serves && !walk->chained && !(walk->sqe.flags & SHUNT_SQE_BUFFER) &&
	       !walk->sqe.ioprio && !walk->sqe.buffer && !walk->sqe.other &&
	       !shunt_process_foreign();
}

static int serve(const struct shunt_sqe *sqe)
{
	return epoll_ctl(sqe->fd, (int)sqe->len, (int)sqe->off, (void *)(uintptr_t)sqe->addr) ?
		       -errno :
		       0;
}

/* The entry's own words are wrong, which the kernel sees as well. */
static bool kernel_agrees(int result)
{
	return result == -EBADF || result == -EFAULT || result == -EINVAL || result == -ELOOP ||
	       result == -EPERM;
}

static void look_control(struct shunt_uring_look *look, const struct shunt_uring_walk *walk)
{
	struct shunt_file *set = shunt_lookup(walk->sqe.fd);
	struct shunt_file *member = shunt_lookup((int)walk->sqe.off);
	struct shunt_stream *stream = shunt_as_stream(member);
	bool ours = set && set->kind == SHUNT_FILE_EPOLL;

	if ((set && set->kind == SHUNT_FILE_PRIVATE) ||
	    (member && member->kind == SHUNT_FILE_PRIVATE)) {
		hide(look, walk);
		return;
	}
	if (!stream && !(ours && member && member->kind == SHUNT_FILE_EPOLL))
		return;
	if (ours && is_servable(look, walk)) {
		int result = serve(&walk->sqe);

		if (kernel_agrees(result) || answer(look, walk, result))
			return;
	}
	if (stream)
		bar((int)walk->sqe.off, stream, false);
	else
		shunt_uring_unwatched("it puts an epoll set into another one");
}

/* --- a look --- */

static void look_at(struct shunt_uring_look *look, const struct shunt_uring_walk *walk,
		    enum shunt_sqe_kind kind)
{
	const struct shunt_sqe *sqe = &walk->sqe;
	struct shunt_file *file;

	switch (kind) {
	case SHUNT_SQE_POLLS:
		file = shunt_lookup(sqe->fd);
		if (file && file->kind == SHUNT_FILE_EPOLL)
			shunt_uring_unwatched("it polls an epoll set");
		/* fall through */
	case SHUNT_SQE_READS:
		if (!use_for(sqe->fd, true))
			hide(look, walk);
		break;
	case SHUNT_SQE_USES:
		if (!use(sqe->fd))
			hide(look, walk);
		break;
	case SHUNT_SQE_CLOSES:
		look_close(look, walk);
		break;
	case SHUNT_SQE_SPLICES:
		if (!(sqe->op_flags & FIXED_INPUT))
			use(sqe->other);
		if (!(sqe->flags & SHUNT_SQE_FIXED))
			use(sqe->fd);
		break;
	case SHUNT_SQE_REGISTERS:
		shunt_uring_look_numbers((void *)(uintptr_t)sqe->addr, sqe->len);
		break;
	case SHUNT_SQE_SENDS:
		if (!(sqe->flags & SHUNT_SQE_FIXED))
			use(sqe->fd);
		look_message(sqe->addr);
		break;
	case SHUNT_SQE_CONTROLS:
		look_control(look, walk);
		break;
	case SHUNT_SQE_UNKNOWN:
		shunt_uring_unwatched("it has an unknown operation");
		break;
	case SHUNT_SQE_LOST:
		shunt_uring_unwatched("its memory is not there");
		break;
	case SHUNT_SQE_PASSES:
		break;
	}
}

static void look_at_all(struct shunt_uring_look *look, struct shunt_uring_walk *walk,
			enum shunt_sqe_kind kind)
{
	int saved = errno;

	do {
		if (look->count == SHUNT_URING_CHANGES) {
			look->to = walk->position;
			break;
		}
		look_at(look, walk, kind);
		if (kind == SHUNT_SQE_LOST)
			break;
		kind = shunt_uring_sq_next(walk, shunt_process.files);
	} while (kind != SHUNT_SQE_PASSES);
	errno = saved;
}

/* Entries up to `to` have been looked at. Nobody else submits meanwhile: see single_begin(). */
static inline void see(struct shunt_uring_file *ring, uint32_t to)
{
	if ((int32_t)(to - atomic_load_explicit(&ring->seen, memory_order_relaxed)) > 0)
		atomic_store_explicit(&ring->seen, to, memory_order_relaxed);
}

static SHUNT_INLINE void look_over(struct shunt_uring_look *look)
{
	struct shunt_uring_file *ring = look->ring;
	struct shunt_uring_walk walk;
	enum shunt_sqe_kind kind;

	look->count = 0;
	if (unlikely(ring && shunt_uring_file_escaped(ring, look->from) &&
		     atomic_load_explicit(&ring->maker, memory_order_relaxed) == shunt_process.pid))
		shunt_uring_unwatched("its submissions do not come by libc");
	shunt_uring_sq_begin(&walk, look->sq, look->from, look->to);
	kind = shunt_uring_sq_next(&walk, shunt_process.files);
	if (unlikely(kind != SHUNT_SQE_PASSES))
		look_at_all(look, &walk, kind);
	if (ring)
		see(ring, look->to);
}

void shunt_uring_restore(const struct shunt_uring_look *look)
{
	uint32_t head;

	if (likely(!look->count) || !shunt_uring_sq_load(look->sq->head, &head))
		return;
	for (uint32_t i = 0; i < look->count; i++) {
		const struct shunt_uring_change *made = &look->changes[i];

		if ((int32_t)(head - made->position) <= 0)
			continue;	/* the kernel will have it, and it is done */
		for (uint32_t word = 0; word < SHUNT_URING_WORDS; word++) {
			uint64_t after = made->after[word];

			/* The program may have written its next entry there meanwhile. */
			__atomic_compare_exchange_n(&made->at[word], &after, made->before[word],
						    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		}
	}
}

void shunt_uring_look(struct shunt_uring_look *look)
{
	look_over(look);
}

/* --- io_uring_enter(2) --- */

static long enter(int fd, uint32_t count, uint32_t least, uint32_t flags, const void *argument,
		  size_t bytes)
{
	return real(syscall)(SYS_io_uring_enter, (long)fd, (long)count, (long)least, (long)flags,
			     argument, bytes);
}

static struct shunt_uring_file *ring_at(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	return file && file->kind == SHUNT_FILE_RING ? (struct shunt_uring_file *)file : NULL;
}

/* A registered number is the thread's own, and nobody has told us of it: there must be one ring alone. */
static struct shunt_uring_file *only_ring(void)
{
	struct shunt_uring_file *only = NULL;

	shunt_files_each(shunt_process.files, fd) {
		struct shunt_uring_file *ring = ring_at(fd);

		if (ring && only)
			return NULL;
		if (ring)
			only = ring;
	}
	return only;
}

static bool names_ring(int fd)
{
	char link[32], text[32];
	ssize_t bytes;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	bytes = readlink(link, text, sizeof(text));
	return bytes > 0 && memmem(text, (size_t)bytes, "[io_uring]", 10);
}

/* Nothing is known of the ring, if it is one. */
static void enter_unknown(int fd, uint32_t flags)
{
	int saved = errno;

	if (shunt_uring_watching() && shunt_process.engine &&
	    !shunt_uring_rules(shunt_process.engine) && (flags & REGISTERED || names_ring(fd)))
		shunt_uring_unwatched("it is not known how it was made");
	errno = saved;
}

/* Of a thread that submits without the lock, since it is the only one. */
enum { LOOKS = 1, SUBMITS = 2 };

static uint32_t step_of(uint32_t step)
{
	return (uint32_t)shunt_process.pid << 2 | step;
}

/*
 * The first thread may have looked and not submitted yet, or be about to look. Once the kernel stands where that look has
 * ended, the thread has submitted, and perhaps waits for completions.
 */
static void await_first(struct shunt_uring_file *ring)
{
	const struct shunt_uring_sq *sq = shunt_uring_file_sq(ring);
	uint32_t step, head;

	while ((step = atomic_load(&ring->step)) == step_of(LOOKS) || step == step_of(SUBMITS)) {
		if (step == step_of(SUBMITS) && (!sq || !shunt_uring_sq_load(sq->head, &head) ||
						 (int32_t)(head - atomic_load(&ring->seen)) >= 0))
			break;
		sched_yield();
	}
}

/* A second thread has come: from now on all take the lock. */
static void become_many(struct shunt_uring_file *ring)
{
	atomic_store(&ring->many, true);
	/* From here on the first thread has seen that, or its step can be seen here: it pays for no barrier. */
	real(syscall)(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	await_first(ring);
}

/* True: this thread alone submits, and says when it has: single_end(). */
static bool single_begin(struct shunt_uring_file *ring)
{
	void *us = __builtin_thread_pointer(), *first = NULL;

	if (ring->flags & SHUNT_RING_SINGLE_ISSUER)
		return true;
	if (atomic_load_explicit(&ring->many, memory_order_relaxed))
		return false;
	if (unlikely(atomic_load_explicit(&ring->submitter, memory_order_relaxed) != us) &&
	    !atomic_compare_exchange_strong(&ring->submitter, &first, us)) {
		become_many(ring);
		return false;
	}
	atomic_store_explicit(&ring->step, step_of(LOOKS), memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* the barrier is become_many()'s */
	if (likely(!atomic_load_explicit(&ring->many, memory_order_relaxed)))
		return true;
	atomic_store(&ring->step, 0);
	return false;
}

static void single_submits(struct shunt_uring_file *ring)
{
	atomic_store_explicit(&ring->step, step_of(SUBMITS), memory_order_release);
}

static void single_end(struct shunt_uring_file *ring)
{
	atomic_store_explicit(&ring->step, 0, memory_order_release);
}

/* A fork in another thread leaves it held by the parent. */
static void lock(struct shunt_uring_file *ring)
{
	pid_t holder = 0, us = shunt_process.pid;

	while (!atomic_compare_exchange_weak(&ring->lock, &holder, us)) {
		if (holder == us) {
			holder = 0;
			sched_yield();
		}
	}
}

/* Looks at what a call for `count` entries would take. False: its memory is not known. */
static inline bool look_ahead(struct shunt_uring_look *look, struct shunt_uring_file *ring,
			      uint32_t count)
{
	const struct shunt_uring_sq *sq = shunt_uring_file_sq(ring);
	uint32_t tail, ready;

	look->from = look->to = 0;
	look->ring = ring;
	look->sq = sq;
	look->serves = !(ring->flags & (SHUNT_RING_SQPOLL | SHUNT_RING_DISABLED));
	if (unlikely(!sq || !shunt_uring_sq_load(sq->head, &look->from) ||
		     !shunt_uring_sq_load(sq->tail, &tail))) {
		shunt_uring_unwatched("its memory is not known");
		return false;
	}
	atomic_thread_fence(memory_order_acquire);
	ready = tail - look->from;
	if (unlikely(ready > sq->count))
		ready = sq->count;
	look->to = look->from + (ready < count ? ready : count);
	look_over(look);
	return true;
}

/* Gives the kernel up to `count` entries, in pieces, and waits for nothing. How many it has taken, or -1 and errno. */
static long submit(int fd, struct shunt_uring_file *ring, uint32_t count, uint32_t flags)
{
	struct shunt_uring_look look;
	uint32_t taken = 0, wanted;
	bool known, cut;
	long result;

	do {
		lock(ring);
		known = look_ahead(&look, ring, count - taken);
		wanted = known ? look.to - look.from : count - taken;
		cut = known && look.count == SHUNT_URING_CHANGES;
		result = enter(fd, wanted, 0, flags & ~(uint32_t)(GETEVENTS | EXT_ARG), NULL, 0);
		if (known)
			shunt_uring_restore(&look);
		atomic_store(&ring->lock, 0);
		if (result > 0)
			taken += (uint32_t)result;
	} while (cut && result == wanted && taken < count);
	return result < 0 && !taken ? result : taken;
}

/* The second half of a call: as the kernel's, it is for one all of whose entries were taken. */
static long await(int fd, long taken, uint32_t count, uint32_t least, uint32_t flags,
		  const void *argument, size_t bytes)
{
	int saved = errno;

	if (taken == count && flags & GETEVENTS)
		enter(fd, 0, least, flags, argument, bytes);
	errno = saved;
	return taken;
}

/* Entries that have been looked at and changed, and then the rest. */
static long submit_changed(int fd, const struct shunt_uring_look *look, uint32_t count,
			   uint32_t flags)
{
	uint32_t wanted = look->to - look->from;
	long taken = enter(fd, wanted, 0, flags & ~(uint32_t)(GETEVENTS | EXT_ARG), NULL, 0), rest;

	shunt_uring_restore(look);
	if (taken != wanted || wanted == count || look->count < SHUNT_URING_CHANGES)
		return taken;
	rest = submit(fd, look->ring, count - wanted, flags);
	return rest < 0 ? taken : taken + rest;
}

static __attribute__((noinline)) long enter_single(int fd, struct shunt_uring_file *ring,
						   uint32_t count, uint32_t least, uint32_t flags,
						   const void *argument, size_t bytes)
{
	struct shunt_uring_look look;
	bool known = look_ahead(&look, ring, count);
	uint32_t wanted = look.to - look.from;

	single_submits(ring);
	if (unlikely(!known))
		return enter(fd, count, least, flags, argument, bytes);
	if (unlikely(look.count))
		return await(fd, shunt_inside(submit_changed(fd, &look, count, flags)), count,
			     least, flags, argument, bytes);
	if (likely(wanted == count))
		return enter(fd, count, least, flags, argument, bytes);
	/* Of such a call the kernel does not wait. */
	return enter(fd, wanted, 0, flags & ~(uint32_t)(GETEVENTS | EXT_ARG), NULL, 0);
}

/* A call for so many entries, which are there and pass. */
static inline bool all_pass(struct shunt_uring_file *ring, uint32_t count)
{
	const struct shunt_uring_sq *sq = shunt_uring_file_sq(ring);
	uint32_t head, tail;

	if (!sq || !shunt_uring_sq_load(sq->head, &head) || !shunt_uring_sq_load(sq->tail, &tail) ||
	    tail - head < count || count > sq->count || shunt_uring_file_escaped(ring, head))
		return false;
	atomic_thread_fence(memory_order_acquire);
	if (!shunt_uring_sq_passes(sq, head, head + count, shunt_process.files))
		return false;
	see(ring, head + count);
	return true;
}

long shunt_uring_enter(int fd, uint32_t count, uint32_t least, uint32_t flags, const void *argument,
		       size_t bytes)
{
	struct shunt_uring_file *ring;
	long result;

	if (!count)
		return enter(fd, count, least, flags, argument, bytes);
	ring = unlikely(flags & REGISTERED) ? only_ring() : ring_at(fd);
	if (unlikely(!ring)) {
		enter_unknown(fd, flags);
		return enter(fd, count, least, flags, argument, bytes);
	}
	if (unlikely(!single_begin(ring)))
		return await(fd, shunt_inside(submit(fd, ring, count, flags)), count, least, flags,
			     argument, bytes);
	if (likely(all_pass(ring, count))) {
		single_submits(ring);
		result = enter(fd, count, least, flags, argument, bytes);
	} else {
		result = enter_single(fd, ring, count, least, flags, argument, bytes);
	}
	single_end(ring);
	return result;
}
