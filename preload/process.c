/* SPDX-License-Identifier: MIT */
/*
 * Does this memory belong to this process alone? A child of vfork(), or of a clone() that shares memory, runs on its
 * parent's memory. Only its process id tells, which costs a system call. A word saves the question: it is set while
 * nobody but this process has ever been able to run on this memory. It is cleared before such a child is made.
 * MADV_WIPEONFORK clears it in the child of a fork, where the handlers of fork.c, if installed, set it anew.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "preload/process.h"

static struct shunt_files no_files;

struct shunt_process shunt_process = { .files = &no_files, .limits_lock = SHUNT_LOCK(LIMITS) };

static _Atomic int never;
static _Atomic int *alone = &never;	/* without such a page every question goes to the kernel */

void shunt_process_ours(void)
{
	shunt_process.pid = getpid();
	atomic_store(&shunt_process.leaver, 0);
	if (alone != &never)
		atomic_store(alone, 1);
}

void shunt_process_begin(void)
{
	void *page = mmap(NULL, sizeof(*alone), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (page != MAP_FAILED && !madvise(page, sizeof(*alone), MADV_WIPEONFORK))
		alone = page;
	else if (page != MAP_FAILED)
		munmap(page, sizeof(*alone));
	shunt_process_ours();
}

void shunt_process_shared(void)
{
	atomic_store(alone, 0);
}

bool shunt_process_foreign(void)
{
	return unlikely(!atomic_load(alone)) && shunt_process.pid && shunt_process.pid != getpid();
}

bool shunt_process_has_engine(void)
{
	return __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE) != &no_files;
}

void shunt_process_no_engine(void)
{
	__atomic_store_n(&shunt_process.files, &no_files, __ATOMIC_RELEASE);
	shunt_process.engine = NULL;
}

bool shunt_process_confined(void)
{
	return atomic_load_explicit(&shunt_process.confined, memory_order_relaxed);
}

/* The linker says where this library's code begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_helper(const char *address)
{
	struct shunt_files *files = __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE);
	unsigned int count = atomic_load(&files->helper_count);

	while (count--)
		if (address >= files->helpers[count].from && address < files->helpers[count].to)
			return true;
	return false;
}

bool shunt_process_is_code(const void *address)
{
	return ((const char *)address >= __ehdr_start && (const char *)address < etext) || is_helper(address);
}

void shunt_process_drop(int fd)
{
	int saved = errno;

	shunt_inside_do(shunt_file_closing(shunt_process.engine, fd));
	errno = saved;
}

int shunt_process_lowest(int fd, int least, unsigned int before)
{
	return shunt_process_foreign() ?
		       fd :
		       shunt_inside(shunt_numbers_lowest(shunt_engine_fds(shunt_process.engine), fd,
							 least, before));
}

/* The table is not that of a child of vfork(). */
struct shunt_file *shunt_process_look(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	if (file && file->kind == SHUNT_FILE_YOUNG)
		return shunt_inside(shunt_young_grown(shunt_process.engine, fd));
	return shunt_process_foreign() ?
		       NULL :
		       shunt_inside(shunt_numbers_look(shunt_engine_fds(shunt_process.engine), fd));
}

bool shunt_process_gone(int fd)
{
	return !shunt_process_foreign() &&
	       shunt_numbers_gone(shunt_engine_fds(shunt_process.engine), fd);
}

void shunt_process_closed(int fd)
{
	int saved = errno;

	if (!shunt_process_foreign())
		shunt_numbers_closed(shunt_engine_fds(shunt_process.engine), fd);
	errno = saved;
}

void shunt_process_fresh(int fd)
{
	struct shunt_file *file = shunt_files_get(shunt_process.files, fd);

	if (unlikely(file && file->kind != SHUNT_FILE_PRIVATE))
		shunt_process_drop(fd);
}

void shunt_process_finish(void)
{
	if (shunt_process_has_engine() && !shunt_process_foreign())
		shunt_inside_do(shunt_engine_finish(shunt_process.engine));
}
