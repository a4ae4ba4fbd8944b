/* SPDX-License-Identifier: MIT */
/*
 * Words of other hosts by way of the connection manager, to an engine that listens and asks. They
 * are questions, answers and refusals with any private data, and every event at any time. The
 * library is this file, and the device is the soft one. With an input of an odd size the engine has
 * a key: then nothing comes of words whose code is not right.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "core/base/keyfile.h"
#include "core/device/cm/inside.h"
#include "core/device/device.h"
#include "core/device/device_verbs.h"
#include "core/peer/remote.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "tests/fuzz/world.h"

#define IDS 32
#define PRIVATE_MAX 196	/* bytes of private data that an event may have: rdma_conn_param has a byte for it */

struct id {
	struct rdma_cm_id id;
	bool open, listens, asked, request;
	struct remote_question question;	/* asked by the engine, or of it */
};

static struct fuzz_input *in;
static struct id ids[IDS];
static int open_ids, answers, questions;
static struct ibv_context context;	/* of the device that a route goes through */
static struct ibv_device rdma_device = { .name = "fuzz0", .transport_type = IBV_TRANSPORT_IB };
static struct ibv_context iwarp_context;
static struct ibv_device iwarp_device = { .name = "fuzz1", .transport_type = IBV_TRANSPORT_IWARP };
static struct rdma_event_channel channel;
static const uint8_t secret[SHUNT_KEY_BYTES] = "a key";
static const uint8_t *key;	/* the engine's; NULL: it has none */
static bool is_sound;		/* the last question or answer has the right code */

static struct pending {
	struct rdma_cm_event event;
	uint8_t data[PRIVATE_MAX];
	bool waits, taken;
} pending;

/* --- in place of core/device/device_verbs.c and core/device/cm/library.c --- */

static int verbs_open_kind(struct shunt_device *device, const char *name,
			   const struct shunt_way *way, char *error, size_t bytes)
{
	return shunt_device_soft.open(device, name, way, error, bytes);
}

/* All ways lead by one of two devices. */
static bool verbs_leads(const struct shunt_device *device, const struct shunt_way *way)
{
	return (device == &device->group->devices[SHUNT_VERBS]) == !(way->port & 1);
}

static int verbs_make_channel(struct shunt_device *device)
{
	return shunt_device_soft.make_channel(device);
}

const struct shunt_device_kind shunt_device_verbs = {
	.name = "verbs", .number = 2, .streams = 64, .lanes = 1, .cq_lanes = 1, .max_inline = 1024, .open = verbs_open_kind,
	.leads = verbs_leads, .make_channel = verbs_make_channel,
};

void shunt_device_note_helpers(struct shunt_files *files)
{
	(void)files;
}

/* --- the library --- */

static struct rdma_event_channel *create_event_channel(void)
{
	channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel;
}

static void destroy_event_channel(struct rdma_event_channel *gone)
{
	(void)gone;
}

static struct id *new_id(void *of)
{
	for (int i = 0; i < IDS; i++) {
		if (ids[i].open)
			continue;
		memset(&ids[i], 0, sizeof(ids[i]));
		ids[i].open = true;
		ids[i].id.context = of;
		open_ids++;
		return &ids[i];
	}
	return NULL;
}

static struct id *known(struct rdma_cm_id *id)
{
	struct id *it = (struct id *)id;

	fuzz_check(it >= ids && it < ids + IDS && it->open);
	return it;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static int create_id(struct rdma_event_channel *of, struct rdma_cm_id **id, void *its, enum rdma_port_space space)
{
	struct id *made = new_id(its);

	(void)of, (void)space;
	if (!made)
		return fail(ENOMEM);
	*id = &made->id;
	return 0;
}

/* As the library's, it would wait for ever for an event that has not been acknowledged. */
static int destroy_id(struct rdma_cm_id *id)
{
	known(id)->open = false;
	fuzz_check(!pending.taken || (pending.event.id != id && pending.event.listen_id != id));
	if (pending.waits && (pending.event.id == id || pending.event.listen_id == id))
		pending.waits = false;
	open_ids--;
	return 0;
}

static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
	(void)level, (void)name, (void)value, (void)bytes;
	known(id);
	return 0;
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	(void)address;
	known(id);
	return 0;
}

static int listen_id(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	known(id)->listens = true;
	return 0;
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	(void)from, (void)to, (void)timeout_ms;
	known(id);
	return fuzz_below(in, 16) == 15 ? fail(ENODEV) : 0;
}

static int resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)timeout_ms;
	known(id);
	return fuzz_below(in, 16) == 15 ? fail(ENODEV) : 0;
}

static int connect_id(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	const struct cm_frame *frame = param->private_data;

	known(id)->asked = true;
	fuzz_check(param->private_data_len <= 56 && id->verbs != &iwarp_context);
	fuzz_check(frame->bytes ==
		   (key ? sizeof(struct remote_question) : SHUNT_REMOTE_QUESTION_BARE));
	memcpy(&known(id)->question, frame->data, frame->bytes);
	return fuzz_below(in, 16) == 15 ? fail(ENODEV) : 0;
}

/* Our answer to a question: nothing but what is meant to be said. */
static int reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	const struct cm_frame *frame = data;
	struct remote_answer answer = { .port = 0 };

	fuzz_check(known(id)->request && bytes <= 148 && (data || !bytes));
	answers += bytes > 0;
	if (!bytes)
		return 0;
	fuzz_check(frame->bytes == SHUNT_REMOTE_ANSWER_BARE || frame->bytes == sizeof(answer));
	memcpy(&answer, frame->data, frame->bytes);
	fuzz_check(!answer.port || (frame->bytes == sizeof(answer)) == (key != NULL));
	fuzz_check(!answer.port || !key || is_sound);
	return 0;
}

static int get_cm_event(struct rdma_event_channel *of, struct rdma_cm_event **event)
{
	(void)of;
	if (!pending.waits)
		return fail(EAGAIN);
	pending.waits = false;
	pending.taken = true;
	*event = &pending.event;
	return 0;
}

static int ack_cm_event(struct rdma_cm_event *event)
{
	fuzz_check(event == &pending.event && pending.taken);
	pending.taken = false;
	memset(pending.data, 0xee, sizeof(pending.data));	/* it is the library's again */
	return 0;
}

int cm_library_open(struct cm *cm, const char *file)
{
	(void)file;
	memset(cm, 0, sizeof(*cm));
	cm->calls = (struct cm_calls) { .create_event_channel = create_event_channel, .destroy_event_channel = destroy_event_channel,
					.create_id = create_id, .destroy_id = destroy_id, .set_option = set_option,
					.bind_addr = bind_addr, .listen = listen_id, .resolve_addr = resolve_addr,
					.resolve_route = resolve_route, .connect = connect_id, .reject = reject,
					.get_cm_event = get_cm_event, .ack_cm_event = ack_cm_event };
	return 0;
}

void cm_library_close(struct cm *cm)
{
	(void)cm;
}

/* --- what comes --- */

/* The answer of a peer with the key. */
static void make_right(enum cm_kind kind, const struct id *id, struct cm_frame *right)
{
	static const uint8_t chance[SHUNT_REMOTE_CHANCE] = "chance";
	struct remote_answer answer = { .port = 4711 };
	struct remote_question question;

	if (kind == CM_KIND_QUESTION)
		cm_frame_make(right, kind, &question,
			      shunt_remote_question_make(&question, key, chance));
	else
		cm_frame_make(right, kind, &answer,
			      shunt_remote_answer_make(&answer, key, &id->question));
}

/* The fuzzer remembers what it has compared: it may say by itself, or bring about, what is right. */
static void look_whether_sound(enum cm_kind kind, const struct id *id)
{
	struct cm_frame right;

	make_right(kind, id, &right);
	is_sound = !memcmp(pending.data, &right, CM_FRAME_HEAD + right.bytes);
}

/* A frame with a question or an answer, right or changed. */
static uint8_t some_sealed(enum cm_kind kind, const struct id *id)
{
	struct cm_frame *frame = (struct cm_frame *)pending.data;
	unsigned int how = fuzz_below(in, 8), whole, at;

	make_right(kind, id, frame);
	whole = CM_FRAME_HEAD + frame->bytes;
	for (; how >= 4; how--) {
		at = fuzz_below(in, whole);
		pending.data[at] ^= fuzz_byte(in);
	}
	look_whether_sound(kind, id);
	return kind == CM_KIND_QUESTION ? 56 : 148;
}

static uint8_t some_data(enum cm_kind kind, const struct id *id)
{
	static const uint8_t question[] = { 'S', 'h', CM_KIND_QUESTION, 8, 0x31, 0x41, 0x48, 0x53, SHUNT_WIRE_VERSION, 0, 0, 0 };
	static const uint8_t answer[] = { 'S', 'h', CM_KIND_ANSWER, 28, 0x31, 0x41, 0x48, 0x53, SHUNT_WIRE_VERSION, 0, 0, 0, 0x1f, 0x90 };
	unsigned int how = fuzz_below(in, 8), bytes = kind == CM_KIND_QUESTION ? 56 : 148;

	memset(pending.data, 0, sizeof(pending.data));
	is_sound = false;
	if (key && how < 6)
		return some_sealed(kind, id);
	if (how == 7) {
		bytes = fuzz_byte(in) % PRIVATE_MAX;
		fuzz_take(in, pending.data, bytes);
		if (key)
			look_whether_sound(kind, id);
		return bytes;
	}
	if (kind == CM_KIND_QUESTION)
		memcpy(pending.data, question, sizeof(question));
	else
		memcpy(pending.data, answer, sizeof(answer));
	for (; how > 3; how--)
		pending.data[fuzz_below(in, 40)] = fuzz_byte(in);
	return how == 3 ? fuzz_byte(in) % PRIVATE_MAX : bytes;
}

static void fill_route(struct rdma_cm_id *id)
{
	static struct ibv_sa_path_rec path;

	context.device = &rdma_device;
	context.cmd_fd = context.async_fd = -1;
	iwarp_context.device = &iwarp_device;
	iwarp_context.cmd_fd = iwarp_context.async_fd = -1;
	switch (fuzz_below(in, 8)) {
	case 7:
		id->verbs = NULL;
		break;
	case 6:
		id->verbs = &iwarp_context;
		break;
	default:
		id->verbs = &context;
	}
	id->port_num = 1;
	id->route.addr.src_sin.sin_family = fuzz_below(in, 4) == 3 ? AF_INET6 : AF_INET;
	id->route.addr.src_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	id->route.num_paths = fuzz_below(in, 2);
	id->route.path_rec = &path;
	fuzz_take(in, &path, fuzz_below(in, 2) * sizeof(path));
}

static void come(struct id *id, enum rdma_cm_event_type type, int status, enum cm_kind kind)
{
	pending.event = (struct rdma_cm_event) { .id = &id->id, .event = type, .status = status };
	pending.event.param.conn.private_data_len = kind ? some_data(kind, id) : 0;
	if (pending.event.param.conn.private_data_len)
		pending.event.param.conn.private_data = pending.data;
	pending.waits = true;
}

static void ask_us(struct id *listener)
{
	struct id *request = new_id(listener->id.context);

	if (!request)
		return;
	request->request = true;
	fill_route(&request->id);
	questions++;
	come(request, RDMA_CM_EVENT_CONNECT_REQUEST, 0, CM_KIND_QUESTION);
	pending.event.listen_id = &listener->id;
}

static void answer_us(struct id *id)
{
	static const int statuses[] = { 28, 28, 28, 28, 8, 10, 3, -ECONNREFUSED, -1, 0 };
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_REJECTED,
		RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ESTABLISHED,
		RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_TIMEWAIT_EXIT };
	enum rdma_cm_event_type type = types[fuzz_below(in, sizeof(types) / sizeof(types[0]))];

	/* A route is never spoken of without a device, nor a rejection without a question. */
	if (!id->id.verbs)
		fill_route(&id->id);
	if (!id->id.verbs && (type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ROUTE_RESOLVED))
		return;
	if (type == RDMA_CM_EVENT_REJECTED && !id->asked)
		return;
	come(id, type, statuses[fuzz_below(in, 10)], type == RDMA_CM_EVENT_REJECTED ? CM_KIND_ANSWER : 0);
}

static void some_event(void)
{
	struct id *id = &ids[fuzz_below(in, IDS)];
	int i;

	for (i = 0; i < IDS && (!id->open || id->request); i++)
		id = id == ids + IDS - 1 ? ids : id + 1;
	if (i == IDS || pending.waits)
		return;
	if (id->listens && fuzz_below(in, 16) < 15)
		ask_us(id);
	else if (id->listens)
		come(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, 0);
	else
		answer_us(id);
}

/* The directory of a host with an iWARP device is asked before anything is sound. */
static int refuse(int fd, const struct sockaddr *address, socklen_t length)
{
	bool directory = address->sa_family == AF_INET &&
			 ((const struct sockaddr_in *)address)->sin_port == htons(14791);

	if (directory)
		return fail(fuzz_below(in, 2) ? EINPROGRESS : ECONNREFUSED);
	if (fd < SIM_FDS && sim_sock_of[fd])
		return sim_sys.connect(fd, address, length);
	fuzz_check(address->sa_family == AF_UNIX || !key || is_sound);
	return address->sa_family == AF_UNIX ? sim_sys.connect(fd, address, length) : fail(ECONNREFUSED);
}

/* --- where gates listen: Unix sockets, so that neither the machine's ports nor its protocols matter --- */

static int gate_socket(int family, int type, int protocol)
{
	bool tcp = family != AF_UNIX && (type & SOCK_STREAM);

	return sim_sys.socket(tcp ? AF_UNIX : family, type, tcp ? 0 : protocol);
}

static int gate_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	static const struct sockaddr any = { .sa_family = AF_UNIX };
	int family = 0;
	socklen_t bytes = sizeof(family);

	if (address->sa_family == AF_UNIX || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes) || family != AF_UNIX)
		return sim_sys.bind(fd, address, length);
	/* A gate is at a wildcard; the rest is about to connect. */
	fuzz_check(((const struct sockaddr_in *)address)->sin_addr.s_addr || !key || is_sound);
	return bind(fd, &any, sizeof(any.sa_family));
}

static int gate_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	int result = sim_sys.getsockname(fd, address, length);

	if (!result && address->sa_family == AF_UNIX)
		*(struct sockaddr_in *)address = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(4711) };
	return result;
}

/* A connection of the victim's to another host; it asks who is there. */
static void go_remote(void)
{
	struct fuzz_conn *conn = fuzz_world_connect(FUZZ_VICTIM, FUZZ_HOSTILE);

	if (!conn)
		return;
	conn->sock[0].remote.sin_addr.s_addr = htonl(0xc0000201 + fuzz_below(in, 2));	/* TEST-NET-1 */
	fuzz_world_send(conn, 0, "x", 1, 0);
}

/* The owner of our address sends somebody, by any device. */
static void invite(void)
{
	struct shunt_service *service = fuzz_world.engine[FUZZ_VICTIM]->service;
	struct shunt_have have = { .type = SHUNT_HAVE_INVITE };

	fuzz_take(in, &have.invitation, sizeof(have.invitation));
	memset(have.tuple.local, fuzz_below(in, 2), sizeof(have.tuple.local));
	shunt_remote_invited(service, &have);
}

static void step(void)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];

	switch (fuzz_below(in, 8)) {
	case 0:
		go_remote();
		break;
	case 1:
		sim_clock += 1000000ull << fuzz_below(in, 12);
		break;
	case 2:
		if (fuzz_world.conns)
			fuzz_world_close(&fuzz_world.conn[fuzz_below(in, fuzz_world.conns)], 0);
		break;
	case 3:
		shunt_service_step(victim, 0);
		break;
	case 7:
		invite();
		break;
	default:
		some_event();
		if (pending.waits)
			shunt_remote_hear(victim->service);
	}
	fuzz_check(answers <= questions);
}

static void make(void)
{
	struct shunt_engine *victim = fuzz_world.engine[FUZZ_VICTIM];

	victim->device_choice = SHUNT_DEVICE_VERBS;
	victim->config.proof = true;
	victim->config.brief = 0; /* a connection asks at its first use */
	fuzz_world_sys()->connect = refuse;
	fuzz_world_sys()->socket = gate_socket;
	fuzz_world_sys()->bind = gate_bind;
	fuzz_world_sys()->getsockname = gate_getsockname;
	shunt_task_at(&victim->service->tasks.listen, 0);
	shunt_service_step(victim, 0);
	fuzz_check(victim->service->remote && open_ids == 1);
}

static void settle(void)
{
	fuzz_world_end();
	for (int i = 0; i < 5 && open_ids > 1; i++) {
		sim_clock += 10000000000ull;
		shunt_service_step(fuzz_world.engine[FUZZ_VICTIM], 0);
	}
	fuzz_check(open_ids == 1 && !pending.waits && !pending.taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	struct fuzz_input input = { data, data + size };
	/* Opens the gates, which stay. */
	static const uint8_t first[] = { 4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3, 0 };
	struct fuzz_input opening = { first, first + sizeof(first) };

	in = &opening;
	fuzz_world_begin();
	if (!made) {
		make();
		while (fuzz_more(in))
			step();
		fuzz_check(answers == 2);
		fuzz_world_grows();
		settle();
		fuzz_world_begin();
		made = true;
	}
	in = &input;
	fuzz_world.engine[FUZZ_VICTIM]->key = key = size & 1 ? secret : NULL;
	for (int i = 0; i < 100 && fuzz_more(in); i++)
		step();
	settle();
	fuzz_world.engine[FUZZ_VICTIM]->key = key = NULL;
	return 0;
}
