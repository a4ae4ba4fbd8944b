#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/newcomer: what a document promises and does not do is found.
set -u
. "${top_srcdir:?}/tests/lib.sh"

page=$work/page.md
cat >"$page" <<'END'
<!-- says: ^hello 1$ -->
```sh
echo hello 1 &
wait
```
<!-- says: no such text -->
```sh
echo hello 2
```
<!-- not run: it cannot be -->
```sh
touch "$0.was-run"
```
```sh
false
echo hello 3
```
```text
echo hello 4
```
```
echo hello 5
```
END
expect 1 "$top_srcdir/tools/newcomer" "$page"
[ "$(grep -c '^ok ' <<<"$out")" = 1 ] || problem "not one block that is right: $out"
has "$out" '^ok .*page.md:2 echo hello 1'
has "$out" '^FAIL .*page.md:7 echo hello 2: no line of its output matches: no such text$'
has "$out" '^FAIL .*page.md:14 false: it ended with an error$'
lacks "$out" 'hello [345]|touch'
[ "$(tail -n 1 <<<"$out")" = '1 blocks keep their promises, 2 do not, 1 are not run' ] || problem "counts: $out"

# A program in the background lasts until its document ends.
cat >"$work/first.md" <<END
\`\`\`sh
sleep 10000 &
echo \$! >$work/pid
\`\`\`
\`\`\`sh
kill -0 \$(cat $work/pid)
\`\`\`
END
# The system may not have reaped it yet.
cat >"$work/second.md" <<END
\`\`\`sh
! grep -q '^State:[[:space:]]*[^ZX[:space:]]' /proc/\$(cat $work/pid)/status
\`\`\`
END
expect 0 "$top_srcdir/tools/newcomer" "$work/first.md" "$work/second.md"
has "$out" '^3 blocks keep their promises, 0 do not'

expect 0 "$top_srcdir/tools/newcomer" --list "$page"
[ "$(awk '{ print $2 }' <<<"$out" | tr '\n' ' ')" = 'sh sh skipped sh text unmarked ' ] || problem "kinds: $out"
has "$out" 'skipped it cannot be$'
expect 2 "$top_srcdir/tools/newcomer" --wrong
finish
