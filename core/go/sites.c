/* SPDX-License-Identifier: MIT */
#include "core/go/sites.h"

#define CODE_MAX 65536	/* no function in assembly is longer */
#define BEFORE_MAX 5

/* The instruction before SYSCALL. */
enum shape {
	THIRD,		/* mov rdi, rbx: the last argument that has come in a register */
	STACK,		/* mov rax, [rsp + n]: the number, from the stack */
	NUMBER,		/* mov eax, n */
	VFORK,		/* pop r12; behind it push r12: the return address, which the child would overwrite */
};

/* How much depends on a function. */
enum part {
	GATE,		/* all calls of the packages above */
	OLD_GATE,	/* that before 1.19 */
	EPOLL,		/* there must be all of them up to 1.19 */
	END,		/* there must be one */
	OTHER,
};

static const struct known {
	const char *name;
	enum shape shape;
	enum part part;
	uint32_t number;	/* of the call, with NUMBER */
} known[] = {
	{ "runtime/internal/syscall.Syscall6", THIRD, GATE, 0 },
	{ "internal/runtime/syscall.Syscall6", THIRD, GATE, 0 },
	{ "internal/runtime/syscall/linux.Syscall6", THIRD, GATE, 0 },
	{ "syscall.Syscall", STACK, OLD_GATE, 0 },
	{ "syscall.Syscall6", STACK, OLD_GATE, 0 },
	{ "syscall.RawSyscall", STACK, OLD_GATE, 0 },
	{ "syscall.RawSyscall6", STACK, OLD_GATE, 0 },
	{ "syscall.rawVforkSyscall", VFORK, OTHER, 0 },
	{ "runtime.epollcreate1", NUMBER, EPOLL, 291 },
	{ "runtime.epollctl", NUMBER, EPOLL, 233 },
	{ "runtime.epollwait", NUMBER, EPOLL, 281 },
	{ "runtime.exit", NUMBER, END, 231 },
	{ "runtime.read", NUMBER, OTHER, 0 },
	{ "runtime.write1", NUMBER, OTHER, 1 },
	{ "runtime.closefd", NUMBER, OTHER, 3 },
};

enum { EPOLLS = 3 };

/* In what packages Go's own assembly is, and that of golang.org/x/sys. */
static const char *const packages[] = {
	"runtime.",	     "runtime/",	  "internal/runtime/",	     "syscall.",
	"internal/syscall/", "golang.org/x/sys/", "vendor/golang.org/x/sys/"
};

/* Calls that must not be made past Shunt, by their numbers on x86-64. epoll_create, which none of them needs, is not here. */
static const uint16_t concern[] = {
	0,   1,	  3,   7,   19,	 20,  23,  32,	33,  40,  41,  42,  43,	 44,
	45,  46,  47,  48,  50,	 54,  55,  57,	58,  59,  231, 232, 233, 270,
	271, 275, 281, 288, 291, 292, 299, 307, 322, 435, 436, 441,
};

struct search {
	struct shunt_go_sites *sites;
	const struct shunt_go_image *image;
	const char *wrong, *old_wrong;	/* functions that are not as they are known */
	unsigned int gates, old_gates, epolls, ends;
	bool cgo;
};

static uint64_t length_before(enum shape shape)
{
	return shape == THIRD ? 3 : shape == VFORK ? 2 : 5;
}

/* `code` has `at` bytes before SYSCALL, and `left` from there on. */
static bool has_shape(const struct known *known, const uint8_t *code, uint64_t at, uint64_t left)
{
	const uint8_t *before = code + at - length_before(known->shape);

	if (at < length_before(known->shape))
		return false;
	switch (known->shape) {
	case THIRD:
		return !memcmp(before, "\x48\x89\xdf", 3);
	case STACK:
		return !memcmp(before, "\x48\x8b\x44\x24", 4);
	case NUMBER:
		return before[0] == 0xb8 && shunt_go_u32(before + 1) == known->number;
	default:
		return !memcmp(before, "\x41\x5c", 2) && left >= 4 &&
		       !memcmp(code + at + 2, "\x41\x54", 2);
	}
}

static const uint8_t *next_syscall(const uint8_t *from, const uint8_t *end)
{
	return memmem(from, (size_t)(end - from), "\x0f\x05", 2);
}

static bool take(struct search *search, const struct known *known, uint64_t address)
{
	struct shunt_go_sites *sites = search->sites;
	uint64_t before = length_before(known->shape);

	if (sites->count == SHUNT_GO_SITES)
		return false;
	sites->site[sites->count++] = (struct shunt_go_site) { .address = address - before,
							       .before = (uint8_t)before,
							       .vfork = known->shape == VFORK };
	return true;
}

static void count(struct search *search, enum part part)
{
	search->gates += part == GATE;
	search->old_gates += part == OLD_GATE;
	search->epolls += part == EPOLL;
	search->ends += part == END;
}

/* One without SYSCALL is the wrapper of that name for another calling convention. More than one has never been. */
static bool look_at_known(struct search *search, const struct known *known,
			  const struct shunt_go_function *function, const uint8_t *code,
			  const uint8_t *end)
{
	const uint8_t *found = next_syscall(code, end);

	if (!found)
		return true;
	if (next_syscall(found + 2, end) ||
	    !has_shape(known, code, (uint64_t)(found - code), (uint64_t)(end - found)) ||
	    !take(search, known, function->from + (uint64_t)(found - code)))
		return false;
	count(search, known->part);
	return true;
}

static bool is_concern(uint32_t number)
{
	for (size_t i = 0; i < sizeof(concern) / sizeof(*concern); i++)
		if (concern[i] == number)
			return true;
	return false;
}

/* A call that concerns us under a name that is not known: a version of Go that is not known. */
static bool is_harmless(const uint8_t *code, const uint8_t *end)
{
	for (const uint8_t *at = code; (at = next_syscall(at, end)); at += 2) {
		if (at - code >= 5 && at[-5] == 0xb8 && is_concern(shunt_go_u32(at - 4)))
			return false;
		if (at - code >= 7 && !memcmp(at - 7, "\x48\xc7\xc0", 3) &&
		    is_concern(shunt_go_u32(at - 4)))
			return false;
	}
	return true;
}

static const struct known *find_known(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(name, known[i].name))
			return &known[i];
	return NULL;
}

static bool in_packages(const char *name)
{
	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (!strncmp(name, packages[i], strlen(packages[i])))
			return true;
	return false;
}

static void look_at(struct search *search, const struct shunt_go_function *function)
{
	const struct known *match;
	const uint8_t *code;
	uint64_t size = function->to - function->from;

	if (!strchr("crsigv", function->name[0]))
		return;
	if (!strcmp(function->name, "crosscall2"))
		search->cgo = true;
	if (!in_packages(function->name) || size > CODE_MAX)
		return;
	code = shunt_go_image_at(search->image, function->from, size);
	match = find_known(function->name);
	if (!code)
		search->wrong = match ? function->name : search->wrong;
	else if (!match)
		search->wrong = is_harmless(code, code + size) ? search->wrong : function->name;
	else if (!look_at_known(search, match, function, code, code + size))
		*(match->part == OLD_GATE ? &search->old_wrong : &search->wrong) = function->name;
}

/* Where the new gate is, functions of the old names call it. Bytes in them that look like SYSCALL are no instruction. */
static enum shunt_go_verdict judge(struct search *search, const struct shunt_go_table *table)
{
	bool gate = search->gates == 1 ||
		    (!search->gates && search->old_gates && !search->old_wrong);

	if (!search->cgo)
		return SHUNT_GO_NO_CGO;
	search->sites->function = search->wrong ? search->wrong :
				  search->old_gates && !search->gates ? search->old_wrong : NULL;
	if (search->sites->function)
		return SHUNT_GO_OTHER_CODE;
	search->sites->function = !gate		? "Syscall6" :
				  !search->ends ? "runtime.exit" :
				  table->form < 20 && search->epolls < EPOLLS ?
						  "runtime.epollwait" :
						  NULL;
	return search->sites->function ? SHUNT_GO_NO_GATE : SHUNT_GO_KNOWN;
}

enum shunt_go_verdict shunt_go_sites_find(struct shunt_go_sites *sites,
					  const struct shunt_go_image *image, uint64_t hint)
{
	struct search search = { .sites = sites, .image = image };
	struct shunt_go_function function;
	struct shunt_go_table table;

	sites->count = 0;
	sites->function = NULL;
	if (!(hint && shunt_go_table_read(&table, image, hint)) &&
	    !shunt_go_table_search(&table, image))
		return SHUNT_GO_NO_TABLE;
	for (uint64_t row = 0; row < table.count; row++) {
		if (!shunt_go_table_function(&table, row, &function))
			return SHUNT_GO_NO_TABLE;
		look_at(&search, &function);
	}
#ifndef __x86_64__
	return SHUNT_GO_OTHER_MACHINE;
#endif
	return judge(&search, &table);
}

const char *shunt_go_verdict_text(enum shunt_go_verdict verdict)
{
	switch (verdict) {
	case SHUNT_GO_KNOWN:
		return "its system calls are known";
	case SHUNT_GO_NO_TABLE:
		return "its table of functions (.gopclntab) has no form that is known";
	case SHUNT_GO_NO_CGO:
		return "it is built without cgo, so its threads are not libc's";
	case SHUNT_GO_NO_GATE:
		return "a function of its runtime is missing, perhaps renamed";
	case SHUNT_GO_OTHER_CODE:
		return "a function of its runtime has code that is not known";
	default:
		return "Go programs are carried on x86-64 only";
	}
}

static const uint8_t info_magic[] = { 0xff, ' ', 'G', 'o', ' ', 'b', 'u',
				      'i',  'l', 'd', 'i', 'n', 'f', ':' };

/* Since 1.18 the text is there, behind its length; before, the address of a string is. */
static const uint8_t *version_at(const struct shunt_go_image *image, uint64_t info, uint64_t *bytes)
{
	const uint8_t *head = shunt_go_image_at(image, info, 33), *string;

	if (!head || memcmp(head, info_magic, sizeof(info_magic)))
		return NULL;
	if (head[15] & 2) {
		*bytes = head[32];	/* a varint: a version is no longer than one byte of it can say */
		return *bytes < SHUNT_GO_VERSION ? shunt_go_image_at(image, info + 33, *bytes) :
						   NULL;
	}
	string = shunt_go_image_at(image, shunt_go_u64(head + 16), 16);
	*bytes = string ? shunt_go_u64(string + 8) : 0;
	return string && *bytes < SHUNT_GO_VERSION ?
		       shunt_go_image_at(image, shunt_go_u64(string), *bytes) :
		       NULL;
}

static bool is_version(const uint8_t *text, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	return true;
}

void shunt_go_version(const struct shunt_go_image *image, uint64_t hint,
		      char version[SHUNT_GO_VERSION])
{
	uint64_t bytes = 0;
	const uint8_t *text = hint ? version_at(image, hint, &bytes) : NULL;

	for (unsigned int i = 0; !text && i < image->count; i++)
		if (image->segments[i].flags & PF_W)
			text = version_at(image, image->segments[i].address, &bytes);
	if (!text || !is_version(text, bytes))
		bytes = 0;
	if (bytes)
		memcpy(version, text, bytes);
	version[bytes] = '\0';
}
