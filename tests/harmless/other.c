/* SPDX-License-Identifier: MIT */
/* To be preloaded beside Shunt: how many sockets the program makes and numbers it closes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int sockets, closes;

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	sockets++;
	return next(domain, type, protocol);
}

int close(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");

	closes++;
	return next(fd);
}

static __attribute__((destructor)) void say(void)
{
	fprintf(stderr, "%d socket(), %d close()\n", sockets, closes);
}
