/* SPDX-License-Identifier: MIT */
/* The other side of include/shunt/shunt.h: programs ask about their own connections. */
#define SHUNT_ITSELF
#include <fcntl.h>
#include <string.h>
#include "preload/process.h"
#include "shunt/shunt.h"

const char *shunt_api_version(void)
{
	return shunt_process_enabled() ? PACKAGE_VERSION : NULL;
}

/* A young connection, which is TCP's, stays one: asking changes nothing. */
int shunt_api_track(int fd)
{
	struct shunt_files *files = __atomic_load_n(&shunt_process.files, __ATOMIC_ACQUIRE);
	struct shunt_stream *stream = shunt_as_stream(shunt_files_get(files, fd));

	return stream ? shunt_stream_tracks(stream) : 0;
}

static int traffic_of(int fd, struct shunt_traffic *traffic)
{
	struct shunt_file *file = shunt_lookup(fd);
	struct shunt_stream *stream = shunt_as_stream(file);

	if (!shunt_process_enabled())
		return -ENOSYS;
	if (stream)
		return shunt_stream_traffic(shunt_process.engine, stream, traffic);
	if (file && (file->kind == SHUNT_FILE_PRIVATE || file->kind == SHUNT_FILE_CLOSED))
		return -EBADF;
	return real(fcntl)(fd, F_GETFD) < 0 ? -errno : -ENOTCONN;
}

/* `bytes`: the program's struct may be one of an earlier version, which has fewer members, or of a later one. */
int shunt_api_traffic(int fd, struct shunt_traffic *traffic, size_t bytes)
{
	struct shunt_traffic known = { 0 };
	int result = (int)shunt_result(traffic_of(fd, &known));

	if (result)
		return result;
	memset(traffic, 0, bytes);
	memcpy(traffic, &known, bytes < sizeof(known) ? bytes : sizeof(known));
	return 0;
}
