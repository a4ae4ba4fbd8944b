#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The prose rule (CONTRIBUTING.md, Prose), as far as a machine can tell: tests/prose.sh.

prose.py FILE...: no sentence begins with Who, What, Whoever or Whose, questions aside, and in each file at most one
sentence in twenty has more than 25 words. Markdown, man(7), and the strings of C (messages and reasons).
Code blocks are skipped. A cell of a table counts where it holds sentences, not where it is a phrase. A short file may have
one long sentence."""
import re
import sys

LONGEST = 25
SHARE = 0.05
BARRED = re.compile(r"\W*(who|what|whoever|whose)\b", re.I)
ENDS = re.compile(r"(?<=[.!?])[\"'”)*_]*\s+(?=[\"'“(*_]*[A-Z0-9`/])|(?<=[.!?])[\"'”)*_]+\s+")
ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|vs|etc|cf|[A-Z])\.)$")


def markdown(text):
    """Paragraphs, list items, headings and cells: (line, text, whole) with whole false for cells."""
    block, start, fenced = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced or line.startswith(("    ", "\t")) and not block:
            continue
        cells = line.lstrip().startswith("|")
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
        if block and (not line.strip() or cells or item or line.startswith(("#", "<!--"))):
            yield start, " ".join(block), True
            block = []
        if cells:
            if not re.fullmatch(r"[\s|:-]*", line):
                for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                    yield number, cell, False
        elif line.strip() and not line.startswith(("#", "<!--")):
            if not block:
                start = number
            block.append(re.sub(r"^\s*(?:[-*+]|\d+\.)\s+|^>\s*", "", line).strip())


def plain(text):
    """Markdown's marks away; code is one word, because its words are not the sentence's."""
    text = re.sub(r"`[^`]*`", "`code`", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("**", "")


def manual(text):
    """man(7): paragraphs without requests and tags; fonts are the same word."""
    block, start, example, tag = [], 0, False, False
    for number, line in enumerate(text.split("\n") + ["."], 1):
        if tag:
            tag = False
            continue
        tag = line.startswith(".TP")
        if line.startswith((".EX", ".nf")):
            example = True
        if line.startswith((".EE", ".fi")):
            example = False
        font = re.match(r"\.(?:B|I|BR|IR|RB|RI|BI|IB)\s+(.*)", line)
        if font and not example:
            parts = re.findall(r'"[^"]*"|\S+', font.group(1))
            spaced = line[:3] in (".B ", ".I ")
            line = (" " if spaced else "").join(part.strip('"') for part in parts)
        elif line.startswith((".", "'")) or example:
            if block:
                yield start, " ".join(block), True
            block = []
            continue
        if re.fullmatch(r"@[A-Z]+@", line):
            continue
        if not block:
            start = number
        block.append(re.sub(r"\\f.|\\&", "", line).replace("\\-", "-"))


def strings(text):
    """Strings of C that are prose: those of log calls, of a link's end, and of tables of texts."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    calls = re.compile(r"\b(?:shunt_log\w*|shunt_link_(?:distrust|kill|fail)|wrong|REASON|BOOL|ENUM|UINT|PATH|FORM)\s*\(|\breturn (?=\")")
    string = re.compile(r'"((?:[^"\\]|\\.)*)"')
    for call in calls.finditer(text):
        depth, at, said = 1, call.end(), [""]
        while depth and at < len(text):
            found = string.match(text, at)
            if found:
                said[-1] += found.group(1)
                at = found.end()
                continue
            if text[at] in ",:?":
                said.append("")
            if text[at] == ";":
                break
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        for one in said:
            if one.count(" ") > 1:
                yield text.count("\n", 0, call.start()) + 1, one, True


def sentences(text):
    """Split at ends of sentences: a colon and a semicolon end none."""
    start = 0
    for end in ENDS.finditer(text):
        if ABBREVIATED.search(text[start:end.start()]):
            continue
        yield text[start:end.start()]
        start = end.end()
    yield text[start:]


def words(sentence):
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def check(path, quiet=False):
    text = open(path, encoding="utf-8").read()
    read = strings if path.endswith((".c", ".h")) else manual if re.search(r"\.\d(\.in)?$", path) else markdown
    total, long, problems = 0, [], 0
    for line, block, whole in read(text):
        split = [s for s in sentences(plain(block)) if words(s)]
        if not whole and len(split) < 2 and not re.search(r"[.!]\W*$", block):
            continue
        for sentence in split:
            total += 1
            if BARRED.match(sentence) and not sentence.rstrip(' "*_)').endswith("?"):
                print(f"{path}:{line}: begins with a pronoun: {sentence.strip()}")
                problems += 1
            if words(sentence) > LONGEST:
                long.append(f"{path}:{line}: {words(sentence)} words: {sentence.strip()}")
    if len(long) > max(1, SHARE * total):
        print("\n".join(long))
        problems += len(long)
    print(f"# {path}: {total} sentences, {len(long)} of more than {LONGEST} words")
    return problems


if __name__ == "__main__":
    sys.exit(1 if sum([check(path) for path in sys.argv[1:]]) else 0)
