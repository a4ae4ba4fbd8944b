/* SPDX-License-Identifier: MIT */
/*
 * shunt top on a terminal. Signals are read as events (signalfd(2)), so whatever ends the command ends it through
 * the same way out, which restores the terminal. Lines come from top_line.c, in printable ASCII.
 */
#include "tools/top/top.h"

#include <stdio.h>

#include "tools/shunt.h"

#ifdef SHUNT_NCURSES

#include <errno.h>
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h>
#include <unistd.h>

#define HEAD 4 /* lines above the rows: two of sums, the status, the titles */
#define FOOT 2 /* below: the selected row, the prompt */
#define NO_SIGNAL 0

struct screen {
	struct shunt_top_keys keys;
	struct shunt_look looks[2];
	int now; /* the index of the newer look */
	size_t taken; /* looks so far */
	size_t top; /* the first row shown */
	bool asked; /* a look is under way */
	double last; /* when the last look had come, by shunt_seconds() */
	int ended_by; /* a signal */
};

bool shunt_top_has_screen(const char **why)
{
	int error;
	const char *addressing;

	*why = NULL;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	if (setupterm(NULL, STDOUT_FILENO, &error) == OK) {
		addressing = tigetstr("cup");
		if (addressing && addressing != (char *)-1)
			return true;
	}
	*why = "the terminal cannot move its cursor (TERM)";
	return false;
}

/* ---- drawing ---- */

static void put_line(int y, const char *text, attr_t look)
{
	if (y < 0 || y >= LINES)
		return;
	move(y, 0);
	clrtoeol();
	attrset(look);
	addnstr(text, COLS);
	attrset(A_NORMAL);
}

/* The first row moves as little as it must for the selected one to be seen. */
static void scroll_to_selected(struct screen *screen)
{
	const struct shunt_top_model *model = screen->keys.model;
	size_t page = screen->keys.page,
	       selected = model->selected < 0 ? 0 : (size_t)model->selected;

	if (selected < screen->top || model->selected < 0)
		screen->top = selected;
	if (page && selected >= screen->top + page)
		screen->top = selected - page + 1;
}

static void draw_help(void)
{
	for (int i = 0; shunt_top_help[i]; i++)
		put_line(i, shunt_top_help[i], A_NORMAL);
}

static void draw_rows(struct screen *screen)
{
	const struct shunt_top_model *model = screen->keys.model;
	char line[SHUNT_TOP_LINE];

	scroll_to_selected(screen);
	for (size_t i = 0; i < screen->keys.page && screen->top + i < model->count; i++) {
		size_t row = screen->top + i;

		shunt_top_line(model, &model->rows[row], COLS, line);
		put_line(HEAD + (int)i, line,
			 (ssize_t)row == model->selected ? A_REVERSE : A_NORMAL);
	}
	if (model->now && !model->count)
		put_line(HEAD,
			 *model->filter ? "nothing has that" :
					  "no shunted process of yours has a connection",
			 A_DIM);
}

static void draw_list(struct screen *screen)
{
	const struct shunt_top_model *model = screen->keys.model;
	char line[SHUNT_TOP_LINE];

	screen->keys.page = LINES > HEAD + FOOT ? (size_t)(LINES - HEAD - FOOT) : 0;
	for (int i = 0; i < 2; i++) {
		shunt_top_head(model, i, COLS, line);
		put_line(i, line, A_BOLD);
	}
	shunt_top_status(&screen->keys, COLS, line);
	put_line(2, line, A_NORMAL);
	shunt_top_titles(model, COLS, line);
	put_line(3, line, A_UNDERLINE);
	draw_rows(screen);
	if (model->selected >= 0 && LINES > HEAD + FOOT) {
		shunt_top_detail(&model->rows[model->selected], COLS, line);
		put_line(LINES - 2, line, A_BOLD);
	}
}

/* The size is asked for each time: a terminal may have changed it while the command was stopped. */
static void draw(struct screen *screen)
{
	struct winsize size;
	char line[SHUNT_TOP_LINE];

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col &&
	    (size.ws_row != LINES || size.ws_col != COLS))
		resizeterm(size.ws_row, size.ws_col);
	erase();
	if (screen->keys.mode == SHUNT_TOP_HELP)
		draw_help();
	else
		draw_list(screen);
	shunt_top_prompt(&screen->keys, COLS - 1, line);
	put_line(LINES - 1, line, A_NORMAL);
	refresh();
}

/* ---- keys ---- */

static const struct {
	int theirs, ours;
} key_names[] = {
	{ KEY_UP, SHUNT_TOP_KEY_UP },	      { KEY_DOWN, SHUNT_TOP_KEY_DOWN },
	{ KEY_PPAGE, SHUNT_TOP_KEY_PAGE_UP }, { KEY_NPAGE, SHUNT_TOP_KEY_PAGE_DOWN },
	{ KEY_HOME, SHUNT_TOP_KEY_HOME },     { KEY_END, SHUNT_TOP_KEY_END },
	{ KEY_ENTER, SHUNT_TOP_KEY_ENTER },   { '\n', SHUNT_TOP_KEY_ENTER },
	{ '\r', SHUNT_TOP_KEY_ENTER },	      { KEY_BACKSPACE, SHUNT_TOP_KEY_BACKSPACE },
	{ 127, SHUNT_TOP_KEY_BACKSPACE },     { '\b', SHUNT_TOP_KEY_BACKSPACE },
	{ 27, SHUNT_TOP_KEY_ESCAPE },
};

static int translated(int key)
{
	for (size_t i = 0; i < sizeof(key_names) / sizeof(key_names[0]); i++)
		if (key_names[i].theirs == key)
			return key_names[i].ours;
	return key;
}

/* False: the terminal is readable and has no key, so it is gone. */
static bool take_keys(struct screen *screen)
{
	bool any = false;
	int key;

	while ((key = getch()) != ERR) {
		any = true;
		if (key != KEY_RESIZE)
			shunt_top_key(&screen->keys, translated(key));
	}
	return any;
}

/* ---- looks ---- */

static void take_look(struct screen *screen)
{
	struct shunt_look look;

	screen->asked = false;
	screen->last = shunt_seconds();
	if (shunt_top_sampler_take(&look))
		return;
	screen->taken++;
	screen->now = !screen->now;
	shunt_look_free(&screen->looks[screen->now]);
	screen->looks[screen->now] = look;
	shunt_top_take(screen->keys.model, &screen->looks[!screen->now],
		       &screen->looks[screen->now]);
}

/* The first two come soon, because it takes two for rates. */
static double interval_of(const struct screen *screen)
{
	static const double soon[] = { 0, 0.5 };

	if (screen->taken < 2 && soon[screen->taken] < screen->keys.interval)
		return soon[screen->taken];
	return screen->keys.interval;
}

/* How long nothing is due, in ms; -1: for ever. */
static int ask_when_due(struct screen *screen)
{
	double left = screen->last + interval_of(screen) - shunt_seconds();

	if (screen->asked || screen->keys.frozen)
		return -1;
	if (left > 0)
		return left < 3600 ? (int)(left * 1000) + 1 : 3600000;
	screen->asked = true;
	shunt_top_sampler_ask();
	return -1;
}

/* ---- the life of a screen ---- */

enum { KEYS, SIGNALS, LOOK, SOURCES };

static int take_signal(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGWINCH)
		return NO_SIGNAL;
	return (int)info.ssi_signo;
}

static void live(struct screen *screen, struct pollfd sources[SOURCES])
{
	while (screen->keys.mode != SHUNT_TOP_END && !screen->ended_by) {
		int ms = ask_when_due(screen);

		draw(screen);
		if (poll(sources, SOURCES, ms) <= 0)
			continue;
		if (sources[SIGNALS].revents)
			screen->ended_by = take_signal(sources[SIGNALS].fd);
		if (sources[LOOK].revents)
			take_look(screen);
		if (sources[KEYS].revents && !take_keys(screen))
			screen->ended_by = SIGHUP;
	}
}

static void restore(void)
{
	if (!isendwin())
		endwin();
}

/* One end for all: atexit() restores what a way out has forgotten. */
static void begin_screen(void)
{
	set_escdelay(25);
	if (!newterm(NULL, stdout, stdin))
		exit(EXIT_FAILED);
	atexit(restore);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
}

/* Of a signal the parent shall see that it was one; SIGINT is a way to quit, as in top(1). */
static int end_by(int number, const sigset_t *signals)
{
	if (!number || number == SIGINT)
		return 0;
	signal(number, SIG_DFL); /* ncurses has a handler of its own */
	raise(number);
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	return EXIT_FAILED;
}

int shunt_top_screen(const struct shunt_top_options *options, struct shunt_top_model *model)
{
	struct screen screen = { .keys = { .model = model, .interval = options->interval } };
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	struct pollfd sources[SOURCES] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&signals, caught[i]);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sources[SIGNALS] = (struct pollfd) { signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK),
					     POLLIN, 0 };
	sources[LOOK] = (struct pollfd) { shunt_top_sampler_begin(options), POLLIN, 0 };
	if (sources[SIGNALS].fd < 0 || sources[LOOK].fd < 0) {
		fprintf(stderr, "shunt top: no thread or no descriptor: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	begin_screen();
	live(&screen, sources);
	restore();
	shunt_top_take(model, NULL, NULL);
	shunt_look_free(&screen.looks[0]);
	shunt_look_free(&screen.looks[1]);
	return end_by(screen.ended_by, &signals);
}

#else

bool shunt_top_has_screen(const char **why)
{
	*why = "this build has no screen: install libncurses-dev, configure and build again";
	return false;
}

int shunt_top_screen(const struct shunt_top_options *options, struct shunt_top_model *model)
{
	return shunt_top_plain(options, model);
}

#endif
