/* SPDX-License-Identifier: MIT */
/*
 * The functions of liburing by which programs make rings, submit and register. They are exported by name, because
 * liburing makes its own system calls. It need not be there. As liburing's do it, these return -errno and leave errno
 * alone.
 */
#include <dlfcn.h>
#include <link.h>
#include "core/base/copy.h"
#include "preload/process.h"
#include "preload/uring.h"
#include "preload/uring_watch.h"

#define SITES 1024	/* calls whose function is remembered; a power of two */
#define NEAR 8		/* places that a call may have */

/* struct io_uring, whose layout has been the same since liburing 2.0. */
struct queue {	/* of submissions, or of completions */
	uint32_t *head, *tail, *mask, *entries, *flags, *dropped;
};
struct io_uring {
	struct queue sq;
	uint32_t *array;
	unsigned char *sqes;
	uint32_t sqe_head, sqe_tail;
	size_t sq_bytes;
	void *sq_memory;
	uint32_t sq_reserved[4];
	struct queue cq;
	void *cqes;
	size_t cq_bytes;
	void *cq_memory;
	uint32_t cq_reserved[4];
	uint32_t flags;
	int fd;
};

_Static_assert(offsetof(struct io_uring, flags) == 192, "as in liburing.h");

/* --- the functions themselves --- */

/* A call, by its return address, and its function. Both are written once. */
static struct site {
	_Atomic(const void *) caller;
	_Atomic(void *) function;
} sites[SITES];
static _Atomic(const void *) last;	/* a function of liburing that was found */

/* As a library that was loaded apart sees the name. `held`: it is not unloaded any more. */
static void *find_in(const void *code, const char *name, bool held)
{
	struct link_map *map;
	void *found, *handle;
	Dl_info info;

	if (!code || !dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) || !*map->l_name)
		return NULL;
	handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
	found = handle ? dlsym(handle, name) : NULL;
	if (handle && !held)
		dlclose(handle);
	return found;
}

static void remember(const void *caller, void *found)
{
	size_t at = (uintptr_t)caller >> 2;

	for (size_t i = 0; i < NEAR; i++) {
		struct site *site = &sites[(at + i) % SITES];
		const void *none = NULL;

		if (atomic_compare_exchange_strong(&site->caller, &none, caller)) {
			atomic_store(&site->function, found);
			return;
		}
	}
}

/*
 * liburing's function: behind this library in the global scope, or in the scope of a caller that was loaded later. There
 * it may be a copy of the caller's own. A function that jumps here has its own caller's address, so where that knows no
 * liburing, the one that was found last is asked. A library that was found stays loaded.
 */
static void *search(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		found = find_in(caller, name, false);
	if (!found)
		found = find_in(atomic_load(&last), name, false);
	dlerror();
	if (!found)
		return NULL;
	find_in(found, name, true);
	dlerror();
	atomic_store(&last, found);
	remember(caller, found);
	return found;
}

static inline void *find(const char *name, const void *caller)
{
	size_t at = (uintptr_t)caller >> 2;

	for (size_t i = 0; i < NEAR; i++) {
		struct site *site = &sites[(at + i) % SITES];
		const void *there = atomic_load_explicit(&site->caller, memory_order_relaxed);
		void *found = atomic_load_explicit(&site->function, memory_order_acquire);

		if (there == caller && found)
			return found;
		if (!there)
			break;
	}
	return search(name, caller);
}

#define FIND(name) ((__typeof__(&name))find(#name, __builtin_return_address(0)))

/* --- making --- */

static uint32_t offset_of(const void *at, const void *from)
{
	return (uint32_t)((const unsigned char *)at - (const unsigned char *)from);
}

/* Without a mapping of its own the ring's memory begins where nobody needs to know. */
static void ring_made(const struct io_uring *ring)
{
	unsigned char *base = ring->sq_memory ? ring->sq_memory : (unsigned char *)ring->sq.head;
	struct shunt_ring_params params = { .flags = ring->flags };

	if (!shunt_uring_watching())
		return;
	if (!shunt_uring_sq_load(ring->sq.entries, &params.sq_entries))
		params.sq_entries = 0;
	params.sq.head = offset_of(ring->sq.head, base);
	params.sq.tail = offset_of(ring->sq.tail, base);
	params.sq.array = ring->array ? offset_of(ring->array, base) : 0;
	shunt_uring_gone(ring->fd);
	shunt_uring_made(ring->fd, &params, base, ring->sqes, ring->cq_memory);
}

static uint32_t flags_of(const struct io_uring_params *params)
{
	struct shunt_ring_params asked;

	return shunt_copy_plain(&asked, params, sizeof(asked)) ? asked.flags : 0;
}

#define MAKING(name, parameters, arguments, flags)                                                 \
	int name parameters                                                                        \
	{                                                                                          \
		__typeof__(&name) call = shunt_uring_refused(flags, true) ? NULL : FIND(name);     \
		int result = call ? call arguments : -ENOSYS;                                      \
                                                                                                   \
		if (!result)                                                                       \
			ring_made(ring);                                                           \
		return result;                                                                     \
	}

MAKING(io_uring_queue_init, (unsigned int entries, struct io_uring *ring, unsigned int flags),
       (entries, ring, flags), flags)
MAKING(io_uring_queue_init_params,
       (unsigned int entries, struct io_uring *ring, struct io_uring_params *params),
       (entries, ring, params), flags_of(params))
MAKING(io_uring_queue_init_mem,
       (unsigned int entries, struct io_uring *ring, struct io_uring_params *params, void *buffer,
	size_t bytes),
       (entries, ring, params, buffer, bytes), flags_of(params))

/* The program has made the ring by another call. */
int io_uring_queue_mmap(int fd, struct io_uring_params *params, struct io_uring *ring)
{
	__typeof__(&io_uring_queue_mmap) call = FIND(io_uring_queue_mmap);
	int result = call ? call(fd, params, ring) : -ENOSYS;

	if (!result)
		ring_made(ring);
	return result;
}

/* The ring may be used by liburing or by system calls. The latter are worse. */
int io_uring_setup(unsigned int entries, struct io_uring_params *params)
{
	int saved = errno;
	long fd = shunt_uring_setup(entries, params);

	if (fd < 0)
		fd = -errno;
	errno = saved;
	return (int)fd;
}

void io_uring_queue_exit(struct io_uring *ring)
{
	__typeof__(&io_uring_queue_exit) call = FIND(io_uring_queue_exit);

	shunt_uring_gone(ring->fd);
	if (call)
		call(ring);
}

/* --- submitting --- */

static struct shunt_uring_file *ring_at(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	return file && file->kind == SHUNT_FILE_RING ? (struct shunt_uring_file *)file : NULL;
}

/*
 * Entries that liburing is about to submit: up to sqe_tail, which the kernel does not know yet. It uses them by
 * position, whatever the array says now. True: some were changed, and are to be put back.
 */
static bool look(struct shunt_uring_look *look, struct shunt_uring_sq *sq,
		 const struct io_uring *ring)
{
	uint32_t mask;

	if (!shunt_uring_watching())
		return false;
	if (!shunt_uring_sq_load(ring->sq.head, &look->from) ||
	    !shunt_uring_sq_load(ring->sq.mask, &mask) || mask & (mask + 1)) {
		shunt_uring_unwatched("its memory is not known");
		return false;
	}
	if (ring->sqe_tail == look->from)
		return false;
	look->ring = ring_at(ring->fd);
	look->sq = sq;
	*sq = (struct shunt_uring_sq) {
		.head = ring->sq.head,
		.tail = ring->sq.tail,
		.entries = ring->sqes,
		.count = mask + 1,
		.stride = sizeof(struct shunt_sqe) << !!(ring->flags & SHUNT_RING_SQE128),
		.mixed = ring->flags & SHUNT_RING_SQE_MIXED,
	};
	look->to = ring->sqe_tail;
	look->serves = !(ring->flags & (SHUNT_RING_SQPOLL | SHUNT_RING_DISABLED));
	shunt_uring_look(look);
	while (unlikely(look->to != ring->sqe_tail)) {	/* many changes: the rest goes to TCP */
		struct shunt_uring_look rest = *look;

		rest.from = look->to;
		rest.to = ring->sqe_tail;
		rest.serves = false;
		shunt_uring_look(&rest);
		look->to = rest.to;
	}
	return look->count;
}

#define SUBMITTING(name, parameters, arguments)                                                    \
	int name parameters                                                                        \
	{                                                                                          \
		__typeof__(&name) call = FIND(name);                                               \
		struct shunt_uring_look looked;                                                    \
		struct shunt_uring_sq sq;                                                          \
		bool changed = look(&looked, &sq, ring);                                           \
		int result;                                                                        \
                                                                                                   \
		if (likely(call && !changed))                                                      \
			return call arguments;                                                     \
		result = call ? call arguments : -ENOSYS;                                          \
		if (changed)                                                                       \
			shunt_uring_restore(&looked);                                              \
		return result;                                                                     \
	}

SUBMITTING(io_uring_submit, (struct io_uring *ring), (ring))
SUBMITTING(io_uring_submit_and_wait, (struct io_uring *ring, unsigned int count), (ring, count))
SUBMITTING(io_uring_submit_and_get_events, (struct io_uring *ring), (ring))
SUBMITTING(io_uring_submit_and_wait_timeout,
	   (struct io_uring *ring, void **cqe, unsigned int count, void *timeout, void *mask),
	   (ring, cqe, count, timeout, mask))
SUBMITTING(io_uring_submit_and_wait_min_timeout,
	   (struct io_uring * ring, void **cqe, unsigned int count, void *timeout,
	    unsigned int least_us, void *mask),
	   (ring, cqe, count, timeout, least_us, mask))
SUBMITTING(io_uring_submit_and_wait_reg,
	   (struct io_uring *ring, void **cqe, unsigned int count, int index),
	   (ring, cqe, count, index))
SUBMITTING(io_uring_wait_cqes,
	   (struct io_uring *ring, void **cqe, unsigned int count, void *timeout, void *mask),
	   (ring, cqe, count, timeout, mask))
SUBMITTING(io_uring_wait_cqe_timeout, (struct io_uring *ring, void **cqe, void *timeout),
	   (ring, cqe, timeout))
SUBMITTING(__io_uring_get_cqe,
	   (struct io_uring *ring, void **cqe, unsigned int submit, unsigned int count, void *mask),
	   (ring, cqe, submit, count, mask))

static int enter(int fd, uint32_t count, uint32_t least, uint32_t flags, const void *argument,
		 size_t bytes)
{
	int saved = errno;
	long result = shunt_uring_enter(fd, count, least, flags, argument, bytes);

	if (result < 0)
		result = -errno;
	errno = saved;
	return (int)result;
}

int io_uring_enter(unsigned int fd, unsigned int count, unsigned int least, unsigned int flags,
		   void *mask)
{
	return enter((int)fd, count, least, flags, mask, 8);
}

int io_uring_enter2(unsigned int fd, unsigned int count, unsigned int least, unsigned int flags,
		    void *argument, size_t bytes)
{
	return enter((int)fd, count, least, flags, argument, bytes);
}

/* --- registering --- */

#define REGISTERING(name, parameters, arguments, numbers, count)                                   \
	int name parameters                                                                        \
	{                                                                                          \
		__typeof__(&name) call = FIND(name);                                               \
                                                                                                   \
		if (shunt_uring_watching())                                                        \
			shunt_uring_look_numbers(numbers, count);                                  \
		return call ? call arguments : -ENOSYS;                                            \
	}

REGISTERING(io_uring_register_files, (struct io_uring *ring, const int *files, unsigned int count),
	    (ring, files, count), files, count)
REGISTERING(io_uring_register_files_tags,
	    (struct io_uring *ring, const int *files, const void *tags, unsigned int count),
	    (ring, files, tags, count), files, count)
REGISTERING(io_uring_register_files_update,
	    (struct io_uring *ring, unsigned int from, const int *files, unsigned int count),
	    (ring, from, files, count), files, count)
REGISTERING(io_uring_register_files_update_tag,
	    (struct io_uring * ring, unsigned int from, const int *files, const void *tags,
	     unsigned int count),
	    (ring, from, files, tags, count), files, count)

int io_uring_register(unsigned int fd, unsigned int operation, const void *argument,
		      unsigned int count)
{
	int saved = errno;
	long result = shunt_uring_register((int)fd, operation, (void *)argument, count);

	if (result < 0)
		result = -errno;
	errno = saved;
	return (int)result;
}
