/* SPDX-License-Identifier: MIT */
#include "core/admin/admin.h"
#include "core/base/answer.h"
#include "core/base/identity.h"
#include "core/fd/own_fds.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/admin/command.h"
#include "core/admin/dump.h"
#include "core/link/trust.h"
#include "core/peer/deaf.h"
#include "core/loop/endpoint.h"
#include "core/service.h"

static int listen_as(struct shunt_engine *engine)
{
	char name[SHUNT_ENDPOINT_NAME], identity[SHUNT_IDENTITY_TEXT];

	shunt_identity_text(&engine->identity, identity);
	snprintf(name, sizeof(name), "shunt/adm/%s", identity);
	return shunt_endpoint_listen(&engine->porter, name, SOCK_SEQPACKET, SHUNT_ADMIN_CLIENTS);
}

static void client_end(struct shunt_engine *engine, struct shunt_admin_client *client)
{
	shunt_own_fds_close(&engine->fds, client->fd);
	client->fd = -1;
	free(client->text);
	client->text = NULL;
}

void shunt_admin_close(struct shunt_service *service)
{
	shunt_own_fds_close(&service->engine->fds, service->admin.fd);
	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++)
		client_end(service->engine, &service->admin.clients[i]);
}

/* A free place, or that of the oldest client. */
static struct shunt_admin_client *client_place(struct shunt_service *service)
{
	struct shunt_admin_client *oldest = &service->admin.clients[0];

	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++) {
		struct shunt_admin_client *client = &service->admin.clients[i];

		if (client->fd < 0)
			return client;
		if (client->number < oldest->number)
			oldest = client;
	}
	client_end(service->engine, oldest);
	return oldest;
}

static void client_hear(struct shunt_source *source, uint32_t events);

static void client_welcome(struct shunt_source *source, uint32_t events)
{
	struct shunt_service *service = shunt_loop_owner(source, struct shunt_service, admin.source);
	struct shunt_engine *engine = service->engine;
	struct shunt_admin_client *client;
	int fd = shunt_deaf_shuts(service) ?
			 -EAGAIN :
			 shunt_deaf_accept(engine, service->admin.fd, SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	if (!shunt_trust_commands(&engine->fds, fd)) {
		shunt_porter_dismiss(&engine->porter, fd);
		return;
	}
	client = client_place(service);
	client->fd = fd;
	client->number = ++service->admin.came;
	client->source.ready = client_hear;
	if (shunt_loop_add(&engine->loop, fd, &client->source, EPOLLIN))
		client_end(engine, client);
}

/* One packet. 1: there are more; 0: it was the last one; or -errno. */
static int send_packet(struct shunt_admin_client *client)
{
	size_t left = client->length - client->sent;
	size_t bytes = left < SHUNT_ADMIN_PACKET - 1 ? left : SHUNT_ADMIN_PACKET - 1;
	char sign = bytes < left ? '*' : client->sign;
	struct iovec iov[] = { { &sign, 1 }, { client->text + client->sent, bytes } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	if (client->engine->sys->sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	client->sent += bytes;
	return bytes < left;
}

/* Its place is free for another one, and its connection stays. */
static void client_leave(struct shunt_admin_client *client)
{
	int fd = client->fd;

	client->fd = -1;
	free(client->text);
	client->text = NULL;
	shunt_dump_hold(client->engine->service, fd);
}

/* A client that takes no more for now is asked again when there is room. */
static void send_packets(struct shunt_source *source, uint32_t events)
{
	struct shunt_admin_client *client = shunt_loop_owner(source, struct shunt_admin_client,
							     source);
	int rc;

	(void)events;
	if (client->fd < 0)
		return;
	do {
		rc = send_packet(client);
	} while (rc > 0);
	if (!rc && client->keeps)
		client_leave(client);
	else if (rc != -EAGAIN)
		client_end(client->engine, client);
}

/* Text and what follows it as one. NULL: no memory. */
static char *whole(struct shunt_answer *answer, size_t *length)
{
	char *text = malloc(answer->length + answer->more_length + 1);

	*length = answer->length + answer->more_length;
	if (text) {
		memcpy(text, answer->text, answer->length);
		if (answer->more)
			memcpy(text + answer->length, answer->more, answer->more_length);
	}
	return text;
}

static void client_reply(struct shunt_admin_client *client, char sign, struct shunt_answer *answer)
{
	client->sign = sign;
	client->keeps = answer->keeps;
	if (client->keeps) /* it sends a descriptor as soon as it is answered */
		shunt_porter_trust(&client->engine->porter, client->fd);
	client->text = whole(answer, &client->length);
	client->sent = 0;
	client->source.ready = send_packets;
	if (!client->text ||
	    shunt_loop_change(&client->engine->loop, client->fd, &client->source, EPOLLOUT))
		client_end(client->engine, client);
	else
		send_packets(&client->source, EPOLLOUT);
}

static void client_hear(struct shunt_source *source, uint32_t events)
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
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		client_end(engine, client);
		return;
	}
	refused = shunt_command_run(engine, line, (size_t)got, &answer);
	client_reply(client, refused ? '-' : '+', &answer);
	shunt_answer_end(&answer);
}

void shunt_admin_open(struct shunt_service *service)
{
	struct shunt_admin *admin = &service->admin;

	admin->source.ready = client_welcome;
	for (int i = 0; i < SHUNT_ADMIN_CLIENTS; i++) {
		admin->clients[i] = (struct shunt_admin_client) { .engine = service->engine, .fd = -1 };
	}
	admin->fd = listen_as(service->engine);
	if (admin->fd >= 0)
		shunt_loop_add(&service->engine->loop, admin->fd, &admin->source, EPOLLIN);
}
