/* SPDX-License-Identifier: MIT */
/* The table of variables: defaults, every kind of value, and what is said about a bad one. */
#include <setjmp.h>
#include <stdarg.h>
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/config.h"
#include "core/base/config_review.h"

/* One variable is enough of an environment for most tests. */
struct env {
	const char *name, *value;
};

/* A word's name is lower case, and its value SHUNT_TUNE's. */
static size_t add_word(char *text, size_t room, const struct env *env)
{
	return *env->name < 'a' ? 0 : (size_t)snprintf(text, room, "%s=%s,", env->name, env->value);
}

static const char *env_get(const char *name, void *arg)
{
	const struct env *env = arg;
	static char words[256];

	if (env && !strcmp(name, "SHUNT_TUNE"))
		return add_word(words, sizeof(words), env) ? words : NULL;
	return env && !strcmp(env->name, name) ? env->value : NULL;
}

static const char *env_get_two(const char *name, void *arg)
{
	const struct env *env = arg;
	static char words[512];
	const char *value;

	if (!strcmp(name, "SHUNT_TUNE")) {
		words[0] = '\0';
		add_word(words + add_word(words, sizeof(words) / 2, &env[0]), sizeof(words) / 2,
			 &env[1]);
		return words;
	}
	value = env_get(name, (void *)&env[0]);
	return value ? value : env_get(name, (void *)&env[1]);
}

struct complaints {
	int count;
	char last[SHUNT_CONFIG_LINE_MAX];
};

static void complain(const char *line, void *arg)
{
	struct complaints *seen = arg;

	assert_null(strchr(line, '\n'));
	seen->count++;
	snprintf(seen->last, sizeof(seen->last), "%s", line);
}

/* Loads with one variable set; the number of invalid values must be that of the complaints. */
static int load(struct shunt_config *c, const char *name, const char *value,
		struct complaints *seen)
{
	struct env env = { name, value };
	int invalid;

	memset(seen, 0, sizeof(*seen));
	invalid = shunt_config_load(c, env_get, &env, complain, seen);
	assert_int_equal(invalid, seen->count);
	return invalid;
}

static void test_defaults(void **state)
{
	struct shunt_config c;

	(void)state;
	memset(&c, 0xff, sizeof(c));
	assert_int_equal(shunt_config_load(&c, env_get, NULL, NULL, NULL), 0);
	assert_int_equal(c.enable, 1);
	assert_string_equal(c.device, "auto");
	assert_int_equal(c.ring_min, 16384);
	assert_int_equal(c.arena_bytes, 1ULL << 30);
	assert_string_equal(c.log_file, "");
	for (size_t i = 0; i < shunt_config_count; i++)
		assert_false(shunt_config_changed(&shunt_config_rows[i], &c));
}

static void test_numbers(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	assert_int_equal(load(&c, "spin_us", "0", &seen), 0);
	assert_int_equal(c.spin_us, 0);
	assert_int_equal(load(&c, "spin_us", "1000", &seen), 0);
	assert_int_equal(c.spin_us, 1000);
	assert_int_equal(load(&c, "arena", "32G", &seen), 0);
	assert_int_equal(c.arena_bytes, 32ULL << 30);
	assert_int_equal(load(&c, "frag", "4097", &seen), 0);
	assert_int_equal(c.frag_bytes, 4097);
	assert_int_equal(load(&c, "seed", "9223372036854775808", &seen), 0);
	assert_int_equal(c.seed, 1ULL << 63);
}

static void test_powers_of_two(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	load(&c, "ring_min", "5k", &seen);
	assert_int_equal(c.ring_min, 8192);
	load(&c, "ring_min", "64K", &seen);
	assert_int_equal(c.ring_min, 65536);
	load(&c, "rq", "16383", &seen);
	assert_int_equal(c.rq_depth, 16384);
}

static void test_auto(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	load(&c, "mr_threshold", "64K", &seen);
	assert_int_equal(c.mr_threshold, 65536);
	assert_int_equal(load(&c, "mr_threshold", "auto", &seen), 0);
	assert_int_equal(c.mr_threshold, UINT64_MAX);
	assert_int_equal(load(&c, "mr_threshold", "automatic", &seen), 1);
	assert_non_null(strstr(seen.last, "auto or 0..1G"));
	assert_non_null(strstr(seen.last, "default is used: auto"));
	assert_int_equal(load(&c, "rq", "auto", &seen), 1);
}

static void test_bad_numbers(void **state)
{
	static const char *const values[] = {
		"abc", "-1", "+1", "1001", "1K", "0x10", "1.5", "1e2",
		"18446744073709551616", "99999999999999999999999999", "\xff\n",
	};
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(load(&c, "spin_us", values[i], &seen), 1);
		assert_int_equal(c.spin_us, 25);
		assert_non_null(strstr(seen.last, "spin_us="));
		assert_non_null(strstr(seen.last, "0..1000 us"));
		assert_non_null(strstr(seen.last, "default is used: 25"));
	}
	assert_int_equal(load(&c, "SHUNT_TOS", " 1", &seen), 1);
	assert_int_equal(load(&c, "SHUNT_TOS", "1 ", &seen), 1);
	assert_int_equal(load(&c, "arena", "17179869184G", &seen), 1);
	assert_int_equal(load(&c, "arena", "65G", &seen), 1);
	assert_int_equal(load(&c, "arena", "1GB", &seen), 1);
	assert_non_null(strstr(seen.last, "arena=1GB"));
	assert_non_null(strstr(seen.last, "16M..32G"));
	assert_int_equal(c.arena_bytes, 1ULL << 30);
}

static void test_words(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	assert_int_equal(load(&c, "retain", "always", &seen), 0);
	assert_int_equal(c.retain, 1);
	assert_int_equal(load(&c, "SHUNT_LOG", "debug", &seen), 0);
	assert_int_equal(c.log_level, 4);
	assert_int_equal(load(&c, "SHUNT_ENABLE", "off", &seen), 0);
	assert_int_equal(c.enable, 0);
	assert_int_equal(load(&c, "SHUNT_ENABLE", "true", &seen), 0);
	assert_int_equal(c.enable, 1);
	assert_int_equal(load(&c, "SHUNT_ENABLE", "2", &seen), 1);
	assert_int_equal(load(&c, "retain", "alway", &seen), 1);
	assert_non_null(strstr(seen.last, "auto|always"));
	assert_int_equal(load(&c, "retain", "auto|always", &seen), 1);
	assert_int_equal(c.retain, 0);
}

static void test_device(void **state)
{
	static const struct {
		const char *text;
		int choice;
		const char *name;
	} good[] = { { "", SHUNT_DEVICE_AUTO, NULL }, { "auto", SHUNT_DEVICE_AUTO, NULL },
		     { "soft", SHUNT_DEVICE_SOFT, NULL }, { "verbs", SHUNT_DEVICE_VERBS, NULL },
		     { "verbs:mlx5_0", SHUNT_DEVICE_VERBS, "mlx5_0" }, { "none", SHUNT_DEVICE_NONE, NULL } };
	static const char *const bad[] = { "sof", "auto|soft", "verbs:", "soft:x", "none:x" };
	struct complaints seen;
	struct shunt_config c;
	const char *name;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(load(&c, "SHUNT_DEVICE", good[i].text, &seen), 0);
		assert_int_equal(shunt_config_device(c.device, &name), good[i].choice);
		assert_true(good[i].name ? name && !strcmp(name, good[i].name) : !name);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, "SHUNT_DEVICE", bad[i], &seen), 1);
		assert_non_null(strstr(seen.last, "auto|soft|verbs[:NAME]|none"));
		assert_string_equal(c.device, "auto");
	}
}

static void test_ports(void **state)
{
	static const struct {
		const char *text;
		uint16_t first, last;
	} good[] = { { "", 0, 0 },
		     { "auto", 0, 0 },
		     { "7000", 7000, 7000 },
		     { "7000-7019", 7000, 7019 },
		     { "1-65535", 1, 65535 } };
	static const char *const bad[] = {
		"0",	 "7019-7000",  "7000-",	    "-7000",	      "7000-65536",
		"65536", "7000-7019 ", "7000:7019", "7000-7019-7020", "99999999999999999999",
		"+7000", "none"
	};
	struct complaints seen;
	struct shunt_config c;
	uint16_t first, last;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(load(&c, "SHUNT_PORTS", good[i].text, &seen), 0);
		assert_int_equal(shunt_config_ports(c.ports, &first, &last), 0);
		assert_int_equal(first, good[i].first);
		assert_int_equal(last, good[i].last);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(&c, "SHUNT_PORTS", bad[i], &seen), 1);
		assert_non_null(strstr(seen.last, "auto|FIRST[-LAST]"));
		assert_string_equal(c.ports, "auto");
	}
}

static void test_paths(void **state)
{
	char value[SHUNT_CONFIG_PATH_MAX + 1], text[64], expected[64];
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	memset(value, 'x', sizeof(value));
	value[SHUNT_CONFIG_PATH_MAX] = '\0';
	assert_int_equal(load(&c, "SHUNT_STATS", value, &seen), 1);
	assert_true(strlen(seen.last) < 300);
	assert_string_equal(c.stats_path, "");
	value[SHUNT_CONFIG_PATH_MAX - 1] = '\0';
	assert_int_equal(load(&c, "SHUNT_STATS", value, &seen), 0);
	assert_string_equal(c.stats_path, value);

	snprintf(expected, sizeof(expected), "/tmp/%d.json", (int)getpid());
	assert_string_equal(shunt_config_path_text("/tmp/%p.json", text, sizeof(text)), expected);
	assert_string_equal(shunt_config_path_text("%s%", text, sizeof(text)), "%s%");
	assert_null(shunt_config_path_text("/tmp/%p.json", text, 8));
	assert_null(shunt_config_path_text("12345678", text, 8));
	assert_string_equal(shunt_config_path_text("1234567", text, 8), "1234567");
}

static void test_forms(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	assert_int_equal(load(&c, "SHUNT_SOFT_MODEL", "connectx3,cache=64", &seen), 0);
	assert_string_equal(c.soft_model, "connectx3,cache=64");
	assert_int_equal(load(&c, "SHUNT_SOFT_MODEL", "connectx3,cash=64", &seen), 1);
	assert_non_null(strstr(seen.last, "KEY=VALUE"));
	assert_string_equal(c.soft_model, "");
}

static void test_empty_is_unset(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	for (size_t i = 0; i < shunt_config_count; i++)
		assert_int_equal(load(&c, shunt_config_rows[i].name, "", &seen),
				 shunt_config_is_word(&shunt_config_rows[i]));
}

static void test_rings_agree(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	assert_int_equal(load(&c, "ring_max", "8K", &seen), 1);
	assert_non_null(strstr(seen.last, "ring_min=16K"));
	assert_int_equal(c.ring_min, 16384);
	assert_int_equal(c.ring_max, 4 << 20);
}

/* A ring is carved out of one region. */
static void test_region_holds_a_ring(void **state)
{
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	assert_int_equal(load(&c, "mr", "64K", &seen), 0);
	assert_int_equal(c.mr_bytes, 64 << 10);
	shunt_config_settle(&c);
	assert_int_equal(c.mr_bytes, 4 << 20);
	assert_int_equal(load(&c, "mr", "9M", &seen), 0);
	shunt_config_settle(&c);
	assert_int_equal(c.mr_bytes, 16 << 20);
	assert_int_equal(load(&c, "ring_max", "64M", &seen), 0);
	shunt_config_settle(&c);
	assert_int_equal(c.mr_bytes, 64 << 20);
}

/* A row's text must be a value of the row. */
static void test_text_round_trip(void **state)
{
	char text[SHUNT_CONFIG_TEXT_MAX];
	struct complaints seen;
	struct shunt_config c;

	(void)state;
	for (size_t i = 0; i < shunt_config_count; i++) {
		const struct shunt_config_row *row = &shunt_config_rows[i];

		shunt_config_default_text(row, text, sizeof(text));
		assert_int_equal(load(&c, row->name, text, &seen), 0);
		assert_false(shunt_config_changed(row, &c));
		assert_true(strlen(shunt_config_range_text(row, text, sizeof(text))) > 0);
		assert_int_equal(shunt_config_known(row->name), !shunt_config_is_word(row));
	}
	load(&c, "frag", "1536K", &seen);
	assert_int_equal(seen.count, 1);
	load(&c, "frag", "1000", &seen);
	assert_int_equal(seen.count, 1);
	load(&c, "flip", "1536K", &seen);
	for (size_t i = 0; i < shunt_config_count; i++)
		if (!strcmp(shunt_config_rows[i].name, "flip"))
			assert_string_equal(shunt_config_value_text(&shunt_config_rows[i], &c,
								    text, sizeof(text)),
					    "1536K");
	assert_false(shunt_config_known("SHUNT_SPIN"));
}

/* --- what is valid and still not meant --- */

static int unknown(const char *variable, struct complaints *seen)
{
	char *environment[] = { "HOME=/", "SHUNT_LOG=info", (char *)variable, "SHUNTED=1", NULL };

	memset(seen, 0, sizeof(*seen));
	return shunt_config_unknown(environment, complain, seen);
}

static void test_unknown_names(void **state)
{
	static const struct {
		const char *variable, *meant;
	} names[] = {
		{ "SHUNT_SPINUS=1", "SHUNT_TUNE=spin_us" }, { "SHUNT_RINGMAX=1", "SHUNT_TUNE=ring_max" },
		{ "SHUNT_STAT=x", "SHUNT_STATS" }, { "SHUNT_LGO=info", "SHUNT_LOG" },
		{ "SHUNT_log_file=x", "SHUNT_LOG_FILE" }, { "SHUNT_LOG_LEVEL=info", "SHUNT_LOG" },
		{ "SHUNT_DEAD=5", "SHUNT_TUNE=dead_ms" }, { "SHUNT_DEVICES", "SHUNT_DEVICE" },
	};
	struct complaints seen;
	char text[80];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(unknown(names[i].variable, &seen), 1);
		snprintf(text, sizeof(text), "; is it %s that is meant?", names[i].meant);
		assert_non_null(strstr(seen.last, text));
	}
	for (size_t i = 0; i < shunt_config_count; i++) {
		snprintf(text, sizeof(text), "%s=x", shunt_config_rows[i].name);
		assert_int_equal(unknown(text, &seen), 0);
		if (!shunt_config_is_word(&shunt_config_rows[i]))
			continue;
		/* A variable had this name once. */
		snprintf(text, sizeof(text), "SHUNT_%s=x", shunt_config_rows[i].name);
		for (char *at = text; *at != '='; at++)
			*at = (char)toupper(*at);
		assert_int_equal(unknown(text, &seen), 1);
		assert_non_null(strstr(seen.last,
				       " does not count: it is a word of SHUNT_TUNE: SHUNT_TUNE="));
		assert_non_null(strstr(seen.last, shunt_config_rows[i].name));
	}
	assert_int_equal(unknown("SHUNT_QWERTZ=1", &seen), 1);
	assert_string_equal(seen.last, "there is no variable SHUNT_QWERTZ; `shunt config` lists them");
	assert_int_equal(unknown("SHUNT_", &seen), 1);
	assert_int_equal(unknown("SHUNT_\033[2J\n\xff=1", &seen), 1);
	assert_string_equal(seen.last, "there is no variable SHUNT_?[2J??; `shunt config` lists them");
	memset(text, 'x', sizeof(text));
	memcpy(text, "SHUNT_", 6);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(unknown(text, &seen), 1);
	assert_int_equal(shunt_config_unknown(NULL, complain, &seen), 0);
}

/* Two settings; how many complaints, and the last. */
static int contradictions(const char *a, const char *a_value, const char *b, const char *b_value,
			  struct complaints *seen)
{
	struct env env[] = { { a, a_value }, { b, b_value } };
	struct shunt_config c;

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(shunt_config_load(&c, env_get_two, env, NULL, NULL), 0);
	return shunt_config_contradictions(&c, complain, seen);
}

static void test_contradictions(void **state)
{
	static const struct {
		const char *a, *a_value, *b, *b_value, *said;
	} pairs[] = {
		{ "SHUNT_DEVICE", "none", "window", "64K", "window has no effect: SHUNT_DEVICE=none" },
		{ "SHUNT_DEVICE", "none", "spin_us", "7", "spin_us has no effect: SHUNT_DEVICE=none" },
		{ "SHUNT_ENABLE", "0", "SHUNT_STATS", "x", "SHUNT_STATS has no effect: SHUNT_ENABLE=0" },
		{ "SHUNT_DEVICE", "verbs:mlx5_0", "SHUNT_SOFT_MODEL", "connectx3",
		  "SHUNT_SOFT_MODEL has no effect: SHUNT_DEVICE=verbs:mlx5_0" },
		{ "poll", "hybrid", "spin_us", "7", "spin_us has no effect: poll=hybrid" },
		{ "spin_us", "0", "poll_retry", "7", "poll_retry has no effect: spin_us=0" },
		{ "batch", "merge", "chain", "8", "chain has no effect: batch=merge" },
		{ "admit", "none", "window_wr", "8", "window_wr has no effect: admit=none" },
		{ "SHUNT_MOCK", "tcp", "flip", "8", "flip has no effect: SHUNT_MOCK=tcp" },
		{ "SHUNT_LOG", "none", "SHUNT_LOG_FILE", "x", "SHUNT_LOG_FILE has no effect: SHUNT_LOG=none" },
		{ "SHUNT_STATS", "x", "SHUNT_LOG_FILE", "x",
		  "SHUNT_STATS and SHUNT_LOG_FILE are one file: the statistics replace the messages" },
		{ "SHUNT_DEVICE", "soft", "SHUNT_KEY", "/x", "SHUNT_KEY has no effect: SHUNT_DEVICE=soft" },
		{ "SHUNT_TRUST", "key", "SHUNT_LOG", "info",
		  "SHUNT_TRUST=key without SHUNT_KEY: there are no links between hosts" },
		{ "return_ms", "2000", "return_max_ms", "1000",
		  "return_ms=2000 is too much beside return_max_ms=1000: that is the longest time" },
		{ "arena", "16M", "ring_max", "8M",
		  "ring_max=8M is too much beside arena=16M: rings do not grow so far" },
		{ "mr", "64K", "SHUNT_LOG", "info", "mr=64K is less than ring_max=4M, which is used instead" },
		{ "sq", "64", "signal_every", "33",
		  "signal_every=33 is too much beside sq=64: one in half of that queue is taken" },
	}, sound[] = {
		{ "SHUNT_DEVICE", "none", "SHUNT_STATS", "x", NULL }, { "SHUNT_DEVICE", "none", "SHUNT_LOG", "info", NULL },
		{ "poll", "event", "spin_us", "0", NULL }, { "admit", "none", "window", "0", NULL },
		{ "SHUNT_ENABLE", "0", "SHUNT_LOG", "debug", NULL }, { "batch", "chain", "chain", "8", NULL },
		{ "SHUNT_STATS", "x", "SHUNT_LOG_FILE", "y", NULL }, { "SHUNT_DEVICE", "soft", "SHUNT_SOFT_MODEL", "connectx3", NULL },
		{ "sq", "64", "rq", "64", NULL }, { "arena", "16M", "SHUNT_MOCK", "rdma", NULL },
		{ "slow_ms", "0", "SHUNT_MOCK", "rdma", NULL },
		{ "SHUNT_TRUST", "key", "SHUNT_KEY", "/x", NULL },
		{ "ring_max", "8M", "SHUNT_LOG", "info", NULL },
	};
	struct complaints seen;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(contradictions(pairs[i].a, pairs[i].a_value, pairs[i].b, pairs[i].b_value, &seen), 1);
		assert_string_equal(seen.last, pairs[i].said);
	}
	for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++)
		assert_int_equal(contradictions(sound[i].a, sound[i].a_value, sound[i].b, sound[i].b_value, &seen), 0);
	/* No default contradicts another, and a value alone only where it goes beyond one. */
	assert_int_equal(contradictions("SHUNT_LOG", "warn", "poll", "adaptive", &seen), 0);
	assert_int_equal(contradictions("return_ms", "70000", "SHUNT_LOG", "info", &seen), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_powers_of_two),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_empty_is_unset),
		cmocka_unit_test(test_rings_agree),
		cmocka_unit_test(test_region_holds_a_ring),
		cmocka_unit_test(test_text_round_trip),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_contradictions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
