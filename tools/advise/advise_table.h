/* SPDX-License-Identifier: MIT */
/*
 * Settings that could help, by what the statistics of both ends show. No include guard: an array is
 * made from it.
 *
 *   CAUSE(sign, of, least, settings, text)
 *
 * - sign, of: members of the statistics, the second after a point, or brief (advise_brief()). They
 *   count where sign is more than `least` times `of`; with "" for `of`, more than `least`.
 * - settings: SHUNT_TUNE= and words with a comma between them.
 * - text: the symptom.
 *
 * The most likely cause comes first. A rule only proposes: `shunt advise` tries each setting before
 * it says that it helps.
 */
CAUSE("brief", "totals.streams", 0.2, "SHUNT_TUNE=brief=0",
      "connections end before a link carries them, and later ones wait to be claimed")
CAUSE("reasons.the link's arena is full", "", 0, "SHUNT_TUNE=arena=4G", "the link's address space for rings is full")
CAUSE("stalls.ring", "counters.wr", 0.01, "SHUNT_TUNE=ring_max=16M,mr=16M", "sends wait for room in the reader's ring")
CAUSE("stalls.ring", "counters.wr", 0.01, "SHUNT_TUNE=ring_min=256K", "sends wait for room in the reader's ring")
CAUSE("stalls.window_bytes", "counters.wr", 0.01, "SHUNT_TUNE=window=8M", "sends wait because the window's bytes are used up")
CAUSE("stalls.window_requests", "counters.wr", 0.01, "SHUNT_TUNE=window_wr=0", "sends wait because the window's requests are used up")
CAUSE("stalls.receives", "counters.wr", 0.01, "SHUNT_TUNE=rq=4096", "sends wait for receives that the peer has not posted")
CAUSE("stalls.send_queue", "counters.wr", 0.01, "SHUNT_TUNE=sq=4096", "sends wait because the send queue is full")
CAUSE("stalls.device_window", "counters.wr", 0.01, "SHUNT_TUNE=window_device=0", "sends wait because the device's window is used up")
CAUSE("counters.sleeps", "counters.completions", 0.05, "SHUNT_TUNE=spin_us=100",
      "threads go to sleep and are woken for each few completions")
CAUSE("counters.sleeps", "counters.completions", 0.05, "SHUNT_TUNE=spin_us=0",
      "threads poll, and go to sleep nevertheless")
CAUSE("counters.polls_empty", "counters.completions", 100, "SHUNT_TUNE=spin_us=0", "threads poll in vain")
CAUSE("counters.sends_registered", "", 0, "SHUNT_TUNE=mr_threshold=0", "large sends are fetched from the program's own buffer")
