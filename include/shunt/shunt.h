/* SPDX-License-Identifier: MIT */
/*
 * For programs that want to know whether Shunt carries their connections. Nothing is linked: the
 * functions ask the library that the process was started with (`shunt run`, LD_PRELOAD). Without it
 * they answer "no". So one binary runs bare and shunted. libshunt(7) is the manual, `pkg-config
 * --cflags shunt` finds this file.
 *
 * The library is looked for once for each source file, by a constructor (RTLD_DEFAULT of dlsym(3)). Until that has run,
 * the answers are "no". In a statically linked program they always are.
 *
 * No function waits for the network. All may be called by any thread, and by handlers of signals. errno changes
 * only where a function says that it has failed.
 */
#ifndef SHUNT_SHUNT_H
#define SHUNT_SHUNT_H

#include <stddef.h>
#include <stdint.h>

/* Bits of shunt_track(): directions of a connection. */
#define SHUNT_SENDS 1	/* the next byte that the program sends goes by the link */
#define SHUNT_RECEIVES 2	/* the next byte that the program receives comes by the link */

/* Bytes of the program's since the connection was made, or came into this process. */
struct shunt_traffic {
	uint64_t sent_on_link;	/* accepted by send(), write() and their kind; perhaps not received yet */
	uint64_t sent_on_tcp;
	uint64_t received_on_link;	/* given to the program */
	uint64_t received_on_tcp;
};

#ifndef SHUNT_ITSELF

#include <dlfcn.h>
#include <errno.h>

/* Names of the library, for languages that have no C header: these do what the functions below say. */
union shunt_found_ {
	void *symbol;
	const char *(*version)(void);	/* shunt_api_version */
	int (*track)(int fd);	/* shunt_api_track */
	int (*traffic)(int fd, struct shunt_traffic *traffic, size_t bytes);	/* shunt_api_traffic */
};

static struct {
	union shunt_found_ version, track, traffic;
} shunt_found_;

__attribute__((constructor)) static void shunt_find_(void)
{
	void *const everywhere = NULL;	/* RTLD_DEFAULT, which <dlfcn.h> gives with _GNU_SOURCE alone */

	shunt_found_.version.symbol = dlsym(everywhere, "shunt_api_version");
	shunt_found_.track.symbol = dlsym(everywhere, "shunt_api_track");
	shunt_found_.traffic.symbol = dlsym(everywhere, "shunt_api_traffic");
}

/* The version of the library in this process, as "0.1.0", which stays. NULL: no library, or SHUNT_ENABLE=0. */
static inline const char *shunt_version(void)
{
	return shunt_found_.version.symbol ? shunt_found_.version.version() : NULL;
}

/*
 * The directions of `fd` that are on a link now: SHUNT_SENDS | SHUNT_RECEIVES. 0: TCP has both, or `fd` is no TCP
 * connection. Either may change at any time, so this is for people and statistics, not for decisions. Takes no lock.
 */
static inline int shunt_track(int fd)
{
	return shunt_found_.track.symbol ? shunt_found_.track.track(fd) : 0;
}

/*
 * 0, with the bytes by track. On failure -1 with errno. ENOSYS: no library; EBADF: `fd` is not
 * open; ENOTCONN: the library knows no TCP connection of this number. Takes a lock for a few system
 * calls, as `shunt stat` does: not for each send.
 */
static inline int shunt_traffic(int fd, struct shunt_traffic *traffic)
{
	if (shunt_found_.traffic.symbol)
		return shunt_found_.traffic.traffic(fd, traffic, sizeof(*traffic));
	errno = ENOSYS;
	return -1;
}

#endif
#endif
