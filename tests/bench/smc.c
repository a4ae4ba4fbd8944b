/* SPDX-License-Identifier: MIT */
/* To be preloaded: TCP sockets of IPv4 become SMC ones, which is all that smc_run does. Debian has no smc_run. */
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

__attribute__((visibility("default")))
int socket(int domain, int type, int protocol)
{
	int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	if (domain == AF_INET && (type & 0xf) == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP))
		return real(AF_SMC, type, 0);
	return real(domain, type, protocol);
}
