/* SPDX-License-Identifier: MIT */
/* shunt top without a screen: rows of two looks, their order, filters, what stays selected, lines that fit, keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "tools/top/top.h"

/* As JSON, with other quotes. */
static const char small_then[] =
	"{'program':'small','totals':{'tx':{'tcp':0,'link':0},'rx':{'tcp':0,'link':0}},"
	"'stalls':{'ring':0,'credit':0},"
	"'streams':["
	"{'fd':3,'local':'127.0.0.1:1','peer':'10.0.0.1:1','state':'linked',"
	"'tx':{'track':'link','tcp':0,'link':0},'rx':{'track':'link','tcp':0,'link':0}}]}";
static const char small_now[] =
	"{'program':'small','totals':{'tx':{'tcp':100,'link':300},'rx':{'tcp':0,'link':0}},"
	"'stalls':{'ring':2,'credit':8},"
	"'streams':["
	"{'fd':3,'local':'127.0.0.1:1','peer':'10.0.0.1:1','state':'linked',"
	"'tx':{'track':'link','tcp':100,'link':300},'rx':{'track':'link','tcp':0,'link':0},'sendq':5,'recvq':7}]}";
static const char large_then[] =
	"{'program':'large','totals':{'tx':{'tcp':0,'link':0},'rx':{'tcp':0,'link':0}},"
	"'streams':["
	"{'fd':4,'local':'127.0.0.1:1','peer':'10.0.0.2:1','state':'linked',"
	"'tx':{'track':'link','tcp':0,'link':0},'rx':{'track':'link','tcp':0,'link':0}},"
	"{'fd':5,'local':'127.0.0.1:1','peer':'10.0.0.3:1','state':'plain',"
	"'tx':{'track':'link','tcp':1000,'link':0},'rx':{'track':'link','tcp':0,'link':0}}]}";
static const char large_now[] =
	"{'program':'large','totals':{'tx':{'tcp':1000,'link':8000},'rx':{'tcp':0,'link':0}},"
	"'streams':["
	"{'fd':4,'local':'127.0.0.1:1','peer':'10.0.0.2:1','state':'linked',"
	"'tx':{'track':'link','tcp':0,'link':8000},'rx':{'track':'link','tcp':0,'link':400},'sendq':6},"
	"{'fd':5,'local':'127.0.0.1:1','peer':'10.0.0.3:1','state':'plain',"
	"'tx':{'track':'link','tcp':2000,'link':0},'rx':{'track':'link','tcp':0,'link':0},'reason':'no peer'},"
	"{'fd':6,'local':'127.0.0.1:1','peer':'10.0.0.4:1','state':'candidate',"
	"'tx':{'track':'link','tcp':0,'link':0},'rx':{'track':'link','tcp':0,'link':0},'waits_for':'its first use'}]}";

/* Two processes, two seconds apart. */
struct test {
	struct shunt_top_model model;
	struct shunt_stat then[2], now[3];
	struct shunt_look before, after;
};

static void fill(struct shunt_stat *stat, int pid, const char *identity, const char *text,
		 double at)
{
	char json[1024];

	*stat = (struct shunt_stat) { .door.pid = pid, .at = at };
	snprintf(stat->door.identity, sizeof(stat->door.identity), "%s", identity);
	assert_true(strlen(text) < sizeof(json));
	strcpy(json, text);
	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	stat->process = json_loads(json, 0, NULL);
	assert_non_null(stat->process);
}

static int begin(void **state)
{
	static struct test test;

	test = (struct test) { 0 };
	shunt_top_init(&test.model);
	fill(&test.then[0], 10, "a", small_then, 1);
	fill(&test.then[1], 20, "b", large_then, 1);
	fill(&test.now[0], 10, "a", small_now, 3);
	fill(&test.now[1], 20, "b", large_now, 3);
	test.before = (struct shunt_look) { .processes = test.then, .count = 2 };
	test.after = (struct shunt_look) { .processes = test.now, .count = 2 };
	*state = &test;
	return 0;
}

static int end(void **state)
{
	struct test *test = *state;

	shunt_top_fini(&test->model);
	for (int i = 0; i < 2; i++)
		json_decref(test->then[i].process);
	for (int i = 0; i < 3; i++)
		json_decref(test->now[i].process);
	return 0;
}

static const struct shunt_top_row *row(const struct test *test, size_t i)
{
	assert_true(i < test->model.count);
	return &test->model.rows[i];
}

static void take(struct test *test)
{
	shunt_top_take(&test->model, &test->before, &test->after);
}

static void show_streams(struct test *test)
{
	test->model.view = SHUNT_TOP_STREAMS;
	take(test);
}

static void has_number(const struct shunt_top_row *row, enum shunt_top_column column, double number)
{
	assert_true(row->number[column] == number);
}

static void has_text(const struct shunt_top_row *row, enum shunt_top_column column,
		     const char *text)
{
	char cell[SHUNT_TOP_LINE];

	assert_string_equal(shunt_top_text(row, column, cell, sizeof(cell)), text);
}

/* ---- rows ---- */

static void processes_have_rates(void **state)
{
	struct test *test = *state;

	take(test);
	assert_int_equal(test->model.count, 2);
	has_number(row(test, 0), SHUNT_TOP_PID, 20);
	has_number(row(test, 0), SHUNT_TOP_TX, 4500);
	has_number(row(test, 1), SHUNT_TOP_TX, 200);
	has_number(row(test, 1), SHUNT_TOP_SHARE, 0.75);
	has_number(row(test, 1), SHUNT_TOP_STALLS, 5);
	has_text(row(test, 1), SHUNT_TOP_BOUND, "credit");
	has_number(row(test, 1), SHUNT_TOP_SENDQ, 5);
	has_number(row(test, 1), SHUNT_TOP_RECVQ, 7);
	has_number(row(test, 0), SHUNT_TOP_CONNECTIONS, 3);
}

static void what_is_not_said_is_not_known(void **state)
{
	struct test *test = *state;

	take(test);
	has_text(row(test, 0), SHUNT_TOP_STALLS, "-");
	has_text(row(test, 0), SHUNT_TOP_RECVQ, "-");
	shunt_top_take(&test->model, NULL, &test->after);
	has_text(row(test, 0), SHUNT_TOP_TX, "-");
	has_text(row(test, 0), SHUNT_TOP_SHARE, "-");
}

static void sums_are_of_all(void **state)
{
	struct test *test = *state;

	snprintf(test->model.filter, sizeof(test->model.filter), "small");
	take(test);
	assert_int_equal(test->model.count, 1);
	assert_int_equal(test->model.sum.processes, 2);
	assert_int_equal(test->model.sum.streams, 4);
	assert_int_equal(test->model.sum.linked, 2);
	assert_true(test->model.sum.tx_tcp == 550 && test->model.sum.tx_link == 4150);
}

static void streams_have_rates_and_reasons(void **state)
{
	struct test *test = *state;

	show_streams(test);
	assert_int_equal(test->model.count, 4);
	has_number(row(test, 0), SHUNT_TOP_FD, 4);
	has_number(row(test, 0), SHUNT_TOP_TX, 4000);
	has_number(row(test, 0), SHUNT_TOP_RX, 200);
	has_number(row(test, 0), SHUNT_TOP_SENDQ, 6);
	has_number(row(test, 1), SHUNT_TOP_FD, 5);
	has_number(row(test, 1), SHUNT_TOP_TX, 500);
	has_text(row(test, 1), SHUNT_TOP_WHY, "no peer");
	has_text(row(test, 3), SHUNT_TOP_WHY, "waits for its first use");
	has_text(row(test, 3), SHUNT_TOP_SHARE, "-");
}

static void a_reused_descriptor_is_another_stream(void **state)
{
	struct test *test = *state;
	json_t *stream = json_array_get(json_object_get(test->then[1].process, "streams"), 0);

	json_object_set_new(stream, "peer", json_string("10.9.9.9:9"));
	json_object_set_new(json_object_get(stream, "tx"), "link", json_integer(7000));
	show_streams(test);
	has_number(row(test, 0), SHUNT_TOP_TX, 4000); /* all of its bytes are new */
}

static void the_silent_have_a_row_if_named_or_late(void **state)
{
	struct test *test = *state;

	test->now[2] = (struct shunt_stat) { .door.pid = 30, .why = "it gave no answer" };
	test->after.count = 3;
	take(test);
	assert_int_equal(test->model.count, 2);
	test->now[2].late = true;
	take(test);
	has_text(row(test, 2), SHUNT_TOP_WHY, "it gave no answer");
	test->now[2].late = false;
	test->model.named = true;
	take(test);
	assert_int_equal(test->model.count, 3);
	assert_int_equal(test->model.sum.processes, 2);
}

/* Not one member has the type that it should have. */
static void lies_are_harmless(void **state)
{
	struct test *test = *state;
	char line[SHUNT_TOP_LINE];

	json_decref(test->now[1].process);
	fill(&test->now[1], 20, "b",
	     "{'program':7,'totals':[],'stalls':{'\\u001b[2J':9,'x':'y'},'reason':{},"
	     "'streams':[1,'two',[],{'fd':'x','peer':'\\u001b[31m\\n','sendq':-9223372036854775807,"
	     "'recvq':9223372036854775807,'tx':{'track':'\\u001b','tcp':-5,'link':[]},'rx':3}]}",
	     3);
	for (int view = 0; view < 2; view++) {
		test->model.view = view ? SHUNT_TOP_STREAMS : SHUNT_TOP_PROCESSES;
		take(test);
		for (size_t i = 0; i < test->model.count; i++)
			for (int width = 0; width < 600; width += 7) {
				shunt_top_line(&test->model, row(test, i), width, line);
				shunt_top_detail(row(test, i), width, line);
				for (const char *c = line; *c; c++)
					assert_true(*c >= ' ' && *c <= '~');
				assert_true((int)strlen(line) <= width);
			}
	}
}

/* ---- order and filters ---- */

static void order_follows_the_column(void **state)
{
	struct test *test = *state;

	test->model.sort[SHUNT_TOP_PROCESSES] = SHUNT_TOP_PROGRAM;
	take(test);
	has_number(row(test, 0), SHUNT_TOP_PID, 20); /* large */
	test->model.reversed = true;
	shunt_top_arrange(&test->model);
	has_number(row(test, 0), SHUNT_TOP_PID, 10);
	test->model.reversed = false;
	test->model.sort[SHUNT_TOP_PROCESSES] = SHUNT_TOP_PID;
	shunt_top_arrange(&test->model);
	has_number(row(test, 0), SHUNT_TOP_PID, 10);
	test->model.sort[SHUNT_TOP_PROCESSES] = SHUNT_TOP_STALLS;
	shunt_top_arrange(&test->model);
	has_number(row(test, 0), SHUNT_TOP_PID, 10); /* known before unknown */
}

static void a_filter_looks_into_columns_of_the_view(void **state)
{
	struct test *test = *state;

	snprintf(test->model.filter, sizeof(test->model.filter), "NO PEER");
	take(test);
	assert_int_equal(test->model.count, 0);
	show_streams(test);
	assert_int_equal(test->model.count, 1);
	has_number(row(test, 0), SHUNT_TOP_FD, 5);
}

/* ---- what is selected ---- */

static void a_selected_row_is_found_again(void **state)
{
	struct test *test = *state;

	show_streams(test);
	shunt_top_select(&test->model, 2); /* of process 10, by rate */
	has_number(row(test, 2), SHUNT_TOP_PID, 10);
	test->model.sort[SHUNT_TOP_STREAMS] = SHUNT_TOP_PID;
	shunt_top_arrange(&test->model);
	assert_int_equal(test->model.selected, 0);
	shunt_top_take(&test->model, &test->after,
		       &test->before); /* the same streams, without the last */
	assert_int_equal(test->model.selected, 0);
	shunt_top_select(&test->model, 99);
	assert_int_equal(test->model.selected, 2);
	test->before.count = 1; /* its process is gone */
	shunt_top_take(&test->model, &test->after, &test->before);
	assert_int_equal(test->model.selected, 0);
	test->before.count = 0;
	shunt_top_take(&test->model, &test->after, &test->before);
	assert_int_equal(test->model.selected, -1);
}

/* ---- lines ---- */

static void lines_fit(void **state)
{
	struct test *test = *state;
	char line[SHUNT_TOP_LINE];

	show_streams(test);
	for (int width = 0; width < 600; width++) {
		shunt_top_titles(&test->model, width, line);
		assert_true((int)strlen(line) <= width);
		shunt_top_line(&test->model, row(test, 0), width, line);
		assert_true((int)strlen(line) <= width);
	}
	shunt_top_titles(&test->model, 40, line);
	assert_non_null(strstr(line, "PEER"));
	assert_non_null(strstr(line, "TX/s   RX/s"));
	test->model.view = SHUNT_TOP_PROCESSES;
	shunt_top_titles(&test->model, 40, line);
	assert_string_equal(line, "    PID PROGRAM        TX/s   RX/s  LINK");
	test->model.sort[SHUNT_TOP_PROCESSES] = SHUNT_TOP_WHY;
	shunt_top_titles(&test->model, 40, line);
	assert_non_null(strstr(line, "WHY")); /* the column that sorts */
}

/* ---- keys ---- */

static void type(struct shunt_top_keys *keys, const char *text)
{
	for (; *text; text++)
		shunt_top_key(keys, *text == '\n' ? SHUNT_TOP_KEY_ENTER : *text);
}

static void keys_change_the_model(void **state)
{
	struct test *test = *state;
	struct shunt_top_keys keys = { .model = &test->model, .interval = 1, .page = 2 };

	take(test);
	type(&keys, "/smalx");
	shunt_top_key(&keys, SHUNT_TOP_KEY_BACKSPACE);
	type(&keys, "l\n");
	assert_string_equal(test->model.filter, "small");
	assert_int_equal(test->model.count, 1);
	shunt_top_key(&keys, SHUNT_TOP_KEY_ESCAPE);
	assert_int_equal(test->model.count, 2);
	type(&keys, ">");
	assert_int_equal(test->model.sort[SHUNT_TOP_PROCESSES], SHUNT_TOP_RX);
	type(&keys, "<<r");
	assert_int_equal(test->model.sort[SHUNT_TOP_PROCESSES], SHUNT_TOP_PROGRAM);
	has_text(row(test, 0), SHUNT_TOP_PROGRAM, "small");
	type(&keys, "r");
	shunt_top_key(&keys, SHUNT_TOP_KEY_DOWN);
	shunt_top_key(&keys, SHUNT_TOP_KEY_ENTER); /* "large" */
	assert_int_equal(test->model.view, SHUNT_TOP_STREAMS);
	assert_int_equal(test->model.count, 3);
	type(&keys, "G");
	assert_string_not_equal(keys.message, "");
	shunt_top_key(&keys, SHUNT_TOP_KEY_ESCAPE);
	assert_int_equal(test->model.view, SHUNT_TOP_PROCESSES);
	type(&keys, "f");
	assert_true(keys.frozen);
	type(&keys, " d0.25\n");
	assert_false(keys.frozen);
	assert_true(keys.interval == 0.25);
	type(&keys, "dnever\n");
	assert_true(keys.interval == 0.25 && *keys.message);
	type(&keys, "----");
	assert_true(keys.interval == SHUNT_TOP_SHORTEST);
	type(&keys, "hxq");
	assert_int_equal(keys.mode, SHUNT_TOP_END);
}

static void a_prompt_takes_no_more_than_fits(void **state)
{
	struct test *test = *state;
	struct shunt_top_keys keys = { .model = &test->model, .interval = 1 };
	char line[SHUNT_TOP_LINE];

	shunt_top_key(&keys, '/');
	for (int i = 0; i < 1000; i++)
		shunt_top_key(&keys, i % 512);
	assert_int_equal(strlen(keys.typed), SHUNT_TOP_WORD - 1);
	shunt_top_prompt(&keys, 10, line);
	assert_string_equal(line, "filter:  !");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes_have_rates, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_said_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(sums_are_of_all, begin, end),
		cmocka_unit_test_setup_teardown(streams_have_rates_and_reasons, begin, end),
		cmocka_unit_test_setup_teardown(a_reused_descriptor_is_another_stream, begin, end),
		cmocka_unit_test_setup_teardown(the_silent_have_a_row_if_named_or_late, begin, end),
		cmocka_unit_test_setup_teardown(lies_are_harmless, begin, end),
		cmocka_unit_test_setup_teardown(order_follows_the_column, begin, end),
		cmocka_unit_test_setup_teardown(a_filter_looks_into_columns_of_the_view, begin,
						end),
		cmocka_unit_test_setup_teardown(a_selected_row_is_found_again, begin, end),
		cmocka_unit_test_setup_teardown(lines_fit, begin, end),
		cmocka_unit_test_setup_teardown(keys_change_the_model, begin, end),
		cmocka_unit_test_setup_teardown(a_prompt_takes_no_more_than_fits, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
