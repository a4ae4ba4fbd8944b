/* SPDX-License-Identifier: MIT */
#include "core/admin/dump.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/base/answer.h"
#include "core/base/scm_rights.h"
#include "core/fd/own_fds.h"
#include "core/service.h"
#include "core/trace/tap.h"

#define AGAIN 10000000ull /* ns until threads are looked for again that are at work with a tap */
#define RIGHTS_ROOM CMSG_SPACE(2 * sizeof(int)) /* one more shows that there are too many */

int shunt_dump_command(struct shunt_engine *engine, int count, char **words,
		       struct shunt_answer *answer)
{
	const struct shunt_dump *dump = &engine->service->dump;

	(void)count;
	(void)words;
	if (dump->fd >= 0 || dump->tap) {
		shunt_answer_put(answer, "another `shunt dump` listens\n");
		return -1;
	}
	shunt_answer_put(answer, "layout %d\n", SHUNT_TAP_LAYOUT);
	answer->keeps = true;
	return 0;
}

/* --- it ends --- */

/* The memory goes once no thread of the program is at work with it. Nobody waits for that. */
static void let_go(struct shunt_service *service)
{
	struct shunt_tapping *tapping = &service->engine->tapping;

	atomic_store(&tapping->tap, NULL);
	if (!service->dump.tap)
		return;
	if (atomic_load(&tapping->users)) {
		shunt_task_at(&service->tasks.dump, shunt_now(service->engine) + AGAIN);
		return;
	}
	shunt_tap_close(service->dump.tap);
	service->dump.tap = NULL;
}

void shunt_dump_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, dump);

	if (service->dump.fd < 0)
		let_go(service);
}

void shunt_dump_close(struct shunt_service *service)
{
	struct shunt_dump *dump = &service->dump;

	shunt_own_fds_close(&service->engine->fds, dump->fd);
	dump->fd = -1;
	let_go(service);
}

void shunt_dump_open(struct shunt_service *service)
{
	service->dump.fd = -1;
	if (service->dump.tap)
		shunt_task_at(&service->tasks.dump, 0);
}

/* --- it begins --- */

/* *fd: what has come with the packet, a descriptor of ours or -errno. False: the listener is gone. */
static bool receive(struct shunt_engine *engine, int from, int *fd)
{
	char byte, space[RIGHTS_ROOM];
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	ssize_t got;

	*fd = -EBADMSG;
	shunt_own_fds_begin(&engine->fds);
	got = engine->sys->recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got >= 0 && shunt_scm_rights_take(engine->sys, &message, fd, 1))
		*fd = shunt_own_fds_adopt(&engine->fds, *fd);
	shunt_own_fds_end(&engine->fds);
	return got > 0;
}

/* A listener may send any file, and closing that may take long. */
static struct shunt_tap *open_tap(struct shunt_engine *engine, int fd, const char **why)
{
	struct shunt_tap *tap = NULL;

	*why = "no memory has come";
	if (fd < 0)
		return NULL;
	tap = shunt_tap_open(fd, why);
	if (tap)
		shunt_own_fds_close(&engine->fds, fd);
	else
		shunt_porter_close_later(&engine->porter, fd);
	return tap;
}

/* One packet, as a command is answered. False: it does not take it. */
static bool answer(struct shunt_engine *engine, int fd, const char *why)
{
	char text[128];
	struct iovec iov = { .iov_base = text };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	iov.iov_len = (size_t)snprintf(text, sizeof(text), "%s%s\n", why ? "-" : "+",
				       why ? why : "it begins");
	return engine->sys->sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* Connections that are young count the bytes of calls that are the kernel's; none is made from here on. */
static void begin(struct shunt_engine *engine, struct shunt_tap *tap)
{
	engine->service->dump.tap = tap;
	atomic_store(&engine->tapping.tap, tap);
	engine->grow_young(engine, false);
	atomic_store(&tap->since, shunt_now(engine));
}

static void hear(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, dump.source);
	struct shunt_engine *engine = service->engine;
	struct shunt_tap *tap = NULL;
	const char *why = NULL;
	int fd;

	(void)events;
	if (service->dump.fd < 0)
		return;
	if (!service->dump.tap && receive(engine, service->dump.fd, &fd)) {
		tap = open_tap(engine, fd, &why);
		if (tap)
			begin(engine, tap);
		if (answer(engine, service->dump.fd, why) && tap)
			return;
	}
	shunt_dump_close(service);
}

void shunt_dump_hold(struct shunt_service *service, int fd)
{
	struct shunt_dump *dump = &service->dump;
	struct shunt_loop *loop = &service->engine->loop;

	dump->source.ready = hear;
	if (dump->fd >= 0 || dump->tap || shunt_loop_change(loop, fd, &dump->source, EPOLLIN))
		shunt_own_fds_close(&service->engine->fds, fd);
	else
		dump->fd = fd;
}
