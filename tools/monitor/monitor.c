/* SPDX-License-Identifier: MIT */
/* shunt monitor: the main thread, which looks at processes when a request waits for that, hears other hosts, and ends on a signal. */
#include "tools/monitor/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

static int fail(const char *what, int error)
{
	fprintf(stderr, "shunt monitor: %s: %s\n", what, strerror(error));
	return EXIT_FAILED;
}

/* The address with the port that it has got. -1: errno says why there is none. */
static int listen_at(union monitor_address *address)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
	    one = 1, error;
	socklen_t length = monitor_address_length(address);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, &address->any, length) && !listen(fd, 128) &&
	    !getsockname(fd, &address->any, &length))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static void say_address(const struct monitor_options *options)
{
	char text[MONITOR_ADDRESS_TEXT];

	monitor_address_text(&options->address, text, sizeof(text));
	if (options->json)
		printf("{\"schema\":1,\"pid\":%d,\"url\":\"http://%s/\"}\n", (int)getpid(), text);
	else
		printf("shunt monitor: http://%s/\n", text);
	fflush(stdout);
}

/* Blocked in all threads, so that only this descriptor has them. */
static int catch_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void serve(struct monitor *monitor, int signals)
{
	nfds_t count = 2 + SHUNT_REMOTE_FDS * monitor->options.others.count;
	struct pollfd *fds = calloc(count, sizeof(*fds));

	if (!fds)
		abort();
	fds[0] = (struct pollfd) { .fd = signals, .events = POLLIN };
	fds[1] = (struct pollfd) { .fd = monitor->bell, .events = POLLIN };
	for (;;) {
		int ms = monitor_hosts_prepare(monitor, fds + 2);

		if (poll(fds, count, ms) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (fds[0].revents)
			break;
		monitor_hosts_serve(monitor, fds + 2);
		if (!fds[1].revents)
			continue;
		monitor_look_renew(monitor);
		monitor_http_resume(monitor);
	}
	free(fds);
}

int shunt_view_monitor(int argc, char **argv)
{
	static struct monitor monitor;
	char address[MONITOR_ADDRESS_TEXT];
	int status = 0, listener, signals;

	if (monitor_options(&monitor.options, argc, argv, &status))
		return status;
	signals = catch_signals();
	status = monitor_look_open(&monitor);
	if (signals < 0 || status)
		return fail("no descriptors", signals < 0 ? errno : -status);
	listener = listen_at(&monitor.options.address);
	if (listener < 0)
		return fail(
			monitor_address_text(&monitor.options.address, address, sizeof(address)),
			errno);
	if (monitor_http_start(&monitor, listener))
		return EXIT_FAILED;
	say_address(&monitor.options);
	monitor_hosts_open(&monitor);
	serve(&monitor, signals);
	monitor_http_stop(&monitor);
	monitor_hosts_close(&monitor);
	monitor_look_close(&monitor);
	close(signals);
	return 0;
}
