/* SPDX-License-Identifier: MIT */
/*
 * The mesh of hosts, from a file that `shunt ping --matrix HOSTS --json` has written. The monitor sends
 * nothing itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

#define FILE_MAX (4U << 20)
#define HOSTS 64

/* NULL: `why` says why not. */
static json_t *load(int fd, struct stat *file, const char **why)
{
	json_t *root;

	*why = "it is no file, or too long";
	if (fstat(fd, file) || !S_ISREG(file->st_mode) || file->st_size > (off_t)FILE_MAX)
		return NULL;
	root = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
	*why = "it is no answer of shunt ping --matrix --json";
	if (json_is_array(json_object_get(root, "hosts")) &&
	    json_is_array(json_object_get(root, "ways")))
		return root;
	json_decref(root);
	return NULL;
}

static json_t *read_mesh(const char *path, struct stat *file, const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	json_t *root;

	*why = strerror(errno);
	if (fd < 0)
		return NULL;
	root = load(fd, file, why);
	close(fd);
	return root;
}

void monitor_matrix(struct shunt_page *page, const char *path)
{
	char clock[32], shown[512];
	struct stat from = { 0 };
	const char *why;
	json_t *root = read_mesh(path, &from, &why);

	shunt_page_heading(page, "Between hosts");
	if (root) {
		shunt_page_paragraph(page, "none", "shunt ping, %s",
				     shunt_page_clock(from.st_mtime, clock));
		shunt_page_mesh(page, root, HOSTS);
	} else {
		shunt_page_paragraph(page, "bad", "%s: %s",
				     shunt_escape(path, shown, sizeof(shown)), why);
	}
	json_decref(root);
}
