/* SPDX-License-Identifier: MIT */
#include "core/base/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hmac.h"

static const uint8_t *key_fail(const char *what, const char **why)
{
	*why = what;
	return NULL;
}

static const char *name_of(int error)
{
	const char *name = strerrordesc_np(error);

	return name ? name : "unknown error";
}

/* Another user must not be able to read or replace a key. */
static const char *find_fault(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return "it belongs neither to this user nor to root";
	if (st->st_mode & (st->st_uid ? 0077 : 0037))
		return st->st_uid ? "others than its owner have rights to it (chmod 600)" :
				    "others than root and its group have rights to it (chmod 640)";
	if (st->st_size < SHUNT_KEYFILE_MIN)
		return "it has less than 16 bytes";
	return st->st_size > SHUNT_KEYFILE_MAX ? "it has more than 4096 bytes" : NULL;
}

/* All of the file, and whether it is as long as it was said to be. */
static bool read_all(int fd, uint8_t *bytes, size_t count)
{
	size_t done = 0;

	while (done <= count) {
		ssize_t got = read(fd, bytes + done, count + 1 - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return !got && done == count;
		done += (size_t)got;
	}
	return false;
}

/* HKDF's extract (RFC 5869): the salt is the HMAC's key. */
static void derive(const uint8_t *bytes, size_t count, uint8_t key[SHUNT_KEY_BYTES])
{
	static const char salt[] = "shunt between hosts";
	struct shunt_hmac hmac;

	shunt_hmac_begin(&hmac, salt, sizeof(salt) - 1);
	shunt_hmac_add(&hmac, bytes, count);
	shunt_hmac_end(&hmac, key);
}

static const uint8_t *key_keep(int fd, size_t count, const char **why)
{
	uint8_t bytes[SHUNT_KEYFILE_MAX + 1];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *key;

	if (!read_all(fd, bytes, count)) {
		explicit_bzero(bytes, sizeof(bytes));
		return key_fail("it could not be read whole", why);
	}
	key = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (key != MAP_FAILED) {
		madvise(key, page, MADV_DONTDUMP);
		derive(bytes, count, key);
		mprotect(key, page, PROT_READ);
	}
	explicit_bzero(bytes, sizeof(bytes));
	return key != MAP_FAILED ? key : key_fail("out of memory", why);
}

const uint8_t *shunt_keyfile_read(const char *path, const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	const uint8_t *key = NULL;
	struct stat st;

	if (fd < 0)
		return key_fail(errno == ELOOP ? "it is a symbolic link" : name_of(errno), why);
	*why = fstat(fd, &st) ? name_of(errno) : find_fault(&st);
	if (!*why)
		key = key_keep(fd, (size_t)st.st_size, why);
	close(fd);
	return key;
}
