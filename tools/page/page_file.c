/* SPDX-License-Identifier: MIT */
/* Pages and pictures in files. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tools/common/host.h"
#include "tools/page/page.h"

static int complain(const struct shunt_page *page)
{
	fprintf(stderr, "%s: %s: %s; give a file in a folder that can be written to\n", page->who,
		page->path, strerror(errno));
	return -1;
}

static int open_file(struct shunt_page *page, const char *who, const char *path, const char *mode)
{
	*page = (struct shunt_page) { .file = fopen(path, mode), .who = who, .path = path };
	return page->file ? 0 : complain(page);
}

/* Appending keeps what an earlier result has left there. */
int shunt_page_check(const char *who, const char *path)
{
	struct shunt_page page;

	return path && (open_file(&page, who, path, "ae") || shunt_page_close(&page)) ? -1 : 0;
}

int shunt_page_open(struct shunt_page *page, const char *who, const char *path)
{
	return open_file(page, who, path, "we");
}

int shunt_page_close(struct shunt_page *page)
{
	int failed = ferror(page->file);

	return !fclose(page->file) && !failed ? 0 : complain(page);
}

int shunt_page_start(struct shunt_page *page, const char *who, const char *path, const char *title)
{
	int rc = shunt_page_open(page, who, path);

	if (!rc)
		shunt_page_begin(page, title, NULL, 0, NULL);
	return rc;
}

int shunt_page_finish(struct shunt_page *page)
{
	char clock[32], foot[512];
	struct shunt_host host;

	shunt_host_read(&host, "");
	snprintf(foot, sizeof(foot), "%s; %d processors%s%s; %s; Shunt %s",
		 shunt_page_clock(time(NULL), clock), host.cpus, host.cpu[0] ? ", " : "", host.cpu,
		 host.kernel, PACKAGE_VERSION);
	shunt_page_end(page, foot);
	return shunt_page_close(page);
}
