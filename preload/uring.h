/* SPDX-License-Identifier: MIT */
/* A program asks for a ring of io_uring (core/stream/uring.h), maps it, and registers descriptors with it. */
#ifndef SHUNT_PRELOAD_URING_H
#define SHUNT_PRELOAD_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* IORING_SETUP_*; headers of some systems are too old for them. */
enum {
	SHUNT_RING_SQPOLL = 1 << 1,
	SHUNT_RING_DISABLED = 1 << 6,
	SHUNT_RING_SQE128 = 1 << 10,
	SHUNT_RING_SINGLE_ISSUER = 1 << 12,
	SHUNT_RING_NO_MMAP = 1 << 14,
	SHUNT_RING_NUMBER_ONLY = 1 << 15,	/* REGISTERED_FD_ONLY */
	SHUNT_RING_SQE_MIXED = 1 << 19,
};
#define SHUNT_RING_FLAGS ((SHUNT_RING_SQE_MIXED << 1) - 1)	/* whose meaning is known here */

/* struct io_uring_params, which the kernel fills in. */
struct shunt_ring_params {
	uint32_t sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, wq_fd,
		reserved[3];
	struct {
		uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
		uint64_t user;
	} sq;
	struct {
		uint32_t head, tail, mask, entries, overflow, cqes, flags, reserved;
		uint64_t user;
	} cq;
};

/*
 * Before a ring is made with these IORING_SETUP_* flags. True: it shall not be made. Where it is made and cannot be
 * watched, the streams that were on links have gone back to TCP. `by_library`: liburing makes it. errno is kept.
 */
bool shunt_uring_refused(uint32_t flags, bool by_library);
/* Rings of this process are to be watched: some have been made. */
bool shunt_uring_watching(void);
/*
 * A ring that is to be watched has been made. `params`: as the kernel has filled it in. `queue`, `entries`,
 * `completions`: where its memory is mapped, NULL: not yet. errno is kept.
 */
void shunt_uring_made(int fd, const struct shunt_ring_params *params, void *queue, void *entries,
		      void *completions);
/* The ring is closed, or its number is the kernel's alone from now on. errno is kept. */
void shunt_uring_gone(int fd);
/* The program has mapped `at` from the file of this number, from this offset. */
void shunt_uring_mapped(int fd, off_t offset, void *at);
/* A ring uses sockets unseen: all streams go back to TCP and stay there, which is said once. errno is kept. */
void shunt_uring_unwatched(const char *why);
/* io_uring_setup(2), io_uring_register(2), io_submit(2) by syscall(): with errno. */
long shunt_uring_setup(uint32_t entries, void *params);
long shunt_uring_register(int fd, uint32_t operation, void *argument, uint32_t count);
long shunt_uring_aio(unsigned long context, long count, void *list);

#endif
