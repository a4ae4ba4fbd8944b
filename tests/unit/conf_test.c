/* SPDX-License-Identifier: MIT */
/* Configuration files: lines of every kind, files that do not count, and which layer wins. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/conf.h"

static char folder[] = "/tmp/shunt-conf-test.XXXXXX";

/* --- lines --- */

struct heard {
	int lines, rules, wrong;
	unsigned int number; /* of the last */
	char name[SHUNT_CONF_LINE_MAX], value[SHUNT_CONF_LINE_MAX], why[128];
};

static void take(const struct shunt_conf_line *line, void *arg)
{
	struct heard *heard = arg;

	heard->lines += line->name != NULL;
	heard->rules += !line->name;
	heard->number = line->number;
	snprintf(heard->name, sizeof(heard->name), "%s", line->name ? line->name : "");
	snprintf(heard->value, sizeof(heard->value), "%s", line->value);
}

static void wrong(unsigned int number, const char *why, void *arg)
{
	struct heard *heard = arg;

	heard->wrong++;
	heard->number = number;
	snprintf(heard->why, sizeof(heard->why), "%s", why);
}

static struct heard hear(const char *text, size_t bytes)
{
	struct heard heard = { 0 };
	const struct shunt_conf_reader reader = { take, wrong, &heard };

	shunt_conf_lines(text, bytes, &reader);
	return heard;
}

static struct heard hear_text(const char *text)
{
	return hear(text, strlen(text));
}

static void test_lines(void **state)
{
	struct heard heard;

	(void)state;
	heard = hear_text("");
	assert_int_equal(heard.lines + heard.rules + heard.wrong, 0);
	heard = hear_text("# one\n\n  \t# two\r\n \r\n");
	assert_int_equal(heard.lines + heard.rules + heard.wrong, 0);
	heard = hear_text("\n SHUNT_A\t=  b = c#d \r");
	assert_int_equal(heard.lines, 1);
	assert_int_equal(heard.number, 2);
	assert_string_equal(heard.name, "SHUNT_A");
	assert_string_equal(heard.value, "b = c#d");
	heard = hear_text("SHUNT_A=1\nrule  program=a port=1 tcp \nSHUNT_B=2\n");
	assert_int_equal(heard.lines, 2);
	assert_int_equal(heard.rules, 1);
	heard = hear_text("rule\tprogram=a = b");
	assert_int_equal(heard.rules, 1);
	assert_string_equal(heard.value, "program=a = b");
}

static void test_wrong_lines(void **state)
{
	static const char *const lines[] = { "x",
					     "=",
					     "=1",
					     "SHUNT_=1",
					     "SHUNT_a=1",
					     "shunt_A=1",
					     "SHUNT_A",
					     "SHUNT_A=",
					     "SHUNT_A= \t",
					     "SHUNT_A B=1",
					     "export SHUNT_A=1",
					     "rules=1",
					     "rule",
					     "SHUNT_A=\x1b[1m",
					     "SHUNT_A=\x7f",
					     "A=1" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[64];
		struct heard heard;

		snprintf(text, sizeof(text), "SHUNT_X=1\n%s\nSHUNT_Y=2", lines[i]);
		heard = hear_text(text);
		assert_int_equal(heard.wrong, 1);
		assert_int_equal(heard.lines, 2); /* the rest counts */
		assert_string_equal(heard.value, "2");
	}
}

static void test_hostile_lines(void **state)
{
	static char text[SHUNT_CONF_BYTES];
	struct heard heard;

	(void)state;
	heard = hear("SHUNT_A=1\0b\nSHUNT_B=2", 21);
	assert_int_equal(heard.wrong, 1);
	assert_int_equal(heard.lines, 1);
	memset(text, '\0', sizeof(text));
	heard = hear(text, sizeof(text));
	assert_int_equal(heard.wrong, 1);
	memset(text, '\n', sizeof(text));
	assert_int_equal(hear(text, sizeof(text)).wrong, 0);
	memset(text, '=', sizeof(text));
	assert_int_equal(hear(text, sizeof(text)).wrong, 1);
	/* The longest line, and one byte more. */
	memset(text, 'v', sizeof(text));
	memcpy(text, "SHUNT_A=", 8);
	heard = hear(text, SHUNT_CONF_LINE_MAX - 1);
	assert_int_equal(heard.lines, 1);
	assert_int_equal(strlen(heard.value), SHUNT_CONF_LINE_MAX - 1 - 8);
	heard = hear(text, SHUNT_CONF_LINE_MAX);
	assert_int_equal(heard.wrong, 1);
	assert_string_equal(heard.why, "it is too long");
	text[SHUNT_CONF_BYTES - 4] = '\n';
	assert_int_equal(hear(text, sizeof(text)).wrong, 2);
}

/* --- files --- */

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *write_file(const char *name, const char *text, size_t bytes, mode_t mode)
{
	const char *path = path_of(name);
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static int read_file(const char *path, enum shunt_conf_owner owner)
{
	static char text[SHUNT_CONF_BYTES];
	const char *why = NULL;
	int result = shunt_conf_file_read(path, owner, text, &why);

	assert_int_equal(!why, result >= 0 || result == -ENOENT);
	return result;
}

static bool refuses(const char *path, enum shunt_conf_owner owner)
{
	int result = read_file(path, owner);

	return result < 0 && result != -ENOENT;
}

static void test_files(void **state)
{
	static char text[SHUNT_CONF_BYTES + 1];
	char link[256];

	(void)state;
	assert_int_equal(read_file(write_file("a", "abc", 3, 0644), SHUNT_CONF_USER), 3);
	assert_int_equal(read_file(write_file("a", "", 0, 0600), SHUNT_CONF_USER), 0);
	assert_int_equal(
		read_file(write_file("a", text, sizeof(text) - 1, 0600), SHUNT_CONF_EITHER),
		sizeof(text) - 1);
	assert_true(refuses(write_file("a", text, sizeof(text), 0600), SHUNT_CONF_USER));
	assert_true(refuses(write_file("a", "abc", 3, 0664), SHUNT_CONF_USER));
	assert_true(refuses(write_file("a", "abc", 3, 0646), SHUNT_CONF_USER));
	assert_int_equal(read_file(path_of("none"), SHUNT_CONF_USER), -ENOENT);
	write_file("a", "abc", 3, 0600);
	assert_int_equal(read_file(path_of("a/b"), SHUNT_CONF_USER), -ENOENT);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink("a", link), 0);
	assert_true(refuses(link, SHUNT_CONF_EITHER));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(mkfifo(link, 0600), 0); /* nobody is waited for */
	assert_true(refuses(link, SHUNT_CONF_EITHER));
	assert_int_equal(unlink(link), 0);
	assert_true(refuses(folder, SHUNT_CONF_EITHER));
	if (geteuid())
		return;
	assert_int_equal(read_file(path_of("a"), SHUNT_CONF_ROOT), 3);
	assert_int_equal(chown(path_of("a"), 65534, 65534), 0);
	assert_true(refuses(path_of("a"), SHUNT_CONF_ROOT));
	assert_true(refuses(path_of("a"), SHUNT_CONF_USER));
	assert_true(refuses(path_of("a"), SHUNT_CONF_EITHER));
}

/* --- layers --- */

static const char *const *environment; /* name, value, …, NULL */

static const char *get(const char *name, void *arg)
{
	(void)arg;
	for (const char *const *at = environment; *at; at += 2)
		if (!strcmp(at[0], name))
			return at[1];
	return NULL;
}

static char said[SHUNT_CONFIG_LINE_MAX];
static int said_count;

static void complain(const char *line, void *arg)
{
	(void)arg;
	assert_null(strchr(line, '\n'));
	said_count++;
	snprintf(said, sizeof(said), "%s", line);
}

static const struct shunt_conf_asker asker = { .get = get, .complain = complain };
static struct shunt_conf conf;
static struct shunt_config config;
static struct shunt_conf_origin origins[128];

static struct shunt_conf_wrong load(const char *const *variables)
{
	environment = variables;
	said_count = 0;
	assert_true(shunt_config_count <= 128);
	shunt_conf_read(&conf, &asker);
	return shunt_conf_load(&conf, &config, &asker, origins);
}

static const struct shunt_conf_origin *origin_of(const char *name)
{
	size_t i = 0;

	while (strcmp(shunt_config_rows[i].name, name))
		i++;
	return &origins[i];
}

static void test_layers(void **state)
{
	static const char text[] =
		"SHUNT_TUNE=spin_us=7\nSHUNT_TUNE=chain=8\nSHUNT_TUNE=sq=1\nSHUNT_CONF=none\nSHUNT_NONE=1\n";
	struct shunt_conf_wrong wrongs;
	char path[300];

	(void)state;
	snprintf(path, sizeof(path), "%s", write_file("c", text, strlen(text), 0644));
	wrongs = load((const char *[]) { "SHUNT_CONF", path, "SHUNT_TUNE", "chain=9", NULL });
	assert_int_equal(config.spin_us, 7);
	assert_int_equal(config.chain_max, 9);
	assert_int_equal(config.sq_depth, 1024);
	assert_int_equal(wrongs.lines, 3);
	assert_int_equal(wrongs.values, 0);
	assert_int_equal(said_count, 3);
	assert_non_null(strstr(said, "c:5: there is no variable SHUNT_NONE"));
	assert_int_equal(origin_of("spin_us")->line, 1);
	assert_string_equal(origin_of("spin_us")->path, path);
	assert_true(origin_of("chain")->environment);
	assert_null(origin_of("chain")->path);
	assert_false(origin_of("sq")->environment);
	/* A value of the environment that is none leaves the file's. */
	wrongs = load((const char *[]) { "SHUNT_CONF", path, "SHUNT_TUNE", "chain=nine", NULL });
	assert_int_equal(config.chain_max, 8);
	assert_int_equal(wrongs.values, 1);
	assert_int_equal(origin_of("chain")->line, 2);
}

static void test_where(void **state)
{
	static const char text[] = "SHUNT_TUNE=spin_us=7\n";
	char path[300], config_folder[300];

	(void)state;
	snprintf(config_folder, sizeof(config_folder), "%s/.config", folder);
	mkdir(config_folder, 0700);
	write_file(".config/shunt.conf", text, strlen(text), 0600);
	load((const char *[]) { "HOME", folder, NULL });
	assert_int_equal(config.spin_us, 7);
	load((const char *[]) { "HOME", folder, "XDG_CONFIG_HOME", "relative", NULL });
	assert_int_equal(config.spin_us, 7);
	load((const char *[]) { "HOME", "/nowhere", "XDG_CONFIG_HOME", config_folder, NULL });
	assert_int_equal(config.spin_us, 7);
	load((const char *[]) { "HOME", folder, "XDG_CONFIG_HOME", "/nowhere", NULL });
	assert_int_equal(config.spin_us, 25);
	load((const char *[]) { "HOME", folder, "SHUNT_CONF", "none", NULL });
	assert_int_equal(config.spin_us, 25);
	assert_int_equal(said_count, 0);
	snprintf(path, sizeof(path), "%s/absent", folder);
	assert_int_equal(load((const char *[]) { "SHUNT_CONF", path, NULL }).values, 1);
	assert_int_equal(load((const char *[]) { "SHUNT_CONF", "c", NULL }).values, 1);
	if (geteuid())
		return;
	/* Root with another's HOME: that user's words are not root's. */
	snprintf(path, sizeof(path), "%s/.config/shunt.conf", folder);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(load((const char *[]) { "HOME", folder, NULL }).lines, 1);
	assert_int_equal(config.spin_us, 25);
}

static const char *nothing(const char *name, void *arg)
{
	(void)name, (void)arg;
	return NULL;
}

static void test_rules(void **state)
{
	static const char etc[] = "rule port=1 tcp\n",
			  mine[] = "rule tcp\nrule port=2 # two\nrule link; tcp\nrule  \n";
	struct shunt_conf_asker asker = { .get = nothing };
	char many[33 * 9 + 1];

	(void)state;
	memset(&conf, 0, sizeof(conf));
	conf.count = 2;
	conf.file[0].bytes = strlen(strcpy(conf.file[0].text, etc));
	conf.file[1].bytes = strlen(strcpy(conf.file[1].text, mine));
	/* The user's first; without an action, and without anything. */
	assert_int_equal(shunt_conf_load(&conf, &config, &asker, NULL).lines, 2);
	assert_string_equal(config.rule_lines, "tcp\nlink; tcp\nport=1 tcp\n");
	for (size_t i = 0; i < 33; i++)
		memcpy(many + 9 * i, "rule tcp\n", 10);
	conf.count = 1;
	conf.file[0].bytes = strlen(strcpy(conf.file[0].text, many));
	assert_int_equal(shunt_conf_load(&conf, &config, &asker, NULL).lines, 1);
	assert_int_equal(strlen(config.rule_lines), 32 * 4);
	memset(conf.file[0].text, 'x', SHUNT_CONF_BYTES);
	for (size_t i = 0; i < 6; i++) {
		memcpy(conf.file[0].text + 1000 * i, "rule tcp #", 10);
		conf.file[0].text[1000 * i + 999] = '\n';
	}
	conf.file[0].bytes = 6000;
	assert_int_equal(shunt_conf_load(&conf, &config, &asker, NULL).lines, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	      cmocka_unit_test(test_wrong_lines),
		cmocka_unit_test(test_hostile_lines), cmocka_unit_test(test_files),
		cmocka_unit_test(test_layers),	      cmocka_unit_test(test_where),
		cmocka_unit_test(test_rules),
	};
	char command[300];
	int failed;

	if (!mkdtemp(folder))
		return 99;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) || failed;
}
