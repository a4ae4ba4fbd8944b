#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/quickstart: its steps and their order, its progress, and the commands that it names at the end. The tree is a fake
# one, where packages are installed, a Makefile "compiles" eight files, and `shunt` says how it was called.
set -u
. "${top_srcdir:?}/tests/lib.sh"

tree=$work/tree
mkdir -p "$tree/tools" "$tree/build-aux" "$work/bin"
cp "$top_srcdir/tools/quickstart" "$top_srcdir/tools/build.sh" "$tree/tools/"
touch "$tree/configure.ac" "$tree/Makefile.am" "$tree/Makefile.in" "$tree/build-aux/ltmain.sh"
cat >"$tree/configure" <<'END'
#!/bin/sh
cat >Makefile <<'EOF'
.PHONY: all
all: $(foreach n,1 2 3 4 5 6 7 8,$(n).o) tools/shunt
%.o:
	@echo "  CC       $@"; test "$*" != "$(BROKEN)" && touch $@
tools/shunt:
	@mkdir -p tools; printf '#!/bin/sh\necho "asked: $$*"\nexit $${STATUS:-0}\n' >$@; chmod +x $@
EOF
END
# shellcheck disable=SC2016 # the fake program's
printf '#!/bin/sh\necho "${INSTALLED-installed}"\n' >"$work/bin/dpkg-query"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "fetched: $*" >>"$FETCHED"\n' >"$work/bin/apt-get"
chmod +x "$tree/configure" "$work/bin"/*
export FETCHED=$work/fetched PATH=$work/bin:$PATH
touch "$FETCHED"

# Processes of make's own job server are not for the make of a fake tree.
# shellcheck disable=SC2317 # called by expect
quickstart() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$@" "$tree/tools/quickstart"
}

expect 1 quickstart BROKEN=5
has "$err" 'Error'
has "$err" 'build/make.log'
lacks "$out" 'Step 4|Done'

expect 0 quickstart
took='after ([0-9]+ min )?[0-9]+ s'
steps=$(grep -oE "^== (Step [0-9] of [0-9], $took: .*|Done, $took)" <<<"$out" | sed -E "s/, $took//")
[ "$steps" = "== Step 1 of 4: packages
== Step 2 of 4: configuring build/
== Step 3 of 4: building in build/
== Step 4 of 4: build/tools/shunt perf programs --quick
== Done" ] || problem "steps: $steps"
has "$out" '^asked: perf programs --quick$'
[ ! -s "$FETCHED" ] || problem "with all packages installed: $(cat "$FETCHED")"

# Progress: a line for each quarter. Built again, nothing is left to do.
rm -r "$tree/build"
expect 0 quickstart
[ "$(grep -oE '^ +[0-9] of 8 files' <<<"$out" | tr -d '\n')" = "   2 of 8 files   4 of 8 files   6 of 8 files   8 of 8 files" ] ||
	problem "progress: $out"
expect 0 quickstart
has "$out" 'nothing has changed'

# The end: each command is one that shunt has, and all start with the path of the build.
commands=$(sed -n '/^== Done/,$s/^    //p' <<<"$out")
[ "$(wc -l <<<"$commands")" = 5 ] || problem "commands: $commands"
while read -r command word _; do
	[ "$command" = build/tools/shunt ] || problem "at the end: $command $word"
	grep -qE "^ +$word( |\$)" <<<"$("$shunt" --help)" || problem "shunt has no $word"
done <<<"$commands"
has "$commands" ' run CLIENT$'
has "$commands" ' advise '
has "$out" 'when not to use'
narrow "$out"

# Its arguments are those of shunt perf programs; a comparison that fails is no success.
expect 3 quickstart STATUS=3
lacks "$out" 'Done'
expect 0 "$tree/tools/quickstart" --only c1 --rounds 2
has "$out" '^asked: perf programs --only c1 --rounds 2$'

# A package is missing: it is fetched, in the first step.
expect 0 quickstart INSTALLED=
has "$out" 'Installing what is missing to build Shunt: .*autoconf'
grep -q 'install.* redis-server' "$FETCHED" || problem "fetched: $(cat "$FETCHED")"
finish
