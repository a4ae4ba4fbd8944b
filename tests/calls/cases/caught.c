/* SPDX-License-Identifier: MIT */
/* Signals that are counted: SIGPIPE of the own doing, and SIGUSR1 that hits a thread in its call. */
#include "cases.h"

static __thread volatile sig_atomic_t pipes;

static void on_sigpipe(int sig)
{
	(void)sig;
	pipes++;
}

void count_sigpipe(struct end *e)
{
	struct sigaction sa = {.sa_handler = on_sigpipe};

	pipes = 0;
	MUST(e, sigaction(SIGPIPE, &sa, NULL));
}

int sigpipes(void)
{
	int n = pipes;

	pipes = 0;
	return n;
}

volatile sig_atomic_t caught;

void on_signal(int sig)
{
	(void)sig;
	caught++;
}

void catch_signal(struct end *e, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	caught = 0;
	MUST(e, sigaction(SIGUSR1, &sa, NULL));
}

void hit(struct end *e, struct job *j)
{
	asleep(e, j->tid);
	pthread_kill(j->thread, SIGUSR1);
}

void job_hit(struct end *e, struct job *j, void (*work)(struct job *j), int fd)
{
	job_start(e, j, work, fd);
	hit(e, j);
}

void report_caught(struct end *e, const char *what, struct job *j)
{
	job_join(e, j);
	errno = j->err;
	result(e, what, j->result);
	say(e, "%d caught", (int)caught);
}

void block_signal(sigset_t *blocked, sigset_t *open)
{
	sigemptyset(open);
	sigemptyset(blocked);
	sigaddset(blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, blocked, NULL);
}

void mask_signal(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(how, &set, NULL);
}
