/* SPDX-License-Identifier: MIT */
#include "core/admin/admin.h"
#include "core/base/answer.h"
#include "core/base/identity.h"
#include "core/fd/own_fds.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "core/admin/command.h"
#include "core/link/trust.h"
#include "core/loop/deaf.h"
#include "core/loop/endpoint.h"
#include "core/service.h"

static int listen_as(struct shunt_engine *engine)
{
	char name[SHUNT_ENDPOINT_NAME], identity[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(&engine->identity, identity);
	snprintf(name, sizeof(name), "shunt/adm/%s", identity);
	return shunt_endpoint_listen(engine, name, SOCK_SEQPACKET, SHUNT_ADMIN_CLIENTS);
}

static void end(struct shunt_engine *engine, struct shunt_admin_client *client)
{
	shunt_own_fds_close(engine, client->fd);
	client->fd = -1;
}

void shunt_admin_close(struct shunt_service *service)
{
	shunt_own_fds_close(service->engine, service->admin.fd);
	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++)
		end(service->engine, &service->admin.clients[i]);
}

/* A free place, or that of who has had one for longest. */
static struct shunt_admin_client *place(struct shunt_service *service)
{
	struct shunt_admin_client *oldest = &service->admin.clients[0];

	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++) {
		struct shunt_admin_client *client = &service->admin.clients[i];

		if (client->fd < 0)
			return client;
		if (client->number < oldest->number)
			oldest = client;
	}
	end(service->engine, oldest);
	return oldest;
}

static void welcome(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, admin.source);
	struct shunt_engine *engine = service->engine;
	struct shunt_admin_client *client;
	int fd = shunt_porter_shuts(service) ? -EAGAIN : shunt_deaf_accept(engine, service->admin.fd, SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	if (!shunt_trust_commands(engine, fd)) {
		shunt_porter_dismiss(engine, fd);
		return;
	}
	client = place(service);
	client->fd = fd;
	client->number = ++service->admin.came;
	if (shunt_loop_add(&engine->loop, fd, &client->source, EPOLLIN))
		end(engine, client);
}

/* A new socket has room for an answer; who does not take it does without. */
static void reply(struct shunt_engine *engine, int fd, char sign, struct shunt_answer *answer)
{
	struct iovec iov[] = { { &sign, 1 }, { answer->text, answer->length } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	engine->sys->sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void hear(struct shunt_source *source, uint32_t events)
{
	struct shunt_admin_client *client = shunt_loop_owner(source, struct shunt_admin_client, source);
	struct shunt_engine *engine = client->engine;
	char line[SHUNT_COMMAND_MAX + 1];	/* one more shows that it is too long */
	struct iovec iov = { line, sizeof(line) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct shunt_answer answer;
	ssize_t got;
	int refused;

	(void)events;
	if (client->fd < 0)
		return;
	got = engine->sys->recvmsg(client->fd, &message, MSG_DONTWAIT);
	if (got > 0) {
		refused = shunt_command_run(engine, line, got, &answer);
		reply(engine, client->fd, refused ? '-' : '+', &answer);
	}
	end(engine, client);
}

void shunt_admin_open(struct shunt_service *service)
{
	struct shunt_admin *admin = &service->admin;

	admin->source.ready = welcome;
	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++) {
		admin->clients[i] = (struct shunt_admin_client) { .source.ready = hear, .engine = service->engine, .fd = -1 };
	}
	admin->fd = listen_as(service->engine);
	if (admin->fd >= 0)
		shunt_loop_add(&service->engine->loop, admin->fd, &admin->source, EPOLLIN);
}
