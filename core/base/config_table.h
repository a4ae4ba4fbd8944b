/* SPDX-License-Identifier: MIT */
/*
 * Every variable of Shunt, once; the words of SHUNT_TUNE are in tune_table.h. The structure, the parser, `shunt config`
 * and the manual page are generated from these rows (so this file has no include guard).
 *
 * Rows, in the order in which they are shown:
 *
 *   BOOL(name, field, default, live, help)
 *   ENUM(name, field, words, default word's index, live, help)
 *   UINT(name, field, min, max, default, flags, unit, live, help)
 *   PATH(name, field, live, help)                    the default is the empty string
 *   FORM(name, field, check, form, default, live, help)   text that `check` takes (0 for a good one) and that
 *                                                    `form` describes
 *   WORDS(name, form, help)                          values of the rows in tune_table.h
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
	"the device that carries streams: soft is shared memory on this host, verbs an RDMA device of the machine. "
	"None offers and takes no links. Auto is soft to peers on this host, and verbs to others. Verbs takes "
	"the device by which the route to a peer leads")
ENUM(LOG, log_level, "none|error|warn|info|debug", 2, LIVE,
	"the least important messages to write. Where it is set, a pipe and a file as standard error get messages, too. They "
	"may be another program's, so without it only a terminal and systemd's journal get any")
ENUM(LOG_FORMAT, log_format, "text|json", 0, FIXED,
	"how messages are written: a line of text, or a JSON object a line. Both have the time (UTC), the process id and "
	"the stream. Text in systemd's journal has no time, because the journal notes it")
PATH(LOG_FILE, log_file, FIXED,
	"file that messages are appended to instead of standard error; %p is the process id. It must be a regular "
	"file of the process's user and no symbolic link. Where it cannot be written, a terminal or the journal is told. Only that user should be able to write in its folder")
PATH(STATS, stats_path, FIXED,
	"file that the statistics are written to as JSON at exit; %p is the process id. A new file takes its place, "
	"unless that is another user's, a symbolic link or no regular file")
PATH(RULES, rules, FIXED,
	"rules for connections: link, tcp or mock by program, user, address and port, the first that fits. It is the rules, the "
	"absolute name of a file of them, or off. shunt.conf(5) has them. The lines of rules in configuration files do not "
	"count beside it, and `shunt adm PROCESS rules` puts others in force")
ENUM(MOCK, mock, "auto|tcp|rdma", 0, FIXED,
	"which track carries streams: tcp keeps both directions on TCP until `shunt adm` says otherwise, rdma keeps them "
	"on the link also where completions are slow")
ENUM(TRUST, trust, "user|host|key", 1, FIXED,
	"the peers that may carry a connection. User is, on this host, a process that could ptrace this one, and the other "
	"way round. Host is also any other that proves to hold the connection's socket, with the kernel as witness. Key is "
	"host on this host, and takes no peer of another host without SHUNT_KEY")
PATH(KEY, key_file, FIXED,
	"file with a secret of 16 to 4096 bytes that other hosts have, too: only with them are there links between hosts. It "
	"must be a regular file, no symbolic link, either the process's user's with mode 600, or root's with at most 640. "
	"It is read once. Without a good one there are no links between hosts")
PATH(DIR, dir, FIXED,
	"directory in which processes of several network namespaces of this host meet, as containers that all mount "
	"it. Root or the process's user owns it, and where others may write in it, it is sticky. Without one they "
	"stay on TCP")
FORM(PORTS, ports, ports_check, "auto|FIRST[-LAST]", "auto", FIXED,
	"TCP ports at which processes of other hosts come with the channels of their links, for firewalls. Each process that "
	"accepts connections takes one for IPv4 and one for IPv6, the first that is free. Auto lets the system choose")
UINT(TOS, tos, 0, 255, UINT64_MAX, AUTO, "", LIVE,
	"type of service (DSCP and ECN) of the packets of links to other hosts that this process asks for from now on, at both "
	"ends. It chooses the priority on a lossless network, too. Auto leaves it to the system's setting for the connection "
	"manager")
ENUM(URING, uring, "watch|deny|allow|tcp", 0, FIXED,
	"policy for a program's rings of io_uring, which see nothing of a link. Watch looks at what is submitted: "
	"streams that a ring uses stay on TCP. Deny refuses rings, as a kernel without io_uring does. Allow lets them be. Tcp lets them be and keeps all streams of the process on TCP "
	"from then on")
PATH(QOS, qos_rules, FIXED,
	"limits and reservations for the clients of a process that accepts connections. It is rules, or the absolute name of a "
	"file of them. shunt-qos(5) has the rules, and `shunt adm PROCESS qos RULES` puts others in force")
FORM(QOS_CLASS, qos_class, name_check, "NAME", "", FIXED,
	"the class that the process asks for where it connects. It counts where a rule of the node says declared=NAME. A "
	"name has at most 31 letters, digits, dots, dashes and underscores")
ENUM(TRACE, trace, "off|0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16", 0, LIVE,
	"how many sends are followed to the program that reads them: one in 2^K of each stream. `shunt trace` shows where "
	"their time went")
ENUM(GATE, gate, "auto|names|calls", 0, FIXED,
	"whether calls are carried that do not come by their names, such as those of plug-ins and aio. Auto replaces "
	"system calls of the C library at the program's first socket, if one thread runs. Calls does so as the program "
	"is loaded, if the environment says it, and names never (docs/CARRIED.md)")
WORDS(TUNE, "WORD=VALUE,...",
	"words for experiments, separated by commas or blanks; of two with one name the later counts. A version may change "
	"them without notice. `shunt config` lists them, and `shunt adm PROCESS set WORD VALUE` changes those with a +")
FORM(FAULT, fault, fault_check, "ACTION:KEY=VALUE,...;...", "", FIXED,
	"faults on purpose, for tests: rules with the actions delay, stall, drop, kill, post, corrupt, freeze, "
	"refuse, deny; docs/dev/FAULTS.md has their keys")
FORM(SOFT_MODEL, soft_model, model_check, "connectx3,KEY=VALUE,...", "", FIXED,
	"cost model that slows the soft device down to an RNIC, for experiments. Its keys are doorbell, wqe, delay, "
	"miss, qp, pause (ns), gbit (Gbit/s), cache (requests), queue (bytes), block and sink (ns for 4 KiB at the "
	"sender and at the receiving node) and sinkfile (a file by which processes share that node)")
