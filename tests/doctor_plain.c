/* SPDX-License-Identifier: MIT */
/* doctor_plain PORT: connects to the port, says its addresses, and ends with its input. For programs that no library gets into. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LIKE_GO
/* The note by which a program of Go's linker is known. */
__asm__(".pushsection .note.go.buildid,\"a\",@note\n.long 4, 4, 4\n.asciz \"Go\\0\"\n.asciz \"abc\"\n.popsection");
#endif

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) },
				       .sin_port = htons((uint16_t)atoi(argv[argc - 1])) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	if (connect(fd, (struct sockaddr *)&address, length) || write(fd, "x", 1) != 1 ||
	    read(fd, &byte, 1) != 1 || getsockname(fd, (struct sockaddr *)&address, &length))
		return 1;
	printf("127.0.0.1:%d 127.0.0.1:%s\n", ntohs(address.sin_port), argv[argc - 1]);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
