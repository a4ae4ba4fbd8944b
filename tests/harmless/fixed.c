/* SPDX-License-Identifier: MIT */
/* A program that is not position-independent, with a table of calls: their addresses are in the program itself. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t (*const volatile writes)(int fd, const void *bytes, size_t length) = write;
static int (*const volatile makes)(int domain, int type, int protocol) = socket;

int main(void)
{
	if (writes != write || makes != socket)
		puts("an address has changed");
	return writes(STDOUT_FILENO, "sent\n", 5) != 5 || makes(AF_INET, SOCK_STREAM, 0) < 0;
}
