#include <sys/ioctl.h>
#include "preload/process.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct shunt_sys shunt_process_sys;

/* Calls that are not wrapped are simply libc's. */
void shunt_process_fill_sys(void)
{
	shunt_process_sys = (struct shunt_sys) {
		.now = now,
		.sendmsg = shunt_real.sendmsg,
		.recvmsg = shunt_real.recvmsg,
		.getsockopt = shunt_real.getsockopt,
		.setsockopt = shunt_real.setsockopt,
		.getsockname = getsockname,
		.getpeername = getpeername,
		.shutdown = shunt_real.shutdown,
		.ioctl = shunt_real.ioctl,
		.fcntl = shunt_real.fcntl,
		.socket = shunt_real.socket,
		.bind = bind,
		.listen = shunt_real.listen,
		.accept4 = shunt_real.accept4,
		.connect = shunt_real.connect,
		.read = shunt_real.read,
		.write = shunt_real.write,
		.close = shunt_real.close,
		.ppoll = shunt_real.ppoll,
		.epoll_create1 = shunt_real.epoll_create1,
		.epoll_ctl = shunt_real.epoll_ctl,
		.epoll_pwait = shunt_real.epoll_pwait,
		.epoll_pwait2 = shunt_real.epoll_pwait2,
	};
}
