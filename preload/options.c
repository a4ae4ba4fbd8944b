/* SPDX-License-Identifier: MIT */
#include "preload/options.h"
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include "core/api.h"

/* Newer than the headers of some systems. Numbers of SO_ are those of most processors (asm-generic). */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_DEVMEM_DONTNEED
#define SO_DEVMEM_DONTNEED 80
#endif
#ifndef SO_RCVPRIORITY
#define SO_RCVPRIORITY 82
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38
#define TCP_AO_DEL_KEY 39
#define TCP_AO_INFO 40
#define TCP_AO_GET_KEYS 41
#define TCP_AO_REPAIR 42
#endif
#ifndef TCP_IS_MPTCP
#define TCP_IS_MPTCP 43
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#ifndef IP_PROTOCOL
#define IP_PROTOCOL 52
#endif

/* --- is it on? --- */

/* IP takes a byte, too, and IPv6 no pointer for 0. */
static int number(const void *value, socklen_t length)
{
	int on = 0;

	if (value && length >= sizeof(on))
		memcpy(&on, value, sizeof(on));
	else if (value && length)
		on = *(const uint8_t *)value;
	return on;
}

static bool is_not_zero(const void *value, socklen_t length)
{
	return number(value, length) != 0;
}

static bool is_not_negative(const void *value, socklen_t length)
{
	return number(value, length) >= 0;
}

static bool is_repairing(const void *value, socklen_t length)
{
	return number(value, length) == TCP_REPAIR_ON;
}

static bool always(const void *value, socklen_t length)
{
	(void)value;
	(void)length;
	return true;
}

static bool never(const void *value, socklen_t length)
{
	return !always(value, length);
}

/* Without a key it takes away that of the address. */
static bool has_key(const void *value, socklen_t length)
{
	uint16_t bytes = 0;
	size_t at = offsetof(struct tcp_md5sig, tcpm_keylen);

	if (length >= at + sizeof(bytes))
		memcpy(&bytes, (const char *)value + at, sizeof(bytes));
	return bytes != 0;
}

/* --- the rows --- */

/* The kernel alone serves it. */
#define KERNELS(name) [name] = { .flags = 0 }
#define HEARD { .flags = SHUNT_OPTION_HEARD }
#define YOUNG { .flags = SHUNT_OPTION_YOUNG }
#define BOTH { .flags = SHUNT_OPTION_HEARD | SHUNT_OPTION_YOUNG }
#define MARK { .flags = SHUNT_OPTION_MARK }
#define TCP_WHILE(bit, on, undo, value) { .needs = bit, .is_on = on, .off_name = undo, .off = value }
#define TCP_IF(on) { .needs = SHUNT_NEEDS_OTHER, .is_on = on }

static const struct shunt_option socket_options[] = {
	[SO_REUSEADDR] = YOUNG,
	KERNELS(SO_ERROR),	/* asked for: preload/sockopt.c */
	[SO_SNDBUF] = BOTH,
	[SO_RCVBUF] = YOUNG,
	[SO_KEEPALIVE] = YOUNG,
	KERNELS(SO_OOBINLINE),	/* urgent data is never on a link */
	[SO_PRIORITY] = YOUNG,
	[SO_LINGER] = BOTH,
	[SO_REUSEPORT] = YOUNG,
	[SO_RCVLOWAT] = HEARD,
	[SO_RCVTIMEO_OLD] = HEARD,
	[SO_SNDTIMEO_OLD] = HEARD,
	[SO_ATTACH_FILTER] = TCP_WHILE(SHUNT_NEEDS_FILTER, always, SO_DETACH_FILTER, 0),
	[SO_DETACH_FILTER] = { .needs = SHUNT_NEEDS_FILTER, .is_on = never },
	[SO_TIMESTAMP_OLD] = HEARD,	/* told with recvmsg(): preload/message.c */
	[SO_SNDBUFFORCE] = HEARD,
	[SO_TIMESTAMPNS_OLD] = HEARD,
	[SO_TIMESTAMPING_OLD] = TCP_WHILE(SHUNT_NEEDS_TIMES, is_not_zero, SO_TIMESTAMPING_OLD, 0),
	[SO_PEEK_OFF] = TCP_WHILE(SHUNT_NEEDS_PEEK_OFF, is_not_negative, SO_PEEK_OFF, -1),
	[SO_MAX_PACING_RATE] = { .flags = SHUNT_OPTION_PACING },
	[SO_ATTACH_BPF] = TCP_WHILE(SHUNT_NEEDS_FILTER, always, SO_DETACH_FILTER, 0),
	KERNELS(SO_ATTACH_REUSEPORT_CBPF),	/* the kernel picks the listener as without Shunt */
	KERNELS(SO_ZEROCOPY),	/* counts with MSG_ZEROCOPY, which goes to TCP itself */
	[SO_TIMESTAMP_NEW] = HEARD,
	[SO_TIMESTAMPNS_NEW] = HEARD,
	[SO_TIMESTAMPING_NEW] = TCP_WHILE(SHUNT_NEEDS_TIMES, is_not_zero, SO_TIMESTAMPING_NEW, 0),
	[SO_RCVTIMEO_NEW] = HEARD,
	[SO_SNDTIMEO_NEW] = HEARD,
	KERNELS(SO_DEBUG), KERNELS(SO_TYPE), KERNELS(SO_DONTROUTE), KERNELS(SO_BROADCAST),
	KERNELS(SO_NO_CHECK), KERNELS(SO_BSDCOMPAT), KERNELS(SO_PASSCRED), KERNELS(SO_PEERCRED),
	KERNELS(SO_SNDLOWAT), KERNELS(SO_BINDTODEVICE), KERNELS(SO_PEERNAME),
	KERNELS(SO_ACCEPTCONN), KERNELS(SO_PEERSEC), KERNELS(SO_RCVBUFFORCE), KERNELS(SO_PASSSEC),
	KERNELS(SO_MARK), KERNELS(SO_PROTOCOL), KERNELS(SO_DOMAIN), KERNELS(SO_RXQ_OVFL),
	KERNELS(SO_WIFI_STATUS), KERNELS(SO_NOFCS), KERNELS(SO_LOCK_FILTER),
	KERNELS(SO_SELECT_ERR_QUEUE), KERNELS(SO_BUSY_POLL), KERNELS(SO_BPF_EXTENSIONS),
	KERNELS(SO_INCOMING_CPU), KERNELS(SO_ATTACH_REUSEPORT_EBPF), KERNELS(SO_CNX_ADVICE),
	KERNELS(SO_MEMINFO), KERNELS(SO_INCOMING_NAPI_ID), KERNELS(SO_COOKIE),
	KERNELS(SO_PEERGROUPS), KERNELS(SO_TXTIME), KERNELS(SO_BINDTOIFINDEX),
	KERNELS(SO_DETACH_REUSEPORT_BPF), KERNELS(SO_PREFER_BUSY_POLL),
	KERNELS(SO_BUSY_POLL_BUDGET), KERNELS(SO_NETNS_COOKIE), KERNELS(SO_BUF_LOCK),
	KERNELS(SO_RESERVE_MEM), KERNELS(SO_TXREHASH), KERNELS(SO_RCVMARK), KERNELS(SO_PASSPIDFD),
	KERNELS(SO_PEERPIDFD), KERNELS(SO_DEVMEM_DONTNEED), KERNELS(SO_RCVPRIORITY),
	KERNELS(SO_PASSRIGHTS),
};

static const struct shunt_option tcp_options[] = {
	[TCP_NODELAY] = BOTH,
	[TCP_CORK] = HEARD,
	[TCP_KEEPIDLE] = YOUNG,
	[TCP_KEEPINTVL] = YOUNG,
	[TCP_KEEPCNT] = YOUNG,
	[TCP_DEFER_ACCEPT] = YOUNG,
	[TCP_QUICKACK] = YOUNG,
	[TCP_CONGESTION] = YOUNG,
	[TCP_MD5SIG] = TCP_IF(has_key),
	[TCP_USER_TIMEOUT] = HEARD,
	[TCP_REPAIR] = { .flags = SHUNT_OPTION_FREEZES, .needs = SHUNT_NEEDS_REPAIR, .is_on = is_repairing },
	KERNELS(TCP_REPAIR_QUEUE),	/* refused outside repair, as are TCP_QUEUE_SEQ, TCP_REPAIR_OPTIONS and TCP_REPAIR_WINDOW */
	[TCP_NOTSENT_LOWAT] = HEARD,
	KERNELS(TCP_FASTOPEN_CONNECT),	/* connect() returns before the SYN has been sent: preload/connect.c */
	[TCP_ULP] = TCP_IF(always),
	[TCP_MD5SIG_EXT] = TCP_IF(has_key),
	[TCP_ZEROCOPY_RECEIVE] = { .flags = SHUNT_OPTION_TAKES },
	[TCP_INQ] = HEARD,	/* told with recvmsg(): preload/message.c */
	[TCP_TX_DELAY] = TCP_IF(is_not_zero),
	[TCP_AO_ADD_KEY] = TCP_IF(always),
	KERNELS(TCP_MAXSEG), KERNELS(TCP_SYNCNT), KERNELS(TCP_LINGER2), KERNELS(TCP_WINDOW_CLAMP),
	KERNELS(TCP_INFO), KERNELS(TCP_THIN_LINEAR_TIMEOUTS), KERNELS(TCP_THIN_DUPACK),
	KERNELS(TCP_QUEUE_SEQ), KERNELS(TCP_REPAIR_OPTIONS), KERNELS(TCP_FASTOPEN),
	KERNELS(TCP_TIMESTAMP), KERNELS(TCP_CC_INFO), KERNELS(TCP_SAVE_SYN), KERNELS(TCP_SAVED_SYN),
	KERNELS(TCP_REPAIR_WINDOW), KERNELS(TCP_FASTOPEN_KEY), KERNELS(TCP_FASTOPEN_NO_COOKIE),
	KERNELS(TCP_AO_DEL_KEY), KERNELS(TCP_AO_INFO), KERNELS(TCP_AO_GET_KEYS),
	KERNELS(TCP_AO_REPAIR), KERNELS(TCP_IS_MPTCP), KERNELS(TCP_RTO_MAX_MS),
	KERNELS(TCP_RTO_MIN_US), KERNELS(TCP_DELACK_MAX_US),
};

static const struct shunt_option ip_options[] = {
	KERNELS(IP_RECVOPTS),	/* of a stream recvmsg() gives none of these */
	[IP_FREEBIND] = MARK,
	[IP_IPSEC_POLICY] = TCP_IF(always),
	[IP_XFRM_POLICY] = TCP_IF(always),
	[IP_MINTTL] = TCP_IF(is_not_zero),
	[IP_BIND_ADDRESS_NO_PORT] = MARK,
	[IP_MULTICAST_LOOP] = MARK,
	[IP_MULTICAST_ALL] = MARK,
	KERNELS(IP_TOS), KERNELS(IP_TTL), KERNELS(IP_HDRINCL), KERNELS(IP_OPTIONS),
	KERNELS(IP_ROUTER_ALERT), KERNELS(IP_RETOPTS), KERNELS(IP_PKTINFO), KERNELS(IP_PKTOPTIONS),
	KERNELS(IP_MTU_DISCOVER), KERNELS(IP_RECVERR), KERNELS(IP_RECVTTL), KERNELS(IP_RECVTOS),
	KERNELS(IP_MTU), KERNELS(IP_PASSSEC), KERNELS(IP_TRANSPARENT), KERNELS(IP_ORIGDSTADDR),
	KERNELS(IP_NODEFRAG), KERNELS(IP_CHECKSUM), KERNELS(IP_RECVFRAGSIZE),
	KERNELS(IP_RECVERR_RFC4884), KERNELS(IP_MULTICAST_IF), KERNELS(IP_MULTICAST_TTL),
	KERNELS(IP_ADD_MEMBERSHIP), KERNELS(IP_DROP_MEMBERSHIP), KERNELS(IP_UNBLOCK_SOURCE),
	KERNELS(IP_BLOCK_SOURCE), KERNELS(IP_ADD_SOURCE_MEMBERSHIP),
	KERNELS(IP_DROP_SOURCE_MEMBERSHIP), KERNELS(IP_MSFILTER), KERNELS(IP_UNICAST_IF),
	KERNELS(IP_LOCAL_PORT_RANGE), KERNELS(IP_PROTOCOL),
};

/* A socket of IPv6 shows the marks of IPv4, too, and IPV6_FREEBIND is the bit of IP_FREEBIND. */
static const struct shunt_option ipv6_options[] = {
	[IPV6_IPSEC_POLICY] = TCP_IF(always),
	[IPV6_XFRM_POLICY] = TCP_IF(always),
	[IPV6_MINHOPCOUNT] = TCP_IF(is_not_zero),
	[IPV6_FREEBIND] = MARK,
	KERNELS(IPV6_ADDRFORM), KERNELS(IPV6_2292PKTINFO), KERNELS(IPV6_2292HOPOPTS),
	KERNELS(IPV6_2292DSTOPTS), KERNELS(IPV6_2292RTHDR), KERNELS(IPV6_2292PKTOPTIONS),
	KERNELS(IPV6_CHECKSUM), KERNELS(IPV6_2292HOPLIMIT), KERNELS(IPV6_FLOWINFO),
	KERNELS(IPV6_UNICAST_HOPS), KERNELS(IPV6_MULTICAST_IF), KERNELS(IPV6_MULTICAST_HOPS),
	KERNELS(IPV6_MULTICAST_LOOP), KERNELS(IPV6_ADD_MEMBERSHIP), KERNELS(IPV6_DROP_MEMBERSHIP),
	KERNELS(IPV6_ROUTER_ALERT), KERNELS(IPV6_MTU_DISCOVER), KERNELS(IPV6_MTU),
	KERNELS(IPV6_RECVERR), KERNELS(IPV6_V6ONLY), KERNELS(IPV6_JOIN_ANYCAST),
	KERNELS(IPV6_LEAVE_ANYCAST), KERNELS(IPV6_MULTICAST_ALL),
	KERNELS(IPV6_ROUTER_ALERT_ISOLATE), KERNELS(IPV6_RECVERR_RFC4884),
	KERNELS(IPV6_FLOWLABEL_MGR), KERNELS(IPV6_FLOWINFO_SEND), KERNELS(IPV6_HDRINCL),
	KERNELS(IPV6_RECVPKTINFO), KERNELS(IPV6_PKTINFO), KERNELS(IPV6_RECVHOPLIMIT),
	KERNELS(IPV6_HOPLIMIT), KERNELS(IPV6_RECVHOPOPTS), KERNELS(IPV6_HOPOPTS),
	KERNELS(IPV6_RTHDRDSTOPTS), KERNELS(IPV6_RECVRTHDR), KERNELS(IPV6_RTHDR),
	KERNELS(IPV6_RECVDSTOPTS), KERNELS(IPV6_DSTOPTS), KERNELS(IPV6_RECVPATHMTU),
	KERNELS(IPV6_PATHMTU), KERNELS(IPV6_DONTFRAG), KERNELS(IPV6_RECVTCLASS),
	KERNELS(IPV6_TCLASS), KERNELS(IPV6_AUTOFLOWLABEL), KERNELS(IPV6_ADDR_PREFERENCES),
	KERNELS(IPV6_ORIGDSTADDR), KERNELS(IPV6_TRANSPARENT), KERNELS(IPV6_UNICAST_IF),
	KERNELS(IPV6_RECVFRAGSIZE),
};

static const struct shunt_option none;

#define ROW(options, name) \
	((size_t)(name) < sizeof(options) / sizeof((options)[0]) ? &(options)[name] : &none)

const struct shunt_option *shunt_option_at(int level, int name)
{
	switch (level) {
	case SOL_SOCKET:
		return ROW(socket_options, name);
	case IPPROTO_TCP:
		return ROW(tcp_options, name);
	case IPPROTO_IP:
		return ROW(ip_options, name);
	case IPPROTO_IPV6:
		return ROW(ipv6_options, name);
	default:
		return &none;
	}
}
