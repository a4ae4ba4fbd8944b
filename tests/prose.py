#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The prose rule (CONTRIBUTING.md, Prose), as far as a machine can tell: tests/prose.sh.

prose.py FILE...: no sentence begins with Who, What, Whoever or Whose, questions aside, and in each file at most one
sentence in twenty has more than 25 words. Markdown, man(7), and the strings of C (messages and reasons).
Code blocks are skipped. A cell of a table counts where it holds sentences, not where it is a phrase. A short file may have
one long sentence.

prose.py --comments MOST FILE...: the same of the comments of C, where all files together may have MOST long sentences.
A comment that trails code stands alone. One without a capital is a phrase, which may begin as it likes."""
import argparse
import re
import sys

LONGEST = 25
SHARE = 0.05
BARRED = re.compile(r"\W*(who|what|whoever|whose)\b", re.I)
ENDS = re.compile(r"(?<=[.!?])[\"'”)*_]*\s+(?=[\"'“(*_]*[A-Z0-9`/])|(?<=[.!?])[\"'”)*_]+\s+")
# In a comment a sentence may begin with a name of the code.
ENDS_OF_CODE = re.compile(ENDS.pattern + r"|(?<=[.!?])\s+(?=[-$*`]*[a-z]\w*(?:[(_.:/]|->)|-[A-Z])")
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


TOKEN = re.compile(r"""//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
ITEM = re.compile(r"\s*(?:[-*]|\d[.)])\s+")


def comments(text):
    """Paragraphs and list items of C's comments. A line with columns is a row of a table; one that is indented is code.
    A line that begins small behind the end of a sentence, as a usage does, begins a paragraph."""
    for token in TOKEN.finditer(text):
        comment = token.group()
        if comment[0] != "/":
            continue
        lines = re.sub(r"\A/\*+|\*+/\Z", "", comment).split("\n")
        first, block, start, listed = text.count("\n", 0, token.start()) + 1, [], 0, False
        for number, line in enumerate(lines + [""], first):
            line = re.sub(r"^\s*//+|^\s*\*(?: |(?=\t)|$)|[ \t]*\\?$", "", line)
            code = number > first and (line.startswith("\t") or not block and line.startswith("    "))
            shown = code or re.search(r"\S(?:\t|  )\s*\S", line)
            ended = not block or re.search(r"[.!?:;,]$", block[-1])
            item = (listed or ended) and ITEM.match(line)
            small = block and re.search(r"[.!?]$", block[-1]) and re.match(r"[a-z]", line)
            if block and (shown or small or item or not line.strip()):
                yield start, " ".join(block), True
                block = []
            if item:
                line = line[item.end():]
            line = line.strip().strip("-").strip()
            if line and not shown and not line.startswith("SPDX-"):
                start, listed = (start, listed) if block else (number, bool(item))
                block.append(line)


def sentences(text, ends=ENDS):
    """Split at ends of sentences: a colon and a semicolon end none."""
    start = 0
    for end in ends.finditer(text):
        if ABBREVIATED.search(text[start:end.start()]):
            continue
        yield text[start:end.start()]
        start = end.end()
    yield text[start:]


def words(sentence):
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def measure(path, read):
    """Prints how sentences begin that must not: their number, the long ones as lines, and the number of all."""
    total, long, barred = 0, [], 0
    for line, block, whole in read(open(path, encoding="utf-8").read()):
        split = [s for s in sentences(plain(block), ENDS_OF_CODE if read is comments else ENDS) if words(s)]
        if not whole and len(split) < 2 and not re.search(r"[.!]\W*$", block):
            continue
        for sentence in split:
            total += 1
            phrase = read is comments and not re.match(r"\W*[A-Z]", sentence)
            if BARRED.match(sentence) and not phrase and not sentence.rstrip(' "*_)').endswith("?"):
                print(f"{path}:{line}: begins with a pronoun: {sentence.strip()}")
                barred += 1
            if words(sentence) > LONGEST:
                long.append(f"{path}:{line}: {words(sentence)} words: {sentence.strip()}")
    return barred, long, total


def check(path):
    read = strings if path.endswith((".c", ".h")) else manual if re.search(r"\.\d(\.in)?$", path) else markdown
    problems, long, total = measure(path, read)
    if len(long) > max(1, SHARE * total):
        print("\n".join(long))
        problems += len(long)
    print(f"# {path}: {total} sentences, {len(long)} of more than {LONGEST} words")
    return problems


def check_comments(paths, most):
    measured = [measure(path, comments) for path in paths]
    problems, total = sum(m[0] for m in measured), sum(m[2] for m in measured)
    long = [line for m in measured for line in m[1]]
    if len(long) > most:
        print("\n".join(long))
        problems += len(long)
    print(f"# {len(paths)} files: {total} sentences, {len(long)} of more than {LONGEST} words")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comments", type=int, metavar="MOST", help="check the comments of C; so many may be long")
    parser.add_argument("files", nargs="+", metavar="FILE")
    given = parser.parse_args()
    if given.comments is None:
        return sum([check(path) for path in given.files])
    return check_comments(given.files, given.comments)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
