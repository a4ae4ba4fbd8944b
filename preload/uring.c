/* SPDX-License-Identifier: MIT */
/* Rings of io_uring: what becomes of them, and the table's entries of those that are watched. */
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include "core/base/copy.h"
#include "core/fd/uring_file.h"
#include "core/stream/uring.h"
#include "preload/rights.h"
#include "preload/uring.h"
#include "preload/uring_watch.h"

#define RINGS 1024	/* of a process: more are not watched */

enum { OFFSET_QUEUE = 0, OFFSET_COMPLETIONS = 0x8000000, OFFSET_ENTRIES = 0x10000000 };	/* IORING_OFF_* */
enum {	/* IORING_REGISTER_* */
	FILES = 2,
	FILES_UPDATE = 6,
	FILES2 = 13,
	FILES_UPDATE2 = 14,
	RESIZE = 33,
};
#define BY_NUMBER (1U << 31)	/* IORING_REGISTER_USE_REGISTERED_RING */

static struct shunt_uring_file rings[RINGS];
static _Atomic bool watching;

bool shunt_uring_watching(void)
{
	return atomic_load_explicit(&watching, memory_order_relaxed);
}

static void uring_note(enum shunt_uring uring, const char *why)
{
	int before = atomic_load(&shunt_process.uring);
	struct shunt_engine *engine;
	bool news;

	while (before < (int)uring &&
	       !atomic_compare_exchange_weak(&shunt_process.uring, &before, (int)uring))
		;
	news = before < (int)uring;
	engine = __atomic_load_n(&shunt_process.engine, __ATOMIC_SEQ_CST);
	if (engine)
		news = shunt_uring_set(engine, uring);
	if (news)
		shunt_uring_tell(uring, why);
}

/* Streams that never come to a link are seen by every ring. */
static bool uring_concerns(const struct shunt_config *config)
{
	const char *name;

	return config && shunt_config_device(config->device, &name) != SHUNT_DEVICE_NONE;
}

void shunt_uring_unwatched(const char *why)
{
	int saved = errno;

	uring_note(SHUNT_URING_RULES, why);
	shunt_rights_ring();
	errno = saved;
}

/* Why a ring with these flags cannot be watched; NULL: it can. liburing shows its entries before any thread of the kernel. */
static const char *flags_forbid(uint32_t flags, bool by_library)
{
	if (flags & ~(uint32_t)SHUNT_RING_FLAGS)
		return "it has an unknown flag";
	if (flags & SHUNT_RING_NUMBER_ONLY)
		return "it has no descriptor";
	return flags & SHUNT_RING_SQPOLL && !by_library ? "a thread of the kernel polls it" : NULL;
}

static void begin_watch(uint32_t flags, bool by_library)
{
	const char *why = flags_forbid(flags, by_library);

	if (why) {
		shunt_uring_unwatched(why);
	} else {
		atomic_store(&watching, true);
		uring_note(SHUNT_URING_WATCHED, NULL);
	}
}

/* A ring made in a child of vfork() is for the program that it will become. */
bool shunt_uring_refused(uint32_t flags, bool by_library)
{
	const struct shunt_config *config = shunt_process_config();
	int saved = errno;

	if (!uring_concerns(config))
		return false;
	if (shunt_process_foreign())
		return config->uring == SHUNT_URING_DENY;
	switch ((enum shunt_uring_choice)config->uring) {
	case SHUNT_URING_WATCH:
		begin_watch(flags, by_library);
		break;
	case SHUNT_URING_DENY:
		uring_note(SHUNT_URING_REFUSED, NULL);
		break;
	case SHUNT_URING_ALLOW:
		uring_note(SHUNT_URING_IGNORED, NULL);
		break;
	case SHUNT_URING_TCP:
		uring_note(SHUNT_URING_RULES, NULL);
		shunt_rights_ring();
		break;
	}
	errno = saved;
	return config->uring == SHUNT_URING_DENY;
}

/* --- the table --- */

static struct shunt_uring_file *ring_take(void)
{
	for (unsigned int i = 0; i < RINGS; i++) {
		bool used = false;

		if (atomic_compare_exchange_strong(&rings[i].used, &used, true))
			return &rings[i];
	}
	return NULL;
}

static struct shunt_uring_file *ring_at(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	return unlikely(file && file->kind == SHUNT_FILE_RING) ? (struct shunt_uring_file *)file :
								 NULL;
}

static bool is_power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

static void enter_table(int fd, const struct shunt_ring_params *params, void *queue, void *entries,
			void *completions)
{
	struct shunt_uring_file *ring;

	if (fd < 0 || (size_t)fd >= shunt_process.files->limit ||
	    !is_power_of_two(params->sq_entries) || !(ring = ring_take())) {
		shunt_uring_unwatched("the table of rings is full");
		return;
	}
	ring->file.kind = SHUNT_FILE_RING;
	ring->flags = params->flags;
	atomic_store(&ring->ready, false);
	ring->sq.count = params->sq_entries;
	ring->head_at = params->sq.head;
	ring->tail_at = params->sq.tail;
	ring->array_at = params->sq.array;
	atomic_store(&ring->maker, shunt_process.pid);
	atomic_store(&ring->many, false);
	atomic_store(&ring->seen, 0);
	atomic_store(&ring->submitter, NULL);
	atomic_store(&ring->lock, 0);
	atomic_store(&ring->step, 0);
	atomic_store(&ring->queue, queue);
	atomic_store(&ring->entries, entries);
	atomic_store(&ring->completions, completions);
	shunt_uring_file_describe(ring);
	shunt_process_fresh(fd);
	shunt_files_set(shunt_process.files, fd, &ring->file);
}

void shunt_uring_made(int fd, const struct shunt_ring_params *params, void *queue, void *entries,
		      void *completions)
{
	int saved = errno;

	if (shunt_uring_watching() && !shunt_process_foreign() && !ring_at(fd) &&
	    shunt_process_engine())
		enter_table(fd, params, queue, entries, completions);
	errno = saved;
}

void shunt_uring_gone(int fd)
{
	if (ring_at(fd) && !shunt_process_foreign())
		shunt_process_drop(fd);
}

void shunt_uring_mapped(int fd, off_t offset, void *at)
{
	struct shunt_uring_file *ring = ring_at(fd);

	if (likely(!ring) || shunt_process_foreign())
		return;
	if (offset == OFFSET_QUEUE)
		atomic_store(&ring->queue, at);
	else if (offset == OFFSET_ENTRIES)
		atomic_store(&ring->entries, at);
	else if (offset == OFFSET_COMPLETIONS)
		atomic_store(&ring->completions, at);
	shunt_uring_file_describe(ring);
}

/* --- by syscall() --- */

/* The file at the number is new, so an earlier ring's entry ends. */
static void made_by_call(int fd, const struct shunt_ring_params *asked, const void *given)
{
	struct shunt_ring_params params;
	bool own = asked->flags & SHUNT_RING_NO_MMAP;

	if (!shunt_copy_plain(&params, given, sizeof(params)))
		return;
	shunt_uring_gone(fd);
	shunt_uring_made(fd, &params, own ? (void *)(uintptr_t)asked->cq.user : NULL,
			 own ? (void *)(uintptr_t)asked->sq.user : NULL, NULL);
}

long shunt_uring_setup(uint32_t entries, void *params)
{
	struct shunt_ring_params asked = { 0 };
	long fd;

	if (!shunt_bad_pointer(params) && !shunt_copy_plain(&asked, params, sizeof(asked)))
		asked.flags = 0;	/* EFAULT */
	if (shunt_uring_refused(asked.flags, false))
		return shunt_fail(ENOSYS);
	fd = real(syscall)(SYS_io_uring_setup, (long)entries, params);
	if (fd >= 0 && shunt_uring_watching() && !(asked.flags & SHUNT_RING_NUMBER_ONLY))
		made_by_call((int)fd, &asked, params);
	return fd;
}

/* struct io_uring_files_update, io_uring_rsrc_register and io_uring_rsrc_update2 */
struct update {
	uint32_t offset, reserved;
	uint64_t numbers;
};
struct registration {
	uint32_t count, flags;
	uint64_t reserved, numbers, tags;
};
struct update2 {
	uint32_t offset, reserved;
	uint64_t numbers, tags;
	uint32_t count, reserved2;
};

static void look_registration(uint32_t operation, const void *argument, uint32_t count)
{
	struct registration registration;
	struct update2 update2;
	struct update update;

	switch (operation & ~BY_NUMBER) {
	case FILES:
		shunt_uring_look_numbers(argument, count);
		break;
	case FILES_UPDATE:
		if (shunt_copy_plain(&update, argument, sizeof(update)))
			shunt_uring_look_numbers((void *)(uintptr_t)update.numbers, count);
		break;
	case FILES2:
		if (shunt_copy_plain(&registration, argument, sizeof(registration)) &&
		    registration.numbers)
			shunt_uring_look_numbers((void *)(uintptr_t)registration.numbers,
						 registration.count);
		break;
	case FILES_UPDATE2:
		if (shunt_copy_plain(&update2, argument, sizeof(update2)))
			shunt_uring_look_numbers((void *)(uintptr_t)update2.numbers, update2.count);
		break;
	case RESIZE:
		shunt_uring_unwatched("its memory moves");
		break;
	}
}

long shunt_uring_register(int fd, uint32_t operation, void *argument, uint32_t count)
{
	if (shunt_uring_watching())
		look_registration(operation, argument, count);
	return real(syscall)(SYS_io_uring_register, (long)fd, (long)operation, argument,
			     (long)count);
}

/* Kernel aio knows nothing of a link either. There are no rings, so SHUNT_URING has no say. */
long shunt_uring_aio(unsigned long context, long count, void *list)
{
	struct iocb **at = list, *entry, copied;

	for (long i = 0; shunt_process.engine && i < count; i++)
		if (!shunt_copy_plain(&entry, &at[i], sizeof(entry)) ||
		    !shunt_copy_plain(&copied, entry, sizeof(copied)))
			break;
		else
			shunt_uring_use((int)copied.aio_fildes);
	return real(syscall)(SYS_io_submit, context, count, list);
}
