/* SPDX-License-Identifier: MIT */
/* Where libshunt.so is, and what makes a program load it. */
#include "tools/shunt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Next to this program in a build tree, else where `make install` put it. */
int shunt_library_locate(char path[PATH_MAX])
{
	static const char *const beside[] = { "/../.libs/libshunt.so", "/../lib/shunt/libshunt.so" };
	char self[PATH_MAX], try[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		for (size_t i = 0; slash && i < sizeof(beside) / sizeof(beside[0]); i++) {
			snprintf(try, sizeof(try), "%.*s%s", (int)(slash - self), self, beside[i]);
			if (realpath(try, path))
				return 0;
		}
	}
	return realpath(SHUNT_PKGLIBDIR "/libshunt.so", path) ? 0 : -1;
}

int shunt_library_find(char path[PATH_MAX])
{
	if (!shunt_library_locate(path))
		return 0;
	fprintf(stderr, "shunt: libshunt.so is neither in the build tree beside this program nor in "
			"%s: build it with `make`, or install it with `make install`\n",
		SHUNT_PKGLIBDIR);
	return -1;
}

int shunt_library_loads(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	void *code;

	if (fd < 0)
		return -errno;
	code = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (code == MAP_FAILED)
		rc = -errno;
	else
		munmap(code, 1);
	close(fd);
	return rc;
}

/* Whether an entry of LD_PRELOAD is a libshunt.so, whichever. */
static int is_ours(const char *entry, size_t len)
{
	static const char name[] = "libshunt.so";
	size_t n = sizeof(name) - 1;

	return len >= n && !memcmp(entry + len - n, name, n) &&
	       (len == n || entry[len - n - 1] == '/');
}

/*
 * Sets LD_PRELOAD to what it held besides us, followed by `library`, if any. Other libraries see
 * the same calls of the program as before, and none of ours.
 */
static int set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	size_t room = (library ? strlen(library) : 0) + (old ? strlen(old) : 0) + 2;
	char *value = malloc(room), *end = value;
	int rc;

	if (!value)
		return -1;
	while (old && *(old += strspn(old, ": "))) {
		size_t len = strcspn(old, ": ");

		if (!is_ours(old, len)) {
			end = mempcpy(end, old, len);
			*end++ = ':';
		}
		old += len;
	}
	if (library)
		end = stpcpy(end, library);
	else if (end != value)
		end--;
	*end = '\0';
	rc = *value ? setenv("LD_PRELOAD", value, 1) : unsetenv("LD_PRELOAD");
	free(value);
	return rc;
}

/* Adds "option=value" to a sanitizer's variable, unless it says something of that option. */
static int add_option(const char *variable, const char *option, const char *set)
{
	const char *old = getenv(variable);
	char *value;
	int rc;

	if (old && strstr(old, option))
		return 0;
	if (asprintf(&value, "%s%s%s=%s", old ? old : "", old && *old ? ":" : "", option, set) < 0)
		return -1;
	rc = setenv(variable, value, 1);
	free(value);
	return rc;
}

/*
 * A program built with AddressSanitizer ends at once where a library comes before the sanitizer's, unless told otherwise.
 * Before it is where we belong: what the program calls is ours first, and what we call the sanitizer's.
 * ThreadSanitizer does not see the locks of libraries that it has not instrumented. It reports races there and makes the
 * program exit with 66, unless told to leave such libraries alone.
 */
static int allow_sanitizers(void)
{
	return add_option("ASAN_OPTIONS", "verify_asan_link_order", "0") ||
	       add_option("TSAN_OPTIONS", "ignore_noninstrumented_modules", "1");
}

int shunt_library_preload(const char *path)
{
	if (strpbrk(path, ": ")) {
		fprintf(stderr, "shunt: cannot preload '%s': the dynamic linker takes no path with a "
				"space or a colon; move or install Shunt elsewhere\n", path);
		return -1;
	}
	if (set_preload(path) || allow_sanitizers()) {
		perror("shunt: environment");
		return -1;
	}
	return 0;
}

void shunt_library_unload(void)
{
	if (getenv("LD_PRELOAD"))
		set_preload(NULL);
}
