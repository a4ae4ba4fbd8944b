/* Where libshunt.so is, and LD_PRELOAD. */
#include "tools/shunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Next to this program in a build tree, else where `make install` put it. */
int shunt_library_find(char path[PATH_MAX])
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
	if (realpath(SHUNT_PKGLIBDIR "/libshunt.so", path))
		return 0;
	fprintf(stderr, "shunt: libshunt.so is neither in the build tree beside this program nor in "
			"%s: build it with `make`, or install it with `make install`\n",
		SHUNT_PKGLIBDIR);
	return -1;
}

/* Whether an entry of LD_PRELOAD is a libshunt.so, whichever. */
static int is_ours(const char *entry, size_t len)
{
	static const char name[] = "libshunt.so";
	size_t n = sizeof(name) - 1;

	return len >= n && !memcmp(entry + len - n, name, n) &&
	       (len == n || entry[len - n - 1] == '/');
}

/* Sets LD_PRELOAD to `first`, if any, and what it held besides us. */
static int set_preload(const char *first)
{
	const char *old = getenv("LD_PRELOAD");
	size_t room = (first ? strlen(first) : 0) + (old ? strlen(old) : 0) + 2;
	char *value = malloc(room), *end = value;
	int rc;

	if (!value)
		return -1;
	if (first)
		end = stpcpy(end, first);
	*end = '\0';
	while (old && *(old += strspn(old, ": "))) {
		size_t len = strcspn(old, ": ");

		if (!is_ours(old, len)) {
			if (end != value)
				*end++ = ':';
			end = mempcpy(end, old, len);
			*end = '\0';
		}
		old += len;
	}
	rc = *value ? setenv("LD_PRELOAD", value, 1) : unsetenv("LD_PRELOAD");
	free(value);
	return rc;
}

int shunt_library_preload(const char *path)
{
	if (strpbrk(path, ": ")) {
		fprintf(stderr, "shunt: cannot preload '%s': the dynamic linker takes no path with a "
				"space or a colon; move or install Shunt elsewhere\n", path);
		return -1;
	}
	if (set_preload(path)) {
		perror("shunt: LD_PRELOAD");
		return -1;
	}
	return 0;
}

void shunt_library_unload(void)
{
	if (getenv("LD_PRELOAD"))
		set_preload(NULL);
}
