/* SPDX-License-Identifier: MIT */
/* How much of a run really travelled on the link: the statistics that both engines wrote at exit. */
#include "tools/bench/bench.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* One direction of one process, all streams together. */
struct sums {
	json_int_t tcp, link, late, late_tcp;
};

struct side {
	json_int_t streams;
	struct sums tx, rx;
};

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void read_sums(const json_t *totals, const char *direction, struct sums *sums)
{
	const json_t *object = json_object_get(totals, direction);

	sums->tcp = number_of(object, "tcp");
	sums->link = number_of(object, "link");
	sums->late = number_of(object, "late");
	sums->late_tcp = number_of(object, "late_tcp");
}

static void read_totals(const json_t *totals, struct side *side)
{
	side->streams = number_of(totals, "streams");
	read_sums(totals, "tx", &side->tx);
	read_sums(totals, "rx", &side->rx);
}

static int read_side(const char *path, const char *name, struct side *side,
		     struct shunt_share *share)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	const json_t *totals = json_object_get(root, "totals");

	if (!json_is_object(totals)) {
		snprintf(share->why, sizeof(share->why), "the %s wrote no statistics", name);
		json_decref(root);
		return -1;
	}
	read_totals(totals, side);
	json_decref(root);
	return 0;
}

static double ratio(json_int_t part, json_int_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static double late_share(const struct side *side)
{
	return 1 - ratio(side->tx.late_tcp + side->rx.late_tcp, side->tx.late + side->rx.late);
}

static double whole_share(const struct side *side)
{
	json_int_t link = side->tx.link + side->rx.link;

	return ratio(link, link + side->tx.tcp + side->rx.tcp);
}

/*
 * Nothing is received that was not sent. A receiver that stops on the clock (iperf3) leaves
 * received bytes in its rings. At most that is the largest ring for each stream. A stream that came
 * back to TCP may leave as much again in the kernel's buffers.
 */
static int agrees(const struct side *from, const struct side *to)
{
	json_int_t missing = from->tx.link - to->rx.link;

	return missing >= 0 && missing <= (8 << 20) * (from->streams > 0 ? from->streams : 1);
}

/* There is nobody who could disagree. */
static void share_of_side(const struct side *side, struct shunt_share *share)
{
	share->agree = 1;
	share->late = side->tx.late + side->rx.late > 0;
	share->share = share->late ? late_share(side) : whole_share(side);
}

void shunt_share_read(const char *client_path, const char *server_path, struct shunt_share *share)
{
	struct side client, server;
	double a, b;

	memset(share, 0, sizeof(*share));
	if (read_side(client_path, "client", &client, share) ||
	    (server_path && read_side(server_path, "server", &server, share)))
		return;
	share->known = 1;
	if (!server_path) {
		share_of_side(&client, share);
		return;
	}
	share->late = client.tx.late + client.rx.late > 0 && server.tx.late + server.rx.late > 0;
	share->agree = agrees(&client, &server) && agrees(&server, &client);
	a = share->late ? late_share(&client) : whole_share(&client);
	b = share->late ? late_share(&server) : whole_share(&server);
	share->share = a < b ? a : b;
}

void shunt_share_of(const json_t *totals, struct shunt_share *share)
{
	struct side side;

	memset(share, 0, sizeof(*share));
	read_totals(totals, &side);
	share->known = side.tx.tcp + side.rx.tcp + side.tx.link + side.rx.link > 0;
	share_of_side(&side, share);
	if (!share->known)
		snprintf(share->why, sizeof(share->why),
			 "no connection carried a byte that Shunt has seen");
}

void shunt_share_worse(struct shunt_share *worst, const struct shunt_share *other)
{
	int agree = worst->agree && other->agree;

	if (!worst->known)
		return;
	if (!other->known || other->share < worst->share)
		*worst = *other;
	worst->agree = agree;
}

const char *shunt_share_text(const struct shunt_share *share, char buf[24])
{
	if (!share->known)
		return "?";
	/* Never rounded up to a hundred. */
	snprintf(buf, 24, "%.2f%%%s%s",
		 (double)(long)(share->share * 10000) / 100, share->late ? "" : "*",
		 share->agree ? "" : "!");
	return buf;
}

void shunt_share_legend_add(struct shunt_share_legend *legend, const struct shunt_share *share)
{
	legend->whole |= share->known && !share->late;
	legend->differ |= share->known && !share->agree;
	if (!share->known)
		memcpy(legend->unknown, share->why, sizeof(legend->unknown));
}

void shunt_share_legend_print(const struct shunt_share_legend *legend)
{
	if (legend->whole)
		puts("* no connection carried more than 256 KiB: the share is of all bytes (--seconds makes "
		     "runs\n  longer)");
	if (legend->differ)
		puts("! client and server disagree about how many bytes went by link");
	if (*legend->unknown)
		printf("? unknown: %s\n", legend->unknown);
}

int shunt_counters_add(const char *path, const char *const names[], double sums[], size_t count)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	const json_t *counters = json_object_get(root, "counters");
	int known = json_is_object(counters);

	for (size_t i = 0; known && i < count; i++)
		sums[i] += (double)number_of(counters, names[i]);
	json_decref(root);
	return known ? 0 : -1;
}
