/* shunt adm: says one command to a process' control socket and shows the answer (core/command.h). */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/command.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt adm PID COMMAND [ARGUMENT...]\n\n"
	"Tells a shunted process what to do; only its user and root may. `shunt adm PID help` lists the\n"
	"commands.\n\n"
	"Exit status: 0, 1 if the process refused or cannot be asked, 2 for wrong usage.\n";

/* The words as one line. Its length; more than a command may have: it has no room. */
static size_t join(int count, char **words, char line[SHUNT_COMMAND_MAX + 1])
{
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		size_t bytes = strlen(words[i]);

		if (length + bytes + (i > 0) > SHUNT_COMMAND_MAX)
			return SHUNT_COMMAND_MAX + 1;
		if (i)
			line[length++] = ' ';
		memcpy(line + length, words[i], bytes);
		length += bytes;
	}
	return length;
}

static int complain(pid_t pid, const char *why)
{
	fprintf(stderr, "shunt adm: process %d: %s\n", (int)pid, why);
	return EXIT_FAILED;
}

static int say(pid_t pid, const char *line, size_t bytes)
{
	char answer[SHUNT_ANSWER_MAX + 1], why[256];
	int fd = shunt_process_connect(pid, "adm", SOCK_SEQPACKET, why, sizeof(why));
	ssize_t got;

	if (fd < 0)
		return complain(pid, why);
	got = send(fd, line, bytes, MSG_NOSIGNAL) < 0 ? -1 : recv(fd, answer, sizeof(answer), 0);
	close(fd);
	if (got <= 0 || (answer[0] != '+' && answer[0] != '-'))
		return complain(pid, "it gave no answer (stopped, or not yours?)");
	if (answer[0] == '+') {
		fwrite(answer + 1, 1, (size_t)got - 1, stdout);
		return 0;
	}
	fprintf(stderr, "shunt adm: process %d: %.*s", (int)pid, (int)got - 1, answer + 1);
	return EXIT_FAILED;
}

int shunt_adm(int argc, char **argv)
{
	char line[SHUNT_COMMAND_MAX + 1];
	size_t bytes;
	pid_t pid;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	pid = argc > 1 ? shunt_process_id(argv[1]) : 0;
	bytes = join(argc - 2, argv + 2, line);
	if (!pid || argc < 3 || !bytes || bytes > SHUNT_COMMAND_MAX) {
		fprintf(stderr, "shunt adm: it wants a process id and a command of at most %d bytes; `shunt adm --help` says how\n",
			SHUNT_COMMAND_MAX);
		return EXIT_USAGE;
	}
	return say(pid, line, bytes);
}
