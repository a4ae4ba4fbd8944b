/* SPDX-License-Identifier: MIT */
/*
 * The words of SHUNT_TUNE: what experiments and tests change, and what nobody should need else. Rows are those of
 * config_table.h, with a word as their name. They may change in any version.
 */
ENUM(poll, poll, "event|batch|hybrid|busy|adaptive", 4, LIVE,
	"how a wait looks for completions. Event asks for an event and sleeps, and batch takes no more than "
	"poll_batch with one. Hybrid polls until nothing is there, adaptive polls on as long as that pays, "
	"and busy does not sleep while no other thread wants its core")
UINT(spin_us, spin_us, 0, 1000, 25, 0, "us", LIVE,
	"adaptive: how long a wait polls before it sleeps")
UINT(poll_retry, poll_retry, 0, 1000000000, 100000, 0, "polls", LIVE,
	"adaptive: how many polls in a row may find nothing; 0 is hybrid, and the default leaves the end "
	"to spin_us")
UINT(poll_batch, poll_batch, 1, 64, 32, 0, "completions", LIVE,
	"most completions taken from a CQ at once")
UINT(poll_warn_us, poll_warn_us, 0, 3600000000ULL, 0, 0, "us", LIVE,
	"`shunt trace slow` keeps polls that find arrived bytes so long after the poll before. A thread that slept until they "
	"came is not late. With 0 no poll reads the clock")
UINT(slow_us, slow_us, 0, 3600000000ULL, 0, 0, "us", LIVE,
	"`shunt trace slow` keeps steps that take so long: a send that waits for room, a completion, a claim and others. With 0 "
	"no step reads the clock")
UINT(cqs, cqs, 1, 8, 1, 0, "queues", LINK,
	"completion queues; lanes take them in turn")
UINT(ring_min, ring_min, 4 * K, 64 * M, 16 * K, SIZE | POW2, "bytes", LINK,
	"receive ring of a new stream's direction")
UINT(ring_max, ring_max, 4 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LINK,
	"how far a busy direction's ring grows")
UINT(arena, arena_bytes, 16 * M, 32 * G, 1 * G, SIZE, "bytes", LINK,
	"address space for the rings of one link, backed by memory as it is used. Less where the program has limited its "
	"address space (RLIMIT_AS): links take a quarter of what the limit leaves")
ENUM(waiters, waiters, "off|on", 0, LINK,
	"within a host: whom a peer wakes in a program of several sleeping threads. On, it wakes the thread or epoll set that "
	"waits, of four in a process. Off, it wakes one that wakes the others (docs/dev/EXPERIMENTS.md)")
ENUM(pages, pages, "ordinary|transparent|huge", 0, LINK,
	"pages of an arena (docs/dev/EXPERIMENTS.md). Transparent asks the kernel for transparent huge pages. Huge maps "
	"hugetlb pages of 2 MiB for the blocks of RDMA devices, and falls back to ordinary pages. The soft device uses "
	"transparent ones with it, because a peer could free hugetlb pages of a shared file")
UINT(frag, frag_bytes, 4 * K, 1 * M, 64 * K, SIZE, "bytes", LINK,
	"largest single RDMA write; adjacent sends are merged up to it")
UINT(mr, mr_bytes, 64 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LINK,
	"one memory region, out of which rings are carved and which is registered as it is needed; at least "
	"ring_max")
UINT(inline, inline_bytes, 64, 1 * M, 1 * M, SIZE, "bytes", LINK,
	"largest data that a work request carries itself; the device fetches more than that from registered memory")
UINT(mr_threshold, mr_threshold, 0, 1 * G, UINT64_MAX, SIZE | AUTO, "bytes", FIXED,
	"blocking sends from this size on are fetched from the program's own buffer, registered for the call. "
	"Auto measures where that costs less than a copy, and 0 is never")
ENUM(copy, copy, "auto|memcpy|nt", 0, LIVE,
     "how copies of 12 KiB and more are made. Memcpy is by a string instruction, as in the C library. Nt stores past the caches, into a ring of "
     "this host, a buffer that a device fetches from, and the program's. Auto does so only into a ring that lies in "
     "the cache of another core, and uses plain stores else")
UINT(prefetch, prefetch, 0, 4 * K, 128, 0, "bytes", LIVE,
	"so much of what has arrived is fetched into the cache by the poll that finds it, before the program reads it. 0 "
	"fetches nothing")
ENUM(batch, batch, "single|merge|chain|hybrid", 3, LIVE,
	"how sends that could not be posted at once are posted. Single posts each alone, merge joins adjacent ones, "
	"chain posts those of all streams with one doorbell, and hybrid does both")
UINT(chain, chain_max, 1, 64, 16, 0, "requests", LIVE,
	"most work requests posted with one doorbell")
UINT(lanes, lanes, 1, 8, UINT64_MAX, AUTO, "lanes", LINK,
	"queue pairs of a link, over which its streams are spread. The end that wants fewer decides. Auto is 4 on "
	"RDMA devices; within a host one for each epoll set of the program, at most 4")
UINT(rq, rq_depth, 64, 16384, 1024, POW2, "requests", LINK,
	"receive queue of a lane")
UINT(sq, sq_depth, 64, 16384, 1024, POW2, "requests", LINK,
	"send queue of a lane")
UINT(signal_every, signal_every, 1, 1024, 64, 0, "requests", LIVE,
	"one work request in this many asks for a completion")
ENUM(admit, admit, "static|aimd|none", 0, LINK,
	"policy of the window: fixed, adapted to completion times, or none")
UINT(stage_max, stage_max, 64 * K, 64 * M, 4 * M, SIZE | POW2, "bytes", LIVE,
	"how much of one stream an RDMA device may have under way. A stream begins with 64 KiB, and has more where the "
	"path bears more: its rate times its round trip. All streams of the process have at most 64 times as much")
UINT(window, window_bytes, 0, 1 * G, UINT64_MAX, SIZE | AUTO, "bytes", LIVE,
	"most data of a lane in flight; 0 for no limit. Auto is 1M on the soft device, and at least stage_max on RDMA "
	"devices")
UINT(window_wr, window_wrs, 0, 16384, 512, 0, "requests", LIVE,
	"most work requests of a lane in flight; 0 for no limit")
UINT(window_device, window_device, 0, 16 * G, 0, SIZE, "bytes", LIVE,
	"most data of all lanes together in flight; 0 for no limit")
ENUM(retain, retain, "auto|always", 0, LINK,
	"keep what was sent until it has arrived, so that a queue pair's death loses nothing; auto where the peer's "
	"memory cannot be seen instead")
ENUM(proof, proof, "auto|nonce", 0, FIXED,
	"how an end proves that a claimed connection is its own. Auto asks the kernel about a peer on this host, and "
	"writes a nonce into the stream between hosts. Nonce always writes one")
UINT(dead_ms, dead_ms, 10, 60000, 500, 0, "ms", LINK,
	"after how long a peer that does not answer on an RDMA device is given up; its streams go on over TCP")
UINT(keepalive_ms, keepalive_ms, 0, 86400000, 2000, 0, "ms", LIVE,
	"how long an idle lane of an RDMA device may go without a sign of life. Twice in that time its peer's device "
	"is asked for one. A device that gives none within dead_ms is given up. With 0 none is asked")
UINT(link_idle_s, link_idle_s, 0, 86400, 120, 0, "s", LIVE,
	"after how long a link that no connection uses ends, with its queue pairs and its memory. The next connection to that "
	"process makes another. 0 keeps it as long as both processes live")
UINT(silence_s, silence_s, 2, 86400, 900, 0, "s", FIXED,
	"after how long a peer's host that answers neither over RDMA nor over TCP is given up")
UINT(directory, directory, 0, 65535, 14791, 0, "", FIXED,
     "TCP port at which hosts with iWARP devices ask each other who listens at an address; all hosts have the same. 0 is "
     "none: connections over iWARP devices stay on TCP. Other devices do not use it")
UINT(claim_ms, claim_ms, 10, 60000, 1000, 0, "ms", LIVE,
	"how long a new connection may wait for its peer's claim, counted from its first byte")
UINT(brief, brief, 0, 1000, 8, 0, "connections", LIVE,
	"after so many connections to an address that ended before a link could serve them, further ones are claimed "
	"only once they have lasted. Connections that a link has served count against them. 0 claims each at its "
	"first use. Where no link to a process of another host is up, connections there have to last from the start, unless this "
	"is 0")
BOOL(brief_first, brief_first, 0, FIXED,
	"whether connections to an address are expected to be brief before any has ended there. For programs that are "
	"started for one question")
ENUM(born, born, "off|auto", 1, FIXED,
	"auto keeps connections that both programs have closed, within one host, and gives them to the next that connect to "
	"the same address (docs/dev/ARCHITECTURE.md). off makes each by the kernel")
ENUM(go, go, "auto|off", 0, FIXED,
	"whether the system calls of Go programs are carried, which do not go through the C library. Auto does so for "
	"dynamically linked programs of Go versions that Shunt knows, on x86-64, and off never (docs/CARRIED.md)")
UINT(refused_ms, refused_ms, 0, 600000, 2000, 0, "ms", LIVE,
	"how long a peer without Shunt is remembered")
UINT(slow_ms, slow_ms, 0, 60000, 100, 0, "ms", LIVE,
	"a link that waits for completions and has none for this time is slow; 0 for never")
UINT(slow_times, slow_times, 1, 1000, 3, 0, "looks", LIVE,
	"streams of a link send over TCP for return_ms when it was slow so many times in a row")
UINT(return_ms, return_ms, 0, 600000, 1000, 0, "ms", LIVE,
	"after how long streams return to a link that was slow or whose queue pair has died. The time doubles each "
	"time that this happens again soon. With 0 they do not return after a queue pair's death")
UINT(return_max_ms, return_max_ms, 0, 3600000, 60000, 0, "ms", LIVE,
	"the longest such time")
UINT(flip, flip_bytes, 0, 1 * G, 0, SIZE, "bytes", FIXED,
	"torture: move each direction to the other track after a random number of bytes up to this")
UINT(seed, seed, 0, 1ULL << 63, 0, 0, "", FIXED,
	"seed of the random choices; 0 takes one from the system")
BOOL(qos_convert, qos_convert, 1, FIXED,
	"whether a node with a capacity gives what reservations leave to all of its clients, as the period goes on. 0 is "
	"Basic Haechi: what reservations leave is wasted")
BOOL(qos_pace, qos_pace, 1, FIXED,
	"whether tokens of a node with a capacity come in proportion to time, as the period goes on. 0 is the paper's way: "
	"a period begins with all of them")
