/* SPDX-License-Identifier: MIT */
/*
 * A control block of io_submit(2) may name an eventfd that is signalled when its operation is over. The
 * kernel looks at that descriptor before it writes to the block, and starts the operation afterwards. In
 * memory that cannot be written nothing is ever started: an eventfd gives EFAULT, any other file EINVAL.
 */
#include "core/fd/eventfd.h"
#include <errno.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The file of the operation is the descriptor itself: it is there, and is not touched. */
static void *block_naming(int fd, size_t bytes)
{
	struct iocb *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

	if (block == MAP_FAILED)
		return NULL;
	*block = (struct iocb) { .aio_fildes = (__u32)fd, .aio_resfd = (__u32)fd, .aio_flags = IOCB_FLAG_RESFD,
				 .aio_lio_opcode = IOCB_CMD_NOOP };
	if (mprotect(block, bytes, PROT_READ)) {
		munmap(block, bytes);
		return NULL;
	}
	return block;
}

static bool refuses_memory_alone(aio_context_t *context, struct iocb *block)
{
	if (!*context && syscall(SYS_io_setup, 1, context))
		return false;
	return syscall(SYS_io_submit, *context, 1, &block) == -1 && errno == EFAULT;
}

bool shunt_eventfd_is(unsigned long *context, int fd)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	int saved = errno;
	void *block = block_naming(fd, bytes);
	bool is = block && refuses_memory_alone(context, block);

	if (block)
		munmap(block, bytes);
	errno = saved;
	return is;
}
