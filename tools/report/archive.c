/* SPDX-License-Identifier: MIT */
#include "tools/report/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 512

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
		magic[6], version[2], user[32], group[32], device[16], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

int shunt_archive_begin(struct shunt_archive *archive, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	*archive = (struct shunt_archive) { fdopen(fd, "w"), path };
	if (archive->file)
		return 0;
	close(fd);
	unlink(path);
	return -ENOMEM;
}

/* The sum of a header's bytes, with spaces in place of itself. */
static unsigned int sum(const struct header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned int total = 0;

	for (size_t i = 0; i < sizeof(*header); i++)
		total += bytes[i];
	return total;
}

void shunt_archive_add(struct shunt_archive *archive, const char *name, const char *text,
		       size_t length)
{
	static const char zeros[BLOCK];
	struct header header = { .mode = "0000600",
				 .uid = "0000000",
				 .gid = "0000000",
				 .checksum = "       ",
				 .type = '0',
				 .magic = "ustar",
				 .version = "00" };

	header.checksum[7] = ' ';
	snprintf(header.name, sizeof(header.name), "%s", name);
	snprintf(header.size, sizeof(header.size), "%011lo", (unsigned long)length);
	snprintf(header.mtime, sizeof(header.mtime), "%011lo", (unsigned long)time(NULL));
	snprintf(header.checksum, sizeof(header.checksum), "%06o", sum(&header));
	header.checksum[7] = ' ';
	fwrite(&header, 1, sizeof(header), archive->file);
	fwrite(text, 1, length, archive->file);
	fwrite(zeros, 1, (BLOCK - length % BLOCK) % BLOCK, archive->file);
}

int shunt_archive_end(struct shunt_archive *archive)
{
	static const char end[2 * BLOCK];
	int failed;

	fwrite(end, 1, sizeof(end), archive->file);
	failed = ferror(archive->file) || fflush(archive->file);
	failed |= fclose(archive->file) != 0;
	if (!failed)
		return 0;
	failed = errno ? errno : EIO;
	unlink(archive->path);
	return -failed;
}
