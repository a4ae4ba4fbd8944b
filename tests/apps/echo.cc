// SPDX-License-Identifier: MIT
// echo server PORT THREADS: sends back what comes, one epoll set for all threads.
// echo client PORT THREADS CONNECTIONS ROUNDS: threads that connect, send and check, again and again.
// echo thrown PORT ROUNDS: a handler throws an exception out of each call that waits with a signal mask.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static sockaddr_in address(int port)
{
	sockaddr_in at{};

	at.sin_family = AF_INET;
	at.sin_port = htons(port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

struct connection {
	int fd;
	std::string waiting;
};

// One thread has it at a time: until it is armed again. False: it has ended.
static bool serve(connection &c)
{
	char buffer[32768];

	for (;;) {
		while (!c.waiting.empty()) {
			ssize_t n = send(c.fd, c.waiting.data(), c.waiting.size(), MSG_NOSIGNAL);

			if (n < 0)
				return errno == EAGAIN;
			c.waiting.erase(0, n);
		}
		ssize_t n = recv(c.fd, buffer, sizeof(buffer), 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c.waiting.assign(buffer, n);
	}
}

static void worker(int set, int listener)
{
	for (;;) {
		epoll_event event;

		if (epoll_wait(set, &event, 1, -1) != 1)
			continue;
		connection *c = static_cast<connection *>(event.data.ptr);
		int op = EPOLL_CTL_MOD;

		if (!c) {
			int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd < 0)
				continue;
			c = new connection{fd, {}};
			op = EPOLL_CTL_ADD;
		} else if (!serve(*c)) {
			close(c->fd);
			delete c;
			continue;
		}
		event.events = EPOLLET | EPOLLONESHOT | EPOLLIN | (c->waiting.empty() ? 0u : +EPOLLOUT);
		event.data.ptr = c;
		epoll_ctl(set, op, c->fd, &event);
	}
}

static int server(int port, int threads)
{
	int set = epoll_create1(EPOLL_CLOEXEC), one = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sockaddr_in at = address(port);
	epoll_event event{};

	signal(SIGTERM, [](int) { _exit(0); });
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || listen(listener, 1000))
		return 1;
	event.events = EPOLLIN;
	epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
	std::vector<std::thread> all;
	for (int i = 0; i < threads; i++)
		all.emplace_back(worker, set, listener);
	for (auto &thread : all)
		thread.join();
	return 0;
}

static bool round_trip(int fd, const std::string &sent)
{
	std::string got(sent.size(), 0);
	size_t done = 0;

	// In two pieces, the first one short.
	if (send(fd, sent.data(), 1, 0) != 1 ||
	    send(fd, sent.data() + 1, sent.size() - 1, 0) != static_cast<ssize_t>(sent.size() - 1))
		return false;
	while (done < got.size()) {
		ssize_t n = recv(fd, &got[done], got.size() - done, 0);

		if (n <= 0)
			return false;
		done += n;
	}
	return got == sent;
}

static std::atomic<long> good;

static void client(int port, int number, int connections, int rounds)
{
	sockaddr_in at = address(port);

	for (int i = 0; i < connections; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

		if (connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)))
			perror("connect");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		for (int k = 0; k < rounds; k++) {
			std::string sent((number * 7919 + k * 31) % 20000 + 2, static_cast<char>('a' + (number + k) % 26));

			good += round_trip(fd, sent);
		}
		close(fd);
	}
}

static void thrower(int sig)
{
	throw sig;
}

// The signal is pending, and only the mask of the call lets it in.
template <typename Call> static int leaves(Call call)
{
	sigset_t usr1;
	int thrown = 0;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
	pthread_kill(pthread_self(), SIGUSR1);
	try {
		call();
	} catch (int sig) {
		thrown = sig == SIGUSR1;
	}
	return thrown;
}

static int thrown(int port, int rounds)
{
	sockaddr_in at = address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), set = epoll_create1(EPOLL_CLOEXEC), n[3] = {};
	epoll_event event{};
	sigset_t none;

	sigemptyset(&none);
	signal(SIGUSR1, thrower);
	if (connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)))
		return 1;
	event.events = EPOLLIN;
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	for (int i = 0; i < rounds; i++) {
		pollfd one{fd, POLLIN, 0};
		fd_set readable;

		if (!round_trip(fd, "once more"))
			return 1;
		FD_ZERO(&readable);
		FD_SET(fd, &readable);
		n[0] += leaves([&] { ppoll(&one, 1, nullptr, &none); });
		n[1] += leaves([&] { pselect(fd + 1, &readable, nullptr, nullptr, nullptr, &none); });
		n[2] += leaves([&] { epoll_pwait(set, &event, 1, -1, &none); });
	}
	printf("thrown out of ppoll %d, pselect %d, epoll_pwait %d; then %d\n", n[0], n[1], n[2],
	       round_trip(fd, "at last"));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "thrown"))
		return thrown(atoi(argv[2]), atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "server"))
		return server(atoi(argv[2]), atoi(argv[3]));
	if (argc != 6)
		return 2;
	std::vector<std::thread> all;
	for (int i = 0; i < atoi(argv[3]); i++)
		all.emplace_back(client, atoi(argv[2]), i, atoi(argv[4]), atoi(argv[5]));
	for (auto &thread : all)
		thread.join();
	printf("%ld round trips\n", good.load());
	return good != atol(argv[3]) * atol(argv[4]) * atol(argv[5]);
}
