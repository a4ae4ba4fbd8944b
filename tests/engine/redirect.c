/* SPDX-License-Identifier: MIT */
/* A claimant that is sent to another process, truly or not; and an acceptor that is refused. */
#include "tests/engine/bed.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/device/soft/soft.h"
#include "core/peer/claim_grant.h"
#include "core/peer/invite.h"
#include "core/service.h"
#include "core/stream/offer.h"
#include "core/stream/tuple.h"

/* Its claim waits at the accepting engine. */
static void claim(struct pair *pair)
{
	send_some(&pair->side[0], "x", 1, 0);
	for (int n = 0; !stream_link(stream_of(&pair->side[0])) || !engines[1]->service->parked;
	     n++) {
		assert_true(n < 10000);
		turn();
	}
}

/* A connection beside the one on the link, that is claimed. */
static struct pair waiting(void)
{
	struct pair pair;

	connect_pair(&pair);
	claim(&pair);
	return pair;
}

static struct shunt_message sent_to(uint32_t stream, const struct shunt_identity *process)
{
	return (struct shunt_message) { .type = SHUNT_MSG_REDIRECT,
					.stream = stream,
					.onward.process = *process };
}

/* As the acceptor answers when another process has said that it has the connection. */
static void send_on(struct pair *pair, const struct shunt_identity *process)
{
	struct shunt_message message = sent_to(stream_of(&pair->side[0])->seat->id, process);

	assert_int_equal(shunt_link_send(bed.lane[1]->link, &message, NULL, 0), 0);
	for (int i = 0; i < 20; i++)
		turn();
}

/* Its first use is told to the service thread. */
static bool is_looked_for(struct side *side)
{
	shunt_offer_used(engines[1], stream_of(side));
	return engines[1]->work.offers;
}

/* While a claim waits, connections from other ports are used without a look for it; the one that it is for is not. */
void others_are_not_looked_for(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair claimed, other;
	struct shunt_tuple tuple;
	uint16_t port = 1;

	(void)state;
	make_bed(&config, 1);
	claimed = waiting();
	connect_pair(&other);
	assert_int_equal(shunt_tuple_of(engines[1]->sys, claimed.side[1].fd, &tuple), 0);
	stream_of(&claimed.side[1])->caller = tuple.peer_port;
	while (shunt_offer_bit(port) == shunt_offer_bit(tuple.peer_port))
		port++;
	stream_of(&other.side[1])->caller = port;
	assert_false(is_looked_for(&other.side[1]));
	assert_true(is_looked_for(&claimed.side[1]));
	for (int i = 0; i < 20; i++)
		turn();
	assert_non_null(stream_link(stream_of(&claimed.side[1])));
	assert_int_equal(engines[1]->work.awaited, 0);
	for (int side = 0; side < 2; side++) {
		close_side(&claimed.side[side]);
		close_side(&other.side[side]);
	}
	end_bed();
}

/* A connection that waits for our own program is not sent on because another process says so. */
void ours_is_not_sent_on(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_worker worker = { .fd = -1 };
	struct shunt_tuple tuple = { .local_port = 0 };
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	pair = waiting();
	assert_int_equal(shunt_tuple_of(engines[1]->sys, pair.side[1].fd, &tuple), 0);
	assert_false(shunt_claim_is_had(engines[1]->service, &tuple, &worker));
	assert_non_null(engines[1]->service->parked);
	for (int side = 0; side < 2; side++)
		close_side(&pair.side[side]);
	for (int i = 0; i < 100; i++) {
		pair_skew += 100000000;
		turn();
	}
	end_bed();
}

static void assert_unclaimed(struct pair *pair, uint8_t state, enum shunt_cause cause)
{
	assert_int_equal(stream_state(stream_of(&pair->side[0])), state);
	assert_int_equal(stream_of(&pair->side[0])->why.plain, cause);
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	for (int i = 0; i < 10; i++)
		turn();
}

/* Nobody of that name is found: it stays on TCP, and the link lives. */
void sent_on_to_nobody(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	static const struct shunt_identity identities[] = { { { 0 } }, { { 0xff, 1, 2 } } };

	(void)state;
	make_bed(&config, 1);
	for (int i = 0; i < 2; i++) {
		struct pair pair = waiting();

		send_on(&pair, &identities[i]);
		assert_unclaimed(&pair, SHUNT_CANDIDATE, SHUNT_CAUSE_NO_SHUNT);
		assert_int_equal(bed.lane[0]->link->seated, bed.pairs);
		add_pair();	/* nothing is held against the address */
	}
	end_bed();
}

/* Sent in a circle: it comes back to where it was. */
void sent_on_twice(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	pair = waiting();
	send_on(&pair, &engines[1]->identity);
	assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_CANDIDATE);
	assert_non_null(engines[1]->service->parked);
	assert_int_equal(counted(0, "claims"), 3);
	send_on(&pair, &engines[1]->identity);
	assert_unclaimed(&pair, SHUNT_PLAIN, SHUNT_CAUSE_REDIRECTED_TWICE);
	end_bed();
}

static void assert_distrusted(int by, struct shunt_message message)
{
	uint64_t before = counted(by, "links_distrusted");

	shunt_link_send(bed.lane[!by]->link, &message, NULL, 0);
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(counted(by, "links_distrusted"), before + 1);
	for (int side = 0; side < 2; side++)
		close_side(&bed.pair[0].side[side]);
	for (int i = 0; i < 20; i++)
		turn();
}

void sent_on_out_of_turn(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	for (int by = 0; by < 2; by++) {	/* what is not claimed; by who may not */
		make_bed(&config, 1);
		assert_distrusted(by, sent_to(stream_of(&bed.pair[0].side[by])->seat->id,
					      &engines[1]->identity));
	}
}

/* Within a host nobody has a gate. */
void sent_on_to_a_gate(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_message message;
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	pair = waiting();
	message = sent_to(stream_of(&pair.side[0])->seat->id, &engines[1]->identity);
	message.onward.gate = 80;
	assert_distrusted(0, message);
	for (int side = 0; side < 2; side++)
		close_side(&pair.side[side]);
	turn();
}

/* The claimant does not know yet where it is to answer. */
void nothing_is_said_before_the_acceptance(void **state)
{
	static const enum shunt_message_type types[] = { SHUNT_MSG_LEAVE,   SHUNT_MSG_LEFT,
							 SHUNT_MSG_CONFIRM, SHUNT_MSG_EXPECT,
							 SHUNT_MSG_MOCK,    SHUNT_MSG_NONCE,
							 SHUNT_MSG_PROVEN,  SHUNT_MSG_NO_NONCE };
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct pair pair;

		make_bed(&config, 1);
		pair = waiting();
		assert_distrusted(
			0, (struct shunt_message) { .type = types[i],
						    .stream = stream_of(&pair.side[0])->seat->id });
		for (int side = 0; side < 2; side++)
			close_side(&pair.side[side]);
		turn();
		bed.pairs = 0;
	}
}

/* The initiator says it, and once: here it has. */
void a_confirmation_comes_once(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	for (int by = 0; by < 2; by++) {
		make_bed(&config, 1);
		assert_distrusted(by,
				  (struct shunt_message) {
					  .type = SHUNT_MSG_CONFIRM,
					  .stream = stream_of(&bed.pair[0].side[by])->seat->id });
	}
}

/* The acceptor has just given it a seat. */
static struct pair granted(void)
{
	struct pair pair = waiting();

	send_some(&pair.side[1], "y", 1, 0);
	while (stream_state(stream_of(&pair.side[1])) != SHUNT_LINKED)
		shunt_service_step(engines[1], 0);
	return pair;
}

/* And cannot let it go soon. */
static struct pair accepted(void)
{
	soft_qp_fault(bed.lane[1]->qp, SOFT_FAULT_STALL);
	put(0, 1, 100, 0);
	return granted();
}

/* As if the claimant had attached it, and closed. */
static void release(struct pair *pair)
{
	struct shunt_stream *claimant = stream_of(&pair->side[0]);

	claimant->seat->peer_id = stream_of(&pair->side[1])->seat->id;
	stream_request(claimant, SHUNT_WORK_RELEASE);
	shunt_group_poll_fully(&engines[1]->group);
}

/* The acceptor lets a refused seat go when all it has posted has arrived: until then it hears no more of it. */
void a_refusal_is_the_last_word(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE };

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct pair pair;

		make_bed(&config, 1);
		pair = accepted();
		message.stream = stream_of(&pair.side[1])->seat->id;
		if (what == 1)
			release(&pair);
		for (int i = what != 0; i < 2; i++)
			shunt_link_send(bed.lane[0]->link, &message, NULL, 0);
		shunt_service_step(engines[1], 0);
		if (what == 2)
			release(&pair);
		shunt_service_step(engines[1], 0);	/* the claimant has not heard that it has a seat */
		assert_int_equal(counted(1, "links_distrusted"), 1);
		for (int side = 0; side < 2; side++) {
			close_side(&pair.side[side]);
			close_side(&bed.pair[0].side[side]);
		}
		turn();
		bed.pairs = 0;
	}
}

/* The connecting program asks for the kernel's error, and is told it once. */
static void assert_told(int fd, int error)
{
	struct side side = { engines[0], fd };

	assert_int_equal(shunt_stream_take_error(stream_of(&side)), error);
	assert_int_equal(shunt_stream_take_error(stream_of(&side)), 0);
}

/* The kernel has told it to the program before the link is there, which would tell it again. */
void a_reset_told_before_the_acceptance(void **state)
{
	static const struct linger abort_now = { 1, 0 };
	struct shunt_config config = small_config(HYBRID);
	struct pair pair;
	char bytes[8];

	(void)state;
	make_bed(&config, 1);
	pair = granted();
	assert_int_equal(setsockopt(pair.side[1].fd, SOL_SOCKET, SO_LINGER, &abort_now, sizeof(abort_now)), 0);
	close_side(&pair.side[1]);
	assert_told(pair.side[0].fd, ECONNRESET);
	for (int i = 0; i < 20; i++) {
		assert_true(send_some(&pair.side[0], "z", 1, 0) < 0);
		shunt_service_step(engines[0], 0);
	}
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(receive_some(&pair.side[0], bytes, sizeof(bytes), 0), 1);
	assert_int_equal(receive_some(&pair.side[0], bytes, sizeof(bytes), 0), 0);
	close_side(&pair.side[0]);
	end_bed();
}

/* The link was faster than that, and has told it: the kernel alone would tell it again. */
void a_reset_before_the_acceptance(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	struct pair pair;
	char bytes[8];

	(void)state;
	make_bed(&config, 1);
	pair = granted();
	stream = stream_of(&pair.side[0]);
	assert_int_equal(receive_some(&pair.side[0], bytes, sizeof(bytes), 0), 1);
	stream_request(stream_of(&pair.side[1]), SHUNT_WORK_RESET);
	while (!stream_error(stream))
		shunt_group_poll_fully(&engines[0]->group);
	assert_int_equal(send_some(&pair.side[0], "x", 1, 0), -ECONNRESET);
	shunt_streams_plain(engines[0], stream, SHUNT_CAUSE_SPLICE);
	assert_int_equal(stream_state(stream), SHUNT_CANDIDATE);
	shunt_streams_reset_tcp(engines[1]->sys, pair.side[1].fd);
	assert_int_equal(receive_some(&pair.side[0], bytes, sizeof(bytes), 0), 0);
	shunt_streams_plain(engines[0], stream, SHUNT_CAUSE_SPLICE);
	assert_int_equal(stream_state(stream), SHUNT_PLAIN);
	assert_int_equal(receive_some(&pair.side[0], bytes, sizeof(bytes), 0), 0);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	end_bed();
}

/* A socket that the program has tried to connect where nobody listens, which it has been told. */
static int refused(struct sockaddr_in *nobody, int *deaf)
{
	socklen_t length = sizeof(*nobody);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*nobody = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	*deaf = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*deaf, (struct sockaddr *)nobody, length), 0);
	assert_int_equal(getsockname(*deaf, (struct sockaddr *)nobody, &length), 0);
	shunt_file_socket(engines[0], fd, true);
	assert_int_equal(connect(fd, (struct sockaddr *)nobody, length), -1);
	assert_int_equal(errno, EINPROGRESS);
	shunt_file_connected(engines[0], fd, -EINPROGRESS, (struct sockaddr *)nobody, length);
	assert_told(fd, ECONNREFUSED);
	assert_int_equal(connect(fd, (struct sockaddr *)nobody, length), -1);
	assert_int_equal(errno, ECONNABORTED);
	return fd;
}

/* The program tries its socket again: that connection is linked, and has errors of its own. */
void a_former_refusal_is_forgotten(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct sockaddr_in nobody;
	struct pair pair;
	int deaf;

	(void)state;
	make_bed(&config, 1);
	pair.side[0].fd = refused(&nobody, &deaf);
	assert_int_equal(fcntl(pair.side[0].fd, F_SETFL, 0), 0);
	connect_again(&pair);
	claim(&pair);
	send_some(&pair.side[1], "y", 1, 0);
	while (stream_state(stream_of(&pair.side[0])) == SHUNT_CANDIDATE)
		turn();
	assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_LINKED);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	close(deaf);
	end_bed();
}

/* The first is given up while the program tries again, and is refused once more. */
void another_refusal_is_told(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	socklen_t length = sizeof(int);
	struct sockaddr_in nobody;
	struct side side;
	int deaf, error;

	(void)state;
	make_bed(&config, 1);
	side = (struct side) { engines[0], refused(&nobody, &deaf) };
	assert_int_equal(connect(side.fd, (struct sockaddr *)&nobody, sizeof(nobody)), -1);
	assert_int_equal(errno, EINPROGRESS);
	shunt_streams_plain(engines[0], stream_of(&side), SHUNT_CAUSE_SPLICE);
	assert_int_equal(stream_state(stream_of(&side)), SHUNT_PLAIN);
	assert_int_equal(getsockopt(side.fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
	assert_int_equal(error, ECONNREFUSED);
	close_side(&side);
	close(deaf);
	end_bed();
}
