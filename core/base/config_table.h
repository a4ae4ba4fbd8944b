/* SPDX-License-Identifier: MIT */
/*
 * Every variable of Shunt, once. The structure, the parser, `shunt config` and the manual page are
 * generated from these rows (so this file has no include guard).
 *
 * Rows, in the order in which they are shown:
 *
 *   BOOL(name, field, default, live, help)
 *   ENUM(name, field, words, default word's index, live, help)
 *   UINT(name, field, min, max, default, flags, unit, live, help)
 *   PATH(name, field, live, help)                    the default is the empty string
 *   FORM(name, field, check, form, default, live, help)   text that `check` takes (0 for a good one) and that
 *                                                    `form` describes
 *
 * name without SHUNT_; live: LIVE if a running engine accepts a new value, FIXED if not, LINK if
 * not because links are made with it.
 * flags: SIZE accepts the suffixes K, M, G and is shown with them; POW2 is rounded up to a power of
 * two. AUTO accepts the word auto, which is UINT64_MAX. unit: what a plain number counts.
 */
BOOL(ENABLE, enable, 1, FIXED,
	"whether Shunt does anything; 0 leaves every connection on TCP")
FORM(CONF, conf, conf_check, "none|PATH", "", FIXED,
	"file with settings that counts in the place of /etc/shunt.conf and ~/.config/shunt.conf: an absolute name, or none. "
	"It counts in the environment alone; shunt.conf(5) has what such a file holds")
FORM(DEVICE, device, device_check, "auto|soft|verbs[:NAME]|none", "auto", FIXED,
	"the device that carries streams: soft is shared memory on this host, verbs an RDMA device of the machine, "
	"and none offers and takes no links. Auto is soft to peers on this host, and verbs to others. Verbs takes "
	"the device by which the route to a peer leads")
ENUM(LOG, log_level, "none|error|warn|info|debug", 2, LIVE,
	"the least important messages to write. Set, it also asks for messages where standard error is a pipe or a file, "
	"which may be another program's: unset, only a terminal and systemd's journal get any")
ENUM(LOG_FORMAT, log_format, "text|json", 0, FIXED,
	"how messages are written: a line of text, or a JSON object a line. Both have the time (UTC), the process id and "
	"the stream. Text in systemd's journal has no time, because the journal notes it")
PATH(LOG_FILE, log_file, FIXED,
	"file that messages are appended to instead of standard error; %p is the process id. It must be a regular "
	"file of the process's user and no symbolic link. Where it cannot be written, a terminal or the journal is told. Only that user should be able to write in its folder")
ENUM(POLL, poll, "event|batch|hybrid|busy|adaptive", 4, LIVE,
	"how a wait looks for completions. Event asks for an event and sleeps, and batch takes no more than "
	"SHUNT_POLL_BATCH with one. Hybrid polls until nothing is there, adaptive polls on as long as that pays, "
	"and busy does not sleep while no other thread wants its core")
UINT(SPIN_US, spin_us, 0, 1000, 25, 0, "us", LIVE,
	"adaptive: how long a wait polls before it sleeps")
UINT(POLL_RETRY, poll_retry, 0, 1000000000, 100000, 0, "polls", LIVE,
	"adaptive: how many polls in a row may find nothing; 0 is hybrid, and the default leaves the end "
	"to SHUNT_SPIN_US")
UINT(POLL_BATCH, poll_batch, 1, 64, 32, 0, "completions", LIVE,
	"most completions taken from a CQ at once")
UINT(POLL_WARN_US, poll_warn_us, 0, 3600000000ULL, 0, 0, "us", LIVE,
	"`shunt log` keeps polls that find arrived bytes so long after the poll before. A thread that slept until they "
	"came is not late. With 0 no poll reads the clock")
UINT(SLOW_US, slow_us, 0, 3600000000ULL, 0, 0, "us", LIVE,
	"`shunt log` keeps steps that take so long: a send that waits for room, a completion, a claim and others. With 0 "
	"no step reads the clock")
UINT(CQS, cqs, 1, 8, 1, 0, "queues", LINK,
	"completion queues; lanes take them in turn")
UINT(RING_MIN, ring_min, 4 * K, 64 * M, 16 * K, SIZE | POW2, "bytes", LINK,
	"receive ring of a new stream's direction")
UINT(RING_MAX, ring_max, 4 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LINK,
	"how far a busy direction's ring grows")
UINT(ARENA, arena_bytes, 16 * M, 32 * G, 1 * G, SIZE, "bytes", LINK,
	"address space for the rings of one link, backed by memory as it is used. Less where the program has limited its "
	"address space (RLIMIT_AS): links take a quarter of what the limit leaves")
UINT(FRAG, frag_bytes, 4 * K, 1 * M, 64 * K, SIZE, "bytes", LINK,
	"largest single RDMA write; adjacent sends are merged up to it")
UINT(MR, mr_bytes, 64 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LINK,
	"one memory region, out of which rings are carved and which is registered as it is needed; at least "
	"SHUNT_RING_MAX")
UINT(INLINE, inline_bytes, 64, 1 * M, 1 * M, SIZE, "bytes", LINK,
	"largest data that a work request carries itself; the device fetches more than that from registered memory")
UINT(MR_THRESHOLD, mr_threshold, 0, 1 * G, UINT64_MAX, SIZE | AUTO, "bytes", FIXED,
	"blocking sends from this size on are fetched from the program's own buffer, registered for the call. "
	"Auto measures where that costs less than a copy, and 0 is never")
ENUM(COPY, copy, "auto|memcpy|nt", 0, LIVE,
     "how copies of 12 KiB and more are made. Memcpy is by a string instruction, as in the C library. Nt stores past the caches, into a ring of "
     "this host, a buffer that a device fetches from, and the program's. Auto does so only into a ring that lies in "
     "the cache of another core, and uses plain stores else")
UINT(PREFETCH, prefetch, 0, 4 * K, 128, 0, "bytes", LIVE,
	"so much of what has arrived is fetched into the cache by the poll that finds it, before the program reads it; 0 "
	"is none")
ENUM(BATCH, batch, "single|merge|chain|hybrid", 3, LIVE,
	"how sends that could not be posted at once are posted. Single posts each alone, merge joins adjacent ones, "
	"chain posts those of all streams with one doorbell, and hybrid does both")
UINT(CHAIN, chain_max, 1, 64, 16, 0, "requests", LIVE,
	"most work requests posted with one doorbell")
UINT(LANES, lanes, 1, 8, UINT64_MAX, AUTO, "lanes", LINK,
	"queue pairs of a link, over which its streams are spread. The end that wants fewer decides. Auto is 1 on the "
	"soft device and 4 on RDMA devices")
UINT(RQ, rq_depth, 64, 16384, 1024, POW2, "requests", LINK,
	"receive queue of a lane")
UINT(SQ, sq_depth, 64, 16384, 1024, POW2, "requests", LINK,
	"send queue of a lane")
UINT(SIGNAL_EVERY, signal_every, 1, 1024, 64, 0, "requests", LIVE,
	"one work request in this many asks for a completion")
ENUM(ADMIT, admit, "static|aimd|none", 0, LINK,
	"policy of the window: fixed, adapted to completion times, or none")
UINT(STAGE_MAX, stage_max, 64 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LIVE,
	"how much of one stream an RDMA device may have under way. A stream begins with 64 KiB, and has more where the "
	"path bears more: its rate times its round trip. All streams of the process have at most 64 times as much")
UINT(WINDOW, window_bytes, 0, 1 * G, UINT64_MAX, SIZE | AUTO, "bytes", LIVE,
	"most data of a lane in flight; 0 for no limit. Auto is 1M on the soft device, and at least SHUNT_STAGE_MAX on RDMA "
	"devices")
UINT(WINDOW_WR, window_wrs, 0, 16384, 512, 0, "requests", LIVE,
	"most work requests of a lane in flight; 0 for no limit")
UINT(WINDOW_DEVICE, window_device, 0, 16 * G, 0, SIZE, "bytes", LIVE,
	"most data of all lanes together in flight; 0 for no limit")
ENUM(RETAIN, retain, "auto|always", 0, LINK,
	"keep what was sent until it has arrived, so that a queue pair's death loses nothing; auto where the peer's "
	"memory cannot be seen instead")
ENUM(TRUST, trust, "user|host|key", 1, FIXED,
	"the peers that may carry a connection. User is, on this host, a process that could ptrace this one, and the other "
	"way round. Host is also any other that proves to hold the connection's socket, with the kernel as witness. Key is "
	"host on this host, and takes no peer of another host without SHUNT_KEY")
PATH(KEY, key_file, FIXED,
	"file with a secret of 16 to 4096 bytes that other hosts have, too: only with them are there links between hosts. It "
	"must be a regular file, no symbolic link, either the process's user's with mode 600, or root's with at most 640. "
	"It is read once. Without a good one there are no links between hosts")
ENUM(PROOF, proof, "auto|nonce", 0, FIXED,
	"how an end proves that a claimed connection is its own. Auto asks the kernel about a peer on this host, and "
	"writes a nonce into the stream between hosts. Nonce always writes one")
UINT(DEAD_MS, dead_ms, 10, 60000, 500, 0, "ms", LINK,
	"after how long a peer that does not answer on an RDMA device is given up; its streams go on over TCP")
UINT(KEEPALIVE_MS, keepalive_ms, 0, 86400000, 2000, 0, "ms", LIVE,
	"how long an idle lane of an RDMA device may go without a sign of life. Twice in that time its peer's device "
	"is asked for one. A device that gives none within SHUNT_DEAD_MS is given up. With 0 none is asked")
UINT(LINK_IDLE_S, link_idle_s, 0, 86400, 120, 0, "s", LIVE,
	"after how long a link that no connection uses ends, with its queue pairs and its memory. The next connection to that "
	"process makes another. 0 keeps it as long as both processes live")
UINT(SILENCE_S, silence_s, 2, 86400, 900, 0, "s", FIXED,
	"after how long a peer's host that answers neither over RDMA nor over TCP is given up")
UINT(TOS, tos, 0, 255, UINT64_MAX, AUTO, "", LIVE,
	"type of service (DSCP and ECN) of the packets of links to other hosts that this process asks for from now on, at both "
	"ends. It chooses the priority on a lossless network, too. Auto leaves it to the system's setting for the connection "
	"manager")
FORM(PORTS, ports, ports_check, "auto|FIRST[-LAST]", "auto", FIXED,
	"TCP ports at which processes of other hosts come with the channels of their links, for firewalls. Each process that "
	"accepts connections takes one for IPv4 and one for IPv6, the first that is free. Auto lets the system choose")
UINT(DIRECTORY, directory, 0, 65535, 14791, 0, "", FIXED,
     "TCP port at which hosts with iWARP devices ask each other who listens at an address; all hosts have the same. 0 is "
     "none: connections over iWARP devices stay on TCP. Other devices do not use it")
UINT(CLAIM_MS, claim_ms, 10, 60000, 1000, 0, "ms", LIVE,
	"how long a new connection may wait for its peer's claim, counted from its first byte")
UINT(BRIEF, brief, 0, 1000, 8, 0, "connections", LIVE,
	"after so many connections to an address that ended before a link could serve them, further ones are claimed "
	"only once they have lasted. Connections that a link has served count against them. 0 claims each at its "
	"first use. Where no link to a process of another host is up, connections there have to last from the start, unless this "
	"is 0")
BOOL(BRIEF_FIRST, brief_first, 0, FIXED,
	"whether connections to an address are expected to be brief before any has ended there. For programs that are "
	"started for one question")
ENUM(BORN, born, "off|auto", 1, FIXED,
	"auto keeps connections that both programs have closed, within one host, and gives them to the next that connect to "
	"the same address (docs/dev/ARCHITECTURE.md). off makes each by the kernel")
ENUM(GO, go, "auto|off", 0, FIXED,
	"whether the system calls of Go programs are carried, which do not go through the C library. Auto does so for "
	"dynamically linked programs of Go versions that Shunt knows, on x86-64, and off never (docs/CARRIED.md)")
ENUM(GATE, gate, "auto|names|calls", 0, FIXED,
	"whether calls are carried that do not come by their names, such as those of plug-ins and aio. Auto replaces "
	"system calls of the C library at the program's first socket, if one thread runs. Calls does so as the program "
	"is loaded, if the environment says it, and names never (docs/CARRIED.md)")
UINT(REFUSED_MS, refused_ms, 0, 600000, 2000, 0, "ms", LIVE,
	"how long a peer without Shunt is remembered")
ENUM(MOCK, mock, "auto|tcp|rdma", 0, FIXED,
	"which track carries streams: tcp keeps both directions on TCP until `shunt adm` says otherwise, rdma keeps them "
	"on the link also where completions are slow")
UINT(SLOW_MS, slow_ms, 0, 60000, 100, 0, "ms", LIVE,
	"a link that waits for completions and has none for this time is slow; 0 for never")
UINT(SLOW_TIMES, slow_times, 1, 1000, 3, 0, "looks", LIVE,
	"streams of a link send over TCP for SHUNT_RETURN_MS when it was slow so many times in a row")
UINT(RETURN_MS, return_ms, 0, 600000, 1000, 0, "ms", LIVE,
	"after how long streams return to a link that was slow or whose queue pair has died. The time doubles each "
	"time that this happens again soon. With 0 they do not return after a queue pair's death")
UINT(RETURN_MAX_MS, return_max_ms, 0, 3600000, 60000, 0, "ms", LIVE,
	"the longest such time")
ENUM(URING, uring, "watch|deny|allow|tcp", 0, FIXED,
	"policy for a program's rings of io_uring, which see nothing of a link. Watch looks at what is submitted: "
	"streams that a ring uses stay on TCP. Deny refuses rings, as a kernel without io_uring does. Allow lets them be. Tcp lets them be and keeps all streams of the process on TCP "
	"from then on")
UINT(FLIP, flip_bytes, 0, 1 * G, 0, SIZE, "bytes", FIXED,
	"torture: move each direction to the other track after a random number of bytes up to this")
UINT(SEED, seed, 0, 1ULL << 63, 0, 0, "", FIXED,
	"seed of the random choices; 0 takes one from the system")
PATH(DIR, dir, FIXED,
	"directory in which processes of several network namespaces of this host meet, as containers that all mount "
	"it. Root or the process's user owns it, and where others may write in it, it is sticky. Without one they "
	"stay on TCP")
FORM(SOFT_MODEL, soft_model, model_check, "connectx3,KEY=VALUE,...", "", FIXED,
	"cost model that slows the soft device down to an RNIC, for experiments. Its keys are doorbell, wqe, delay, "
	"miss, qp, pause (ns), gbit (Gbit/s), cache (requests), queue (bytes), block and sink (ns for 4 KiB at the "
	"sender and at the receiving node) and sinkfile (a file by which processes share that node)")
FORM(FAULT, fault, fault_check, "ACTION:KEY=VALUE,...;...", "", FIXED,
	"faults on purpose, for tests: rules with the actions delay, stall, drop, kill, post, corrupt, freeze, "
	"refuse, deny; docs/dev/FAULTS.md has their keys")
PATH(QOS, qos_rules, FIXED,
	"limits and reservations for the clients of a process that accepts connections: rules, or the absolute name of a "
	"file of them. shunt-qos(5) has the rules, and `shunt adm PROCESS qos RULES` puts others in force")
FORM(QOS_CLASS, qos_class, name_check, "NAME", "", FIXED,
	"the class that the process asks for where it connects. It counts where a rule of the node says declared=NAME. A "
	"name has at most 31 letters, digits, dots, dashes and underscores")
BOOL(QOS_CONVERT, qos_convert, 1, FIXED,
	"whether a node with a capacity gives what reservations leave to all of its clients, as the period goes on. 0 is "
	"Basic Haechi: what reservations leave is wasted")
BOOL(QOS_PACE, qos_pace, 1, FIXED,
	"whether tokens of a node with a capacity come in proportion to time, as the period goes on. 0 is the paper's way: "
	"a period begins with all of them")
ENUM(TRACE, trace, "off|0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16", 0, LIVE,
	"how many sends are followed to the program that reads them: one in 2^K of each stream. `shunt trace` shows where "
	"their time went")
PATH(RULES, rules, FIXED,
	"rules for connections: link, tcp or mock by program, user, address and port, the first that fits. It is the rules, the "
	"absolute name of a file of them, or off. shunt.conf(5) has them. The lines of rules in configuration files do not "
	"count beside it, and `shunt adm PROCESS rules` puts others in force")
PATH(STATS, stats_path, FIXED,
	"file that the statistics are written to as JSON at exit; %p is the process id. A new file takes its place, "
	"unless that is another user's, a symbolic link or no regular file")
