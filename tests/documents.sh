#!/bin/bash
# SPDX-License-Identifier: MIT
# The documents know the tree: every file of the library says what it is, and every room has tests (tools/rooms --list), tests/README.md names every folder
# and script of tests, Makefile.am every document, documents no variable that there is not, docs/CARRIED.md every reason, PACKAGES.md what
# tools/cross does not run. Paths and links lead somewhere. Tests ask about streams in one place. Tags of pages are written in one place. Part of `tools/check static`.
set -u
cd "$(dirname "$0")/.." || exit
problems=0

problem() {
	echo "$*"
	problems=1
}

while IFS= read -r line; do
	problem "tools/rooms --list: $line"
done < <(tools/rooms --list 2>&1 >/dev/null)

for file in docs/*.md docs/dev/*.md; do
	grep -qwF -- "$file" Makefile.am || problem "Makefile.am does not distribute $file"
done

# Tests that know the library's inside ask about a stream's two directions in tests/inspect.c alone.
while IFS= read -r line; do
	problem "only tests/inspect.c may name what is inside a stream's two directions, its switch, proof or end: $line"
done < <(grep -nE '\b(tx|rx)(\.|->)[a-z]|(\.|->)(tx|rx)\b|\bstruct shunt_(tx|rx)\b|->(agreed|released|retiring|let_go|halted)\b' tests/{bench,engine,fault,fuzz,sim,soft,unit}/*.[ch] | grep -vE '#include|"stream\.[rt]x\.lock')

# Files in backquotes with a path, and links, lead somewhere.
documents=(README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/dev/*.md tests/README.md tests/lab/README.md)
# shellcheck disable=SC2016 # backticks of Markdown
while IFS=: read -r document path; do
	[ -e "$path" ] || problem "$document names $path, which does not exist"
done < <(grep -oE '`(core|preload|tools|tests|include|docs)/[A-Za-z_0-9./-]+\.(c|h|sh|py|md|in)`' "${documents[@]}" | tr -d '`' | sort -u)
while IFS=: read -r document link; do
	link=${link#](} && link=${link%)}
	case $link in
	*://* | "#"*) ;;
	*) [ -e "$(dirname "$document")/${link%%#*}" ] || problem "$document has a link to $link" ;;
	esac
done < <(grep -oE '\]\([^)[:space:]]+\)' "${documents[@]}" | sort -u)

# Comments cite documents of the repository, and no others.
while IFS=: read -r file page; do
	[ -e "$page" ] || [ -e "docs/$page" ] || [ -e "docs/dev/$page" ] || problem "$file cites $page, which does not exist"
done < <(grep -roE '\b(docs/|docs/dev/|tests/|tests/lab/)?[A-Z]+\.md\b|\bDESIGN [0-9.]*[0-9]' core preload include tools tests --include=*.[ch] | sort -u)

while IFS= read -r line; do
	grep -qxF -- "$line" docs/dev/PACKAGES.md || problem "docs/dev/PACKAGES.md does not have a line of tools/cross --list: $line"
done < <(tools/cross --list)

for path in tests/*/; do
	grep -q "\`$(basename "$path")/" tests/README.md || problem "tests/README.md does not name $path"
done
# Those of the lab have a page of their own, and a program's is known by apps/run.sh.
for file in tests/*.sh tests/{bench,calls,calls/gen,fault,fuzz,soak,soft}/*.sh; do
	grep -qw -- "${file##*/}" tests/README.md || problem "tests/README.md does not name $file"
done

# Commands of the documents are typed by tools/newcomer: each block says whether it has some.
while read -r place kind _; do
	case $kind in
	sh | skipped | text) ;;
	*) problem "$place begins a block that is marked $kind, not sh or text" ;;
	esac
done < <(tools/newcomer --list)

# Rows are BOOL(NAME, …) and the like.
while read -r name; do
	grep -qE "^[A-Z]+\(${name#SHUNT_}," core/base/config_table.h || problem "a document names $name, which is no variable"
done < <(grep -ohE '\bSHUNT_[A-Z_]*[A-Z]\b' README.md SECURITY.md docs/{CARRIED,COMMANDS,COMPATIBILITY,CONFIGURATION,SPEED,TROUBLESHOOTING,dev/FAULTS,dev/RELIABILITY}.md | sort -u)

while read -r word; do
	grep -qE "^[A-Z]+\($word," core/base/tune_table.h || problem "a document has SHUNT_TUNE=$word, which is no word"
done < <(grep -ohE '\bSHUNT_TUNE=[a-z_]+=[^ `"]*' README.md SECURITY.md CONTRIBUTING.md docs/*.md docs/dev/*.md tests/README.md |
	sed 's/^SHUNT_TUNE=//' | tr ',' '\n' | sed -n 's/^\([a-z_]*\)=.*/\1/p' | grep -vxE 'word|name' | sort -u)

# One renderer has the tags of HTML and SVG, and the escapes.
while IFS= read -r line; do
	problem "only tools/page/ writes tags: $line"
done < <(grep -rnE '"[^"]*(<[/!]?[a-zA-Z]|&(amp|lt|gt|quot);)' tools --include=*.[ch] | grep -vE '^tools/page/|#include')

# docs/VERSIONS.md says the present wire version.
wire=$(sed -n 's/^#define SHUNT_WIRE_VERSION \([0-9]*\).*/\1/p' include/shunt/wire.h)
grep -qF "\`include/shunt/wire.h\`; version $wire." docs/dev/PROTOCOL.md || problem "docs/dev/PROTOCOL.md does not say that the wire version is $wire"
grep -qF "| by its version | $wire today;" docs/VERSIONS.md || problem "docs/VERSIONS.md does not say that the wire version is $wire"

# Sections that links name: as GitHub makes names of headings.
while IFS=: read -r document link; do
	file=${link%%#*}
	sed -n 's/^##* *//p' "${file:+$(dirname "$document")/}${file:-$document}" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9_\n-' |
		grep -qxF -- "${link#*#}" || problem "$document has a link to $link, and there is no such heading"
done < <(grep -oE '\]\([^)[:space:]:]*#[^)[:space:]]+\)' "${documents[@]}" | sed 's/:](/:/; s/)$//' | sort -u)

# Reasons: each has a text of its own, and the tables of docs/CARRIED.md name those and no others.
reasons=$(sed -n 's/^REASON([A-Z_]*, "\([^"]*\)",.*/\1/p' core/base/reason_table.h)
[ "$reasons" ] || problem "core/base/reason_table.h has no reasons"
while read -r reason; do
	problem "core/base/reason_table.h has two reasons \"$reason\""
done < <(sort <<<"$reasons" | uniq -d)
# shellcheck disable=SC2016 # backticks of Markdown
told=$(sed -n '/^`shunt stat` says why/,/^## /s/^| \(`[^|]*\) |.*/\1/p' docs/CARRIED.md | grep -o '`[^`]*`' | tr -d '`')
while read -r reason; do
	problem "docs/CARRIED.md and core/base/reason_table.h do not both have the reason \"$reason\""
done < <(sort <<<"$reasons"$'\n'"$told" | uniq -u)
exit $problems
