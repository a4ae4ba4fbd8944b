/* SPDX-License-Identifier: MIT */
/*
 * Which requests are answered. Where only this host can connect, the kernel says whose socket it is; with a token,
 * the token counts, and nothing else. A page of the web can point its own name at 127.0.0.1, and so make a browser
 * read what is there (DNS rebinding). Such requests bear that name as their Host.
 */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"

static const struct {
	unsigned int status;
	const char *why;
} verdicts[MONITOR_VERDICTS] = {
	[MONITOR_WELCOME] = { 200, "" },
	[MONITOR_METHOD] = { 405, "only GET and HEAD: nothing can be changed here\n" },
	[MONITOR_BODY] = { 413, "a request has no body here\n" },
	[MONITOR_NO_HOST] = { 400, "a request has one Host\n" },
	[MONITOR_HOST] = { 421,
			   "this host is localhost, 127.0.0.1 or [::1]; --host names others\n" },
	[MONITOR_PATH] = { 404, "there are /, /metrics, /log and /healthz\n" },
	[MONITOR_TOKEN] = { 401, "the token is missing or wrong\n" },
	[MONITOR_USER] = { 403, "only the monitor's user and root may ask; --user names others\n" },
};

static const char *const paths[MONITOR_PAGES] = {
	[MONITOR_HEALTH] = "/healthz",
	[MONITOR_ROOT] = "/",
	[MONITOR_METRICS] = "/metrics",
	[MONITOR_LOG] = "/log",
};

unsigned int monitor_status(enum monitor_verdict verdict)
{
	return verdicts[verdict].status;
}

const char *monitor_why(enum monitor_verdict verdict)
{
	return verdicts[verdict].why;
}

/* ---- names ---- */

/* "NAME", "NAME:PORT", "[V6]" or "[V6]:PORT": the length of the name, with its brackets. 0: none of these. */
static size_t name_length(const char *host)
{
	size_t length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	const char *port = host + length;

	if (length > strlen(host) ||
	    (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
		return 0;
	return length;
}

static bool is_loopback_name(const char *name, size_t length)
{
	bool brackets = *name == '[';
	char text[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;

	if (length == 9 && !strncasecmp(name, "localhost", length))
		return true;
	if (brackets) {
		name++;
		length -= 2;
	}
	if (!length || length >= sizeof(text))
		return false;
	memcpy(text, name, length);
	text[length] = '\0';
	if (brackets)
		return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
	return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

static bool is_our_name(const struct monitor_options *options, const char *host)
{
	size_t length = name_length(host);

	if (!length)
		return false;
	for (size_t i = 0; i < options->host_count; i++)
		if (strlen(options->hosts[i]) == length &&
		    !strncasecmp(options->hosts[i], host, length))
			return true;
	return is_loopback_name(host, length);
}

/* ---- who asks ---- */

/* The time it takes tells nothing but the length of what was sent. */
static bool bears_token(const struct monitor_options *options, const char *authorization)
{
	unsigned int differs = 0;
	size_t length;

	if (!authorization || strncasecmp(authorization, "Bearer ", 7))
		return false;
	authorization += 7;
	length = strlen(authorization);
	differs |= length != options->token_length;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned int)((unsigned char)authorization[i] ^
					  (unsigned char)options->token[i % options->token_length]);
	return !differs;
}

bool monitor_befriends(const struct monitor_options *options, uid_t user)
{
	for (size_t i = 0; i < options->user_count; i++)
		if (options->users[i] == user)
			return true;
	return !user || user == geteuid();
}

static bool is_friend(const struct monitor_options *options, const struct monitor_request *request)
{
	uid_t user;

	return monitor_user(request->client, request->own, &user) &&
	       monitor_befriends(options, user);
}

/* ---- the judgement ---- */

static bool find_page(const char *path, enum monitor_page *page)
{
	for (unsigned int i = 0; i < MONITOR_PAGES; i++)
		if (!strcmp(path, paths[i])) {
			*page = (enum monitor_page)i;
			return true;
		}
	return false;
}

enum monitor_verdict monitor_judge(const struct monitor_options *options,
				   const struct monitor_request *request, enum monitor_page *page)
{
	if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD"))
		return MONITOR_METHOD;
	if (request->body)
		return MONITOR_BODY;
	if (!request->host || request->hosts != 1)
		return MONITOR_NO_HOST;
	if (!options->token_length && !is_our_name(options, request->host))
		return MONITOR_HOST;
	if (!find_page(request->path, page))
		return MONITOR_PATH;
	if (*page == MONITOR_HEALTH)
		return MONITOR_WELCOME;
	if (options->token_length)
		return bears_token(options, request->authorization) ? MONITOR_WELCOME :
								      MONITOR_TOKEN;
	return is_friend(options, request) ? MONITOR_WELCOME : MONITOR_USER;
}
