/* SPDX-License-Identifier: MIT */
#include "core/fd/uring_file.h"

enum {	/* IORING_SETUP_*, linux/io_uring.h */
	SQE128 = 1 << 10,
	NO_SQARRAY = 1 << 16,
	SQE_MIXED = 1 << 19,
};

static bool is_ring(struct shunt_files *files, int fd, struct shunt_uring_file **ring)
{
	struct shunt_file *file = shunt_files_get(files, fd);

	*ring = (struct shunt_uring_file *)file;
	return file && file->kind == SHUNT_FILE_RING;
}

void shunt_uring_file_describe(struct shunt_uring_file *ring)
{
	unsigned char *queue = atomic_load(&ring->queue), *entries = atomic_load(&ring->entries);
	struct shunt_uring_sq *sq = &ring->sq;

	if (!queue || !entries)
		return;
	sq->head = (uint32_t *)(queue + ring->head_at);
	sq->tail = (uint32_t *)(queue + ring->tail_at);
	sq->array = ring->flags & NO_SQARRAY ? NULL : (uint32_t *)(queue + ring->array_at);
	sq->entries = entries;
	sq->stride = sizeof(struct shunt_sqe) << !!(ring->flags & SQE128);
	sq->mixed = ring->flags & SQE_MIXED;
	atomic_store_explicit(&ring->ready, true, memory_order_release);
}

bool shunt_uring_file_knows(struct shunt_files *files, uintptr_t at)
{
	struct shunt_uring_file *ring;

	shunt_files_each(files, fd)
		if (is_ring(files, fd, &ring) && ((uintptr_t)atomic_load(&ring->queue) == at ||
						  (uintptr_t)atomic_load(&ring->entries) == at ||
						  (uintptr_t)atomic_load(&ring->completions) == at))
			return true;
	return false;
}

bool shunt_uring_file_escaped(const struct shunt_uring_file *ring, uint32_t head)
{
	uint32_t seen = atomic_load_explicit(&ring->seen, memory_order_relaxed);

	return (int32_t)(head - seen) > 0;
}

bool shunt_uring_file_any_escaped(struct shunt_files *files, pid_t pid)
{
	struct shunt_uring_file *ring;
	const struct shunt_uring_sq *sq;
	uint32_t head;

	shunt_files_each(files, fd)
		if (is_ring(files, fd, &ring) && atomic_load(&ring->maker) == pid &&
		    (sq = shunt_uring_file_sq(ring)) && shunt_uring_sq_load(sq->head, &head) &&
		    shunt_uring_file_escaped(ring, head))
			return true;
	return false;
}

void shunt_uring_file_share(struct shunt_files *files)
{
	struct shunt_uring_file *ring;

	shunt_files_each(files, fd)
		if (is_ring(files, fd, &ring))
			atomic_store(&ring->maker, 0);
}
