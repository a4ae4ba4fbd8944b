/* SPDX-License-Identifier: MIT */
/*
 * Rows are made of two looks (top_model.c), columns of a row (top_columns.c), lines of a given width (top_line.c).
 * Keys are in top_keys.c. The screen is top_screen.c, with looks from the thread of top_sampler.c; text and JSON are
 * top_text.c. Text from a process passes shunt_escape() in top_columns.c.
 */
#ifndef SHUNT_TOOLS_TOP_H
#define SHUNT_TOOLS_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include "tools/stat/stat.h"

#define SHUNT_TOP_LINE 512 /* bytes: a line is cut to one less */
#define SHUNT_TOP_WORD 64 /* bytes: a filter, an answer to a prompt */
/* A number that a process does not say, or that no look has a value of. */
#define SHUNT_TOP_UNKNOWN (-1.0)

enum shunt_top_view { SHUNT_TOP_PROCESSES, SHUNT_TOP_STREAMS };

enum shunt_top_column {
	SHUNT_TOP_PID,
	SHUNT_TOP_PROGRAM,
	SHUNT_TOP_FD,
	SHUNT_TOP_LOCAL,
	SHUNT_TOP_PEER,
	SHUNT_TOP_TX,
	SHUNT_TOP_RX,
	SHUNT_TOP_SHARE,
	SHUNT_TOP_CONNECTIONS,
	SHUNT_TOP_STALLS,
	SHUNT_TOP_BOUND,
	SHUNT_TOP_SENDQ,
	SHUNT_TOP_RECVQ,
	SHUNT_TOP_TRACK,
	SHUNT_TOP_WHY,
	SHUNT_TOP_COLUMNS
};

/* A process, or a stream of it. It points into the look that it was made of. */
struct shunt_top_row {
	const struct shunt_stat *stat;
	const json_t *stream; /* NULL: the row is the process's */
	const char *bound; /* the limit that was met most since the last look; "": none was */
	double number[SHUNT_TOP_COLUMNS]; /* of columns that are numbers; rates are per second */
};

/* Of all processes, filter or not. Rates are bytes a second. */
struct shunt_top_sum {
	size_t processes, streams, linked;
	double tx_tcp, tx_link, rx_tcp, rx_link;
};

struct shunt_top_model {
	enum shunt_top_view view;
	enum shunt_top_column sort[2]; /* by view */
	bool reversed;
	char filter[SHUNT_TOP_WORD]; /* "": none */
	char only[SHUNT_DOOR_IDENTITY]; /* streams of this process only; "": of all */
	bool named; /* the processes were named: those without statistics have a row that says why */

	const struct shunt_look *before, *now; /* NULL until the first look; the caller's */
	struct shunt_top_row *rows;
	size_t count;
	struct shunt_top_sum sum;

	/* The selected row, known again in a later look; `stream` is a reference, or NULL. */
	struct {
		char identity[SHUNT_DOOR_IDENTITY]; /* "": nothing is selected */
		json_t *stream;
	} picked;
	ssize_t selected; /* its row, or -1 */
};

/* ---- top_model.c ---- */

void shunt_top_init(struct shunt_top_model *model);
void shunt_top_fini(struct shunt_top_model *model);
/* New looks. The model uses them until the next; the former ones are not looked at any more. */
void shunt_top_take(struct shunt_top_model *model, const struct shunt_look *before,
		    const struct shunt_look *now);
/* Rows anew, after a change of view, sort, filter or only. */
void shunt_top_arrange(struct shunt_top_model *model);
/* Selects a row, the last where there are fewer; -1: none. */
void shunt_top_select(struct shunt_top_model *model, ssize_t row);
/* Bytes by link of all bytes, 0 to 1, or SHUNT_TOP_UNKNOWN where none were moved. */
double shunt_top_share(double tcp, double link);

/* ---- top_columns.c ---- */

/* The title; the word of --sort; the least width, which is that of all but the last column. */
const char *shunt_top_title(enum shunt_top_column column);
const char *shunt_top_name(enum shunt_top_column column);
int shunt_top_width(enum shunt_top_column column);
/* SHUNT_TOP_COLUMNS: no column of the view has that name. */
enum shunt_top_column shunt_top_find(enum shunt_top_view view, const char *name);
/* Has the view this column? Columns with a smaller rank outlive others on a narrow screen; -1: it has not. */
int shunt_top_rank(enum shunt_top_view view, enum shunt_top_column column);
bool shunt_top_numeric(enum shunt_top_column column);
/* A cell, escaped, cut to `room`; "" where there is nothing to say. Returns buf. */
const char *shunt_top_text(const struct shunt_top_row *row, enum shunt_top_column column, char *buf,
			   size_t room);
/* "17", "12.3K", "1023M": at most six columns. */
const char *shunt_top_human(double n, char buf[16]);

/* ---- top_line.c ---- */

/* Columns that fit `width`, the one that sorts among them. Their number. */
int shunt_top_fit(const struct shunt_top_model *model, int width,
		  enum shunt_top_column columns[SHUNT_TOP_COLUMNS]);
/* Each writes a line of at most `width` columns. */
void shunt_top_titles(const struct shunt_top_model *model, int width, char line[SHUNT_TOP_LINE]);
void shunt_top_line(const struct shunt_top_model *model, const struct shunt_top_row *row, int width,
		    char line[SHUNT_TOP_LINE]);
/* The two lines at the top. */
void shunt_top_head(const struct shunt_top_model *model, int line, int width,
		    char text[SHUNT_TOP_LINE]);
/* All that is known of a row, in one line. */
void shunt_top_detail(const struct shunt_top_row *row, int width, char line[SHUNT_TOP_LINE]);

/* ---- top_keys.c ---- */

enum {
	SHUNT_TOP_KEY_UP = 0x1000,
	SHUNT_TOP_KEY_DOWN,
	SHUNT_TOP_KEY_PAGE_UP,
	SHUNT_TOP_KEY_PAGE_DOWN,
	SHUNT_TOP_KEY_HOME,
	SHUNT_TOP_KEY_END,
	SHUNT_TOP_KEY_ENTER,
	SHUNT_TOP_KEY_BACKSPACE,
	SHUNT_TOP_KEY_ESCAPE,
};

enum shunt_top_mode {
	SHUNT_TOP_LIST,
	SHUNT_TOP_HELP, /* any key ends it */
	SHUNT_TOP_FILTER, /* a word is being typed */
	SHUNT_TOP_INTERVAL, /* seconds are being typed */
	SHUNT_TOP_END,
};

struct shunt_top_keys {
	struct shunt_top_model *model;
	enum shunt_top_mode mode;
	bool frozen; /* no looks are taken */
	double interval; /* seconds between looks */
	size_t page; /* rows on the screen, for the page keys */
	char typed[SHUNT_TOP_WORD];
	char message[SHUNT_TOP_WORD]; /* until the next key */
};

#define SHUNT_TOP_SHORTEST 0.1
#define SHUNT_TOP_LONGEST 86400.0

/* A number of seconds between the two. False: it is not. */
bool shunt_top_interval(const char *text, double *seconds);
void shunt_top_key(struct shunt_top_keys *keys, int key);
/* The line above the titles: view, order, interval, filter. */
void shunt_top_status(const struct shunt_top_keys *keys, int width, char line[SHUNT_TOP_LINE]);
/* The last line: the prompt, the message, or the keys. */
void shunt_top_prompt(const struct shunt_top_keys *keys, int width, char line[SHUNT_TOP_LINE]);
/* Lines of help; NULL ends them. */
extern const char *const shunt_top_help[];

/* ---- showing ---- */

struct shunt_top_options {
	bool batch, json;
	double interval; /* seconds */
	unsigned long looks; /* 0: until interrupted */
	struct shunt_door *wanted;
	size_t count; /* 0: all */
};

/* top_text.c: plain text, or a line of JSON for each look. The exit status. */
int shunt_top_plain(const struct shunt_top_options *options, struct shunt_top_model *model);
/* top_screen.c: can there be a screen? Otherwise why not, or NULL where it is plain that none is wanted. */
bool shunt_top_has_screen(const char **why);
int shunt_top_screen(const struct shunt_top_options *options, struct shunt_top_model *model);

/*
 * top_sampler.c: a thread that looks, because a process may take five seconds to answer and keys shall not wait.
 * Begin tells the descriptor that is readable when a look is there, or -errno.
 */
int shunt_top_sampler_begin(const struct shunt_top_options *options);
void shunt_top_sampler_ask(void);
/* The look that was asked for. 0, or -1 where the descriptor has said nothing, or there is no look. */
int shunt_top_sampler_take(struct shunt_look *look);

#endif
