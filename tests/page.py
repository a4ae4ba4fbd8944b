#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page.py FILE: a page or a picture is well-formed, has a picture, and refers to nothing outside of itself."""
import re
import sys
import xml.dom.minidom

text = open(sys.argv[1], encoding="utf-8").read()
xml.dom.minidom.parseString(text.replace("<!DOCTYPE html>\n", "").encode())
if "<svg" not in text:
    sys.exit("it has no picture")
if re.search(r'[=" MHVLv](-?nan|-?inf)\b', re.sub(r">[^<]*<", "><", text)):
    sys.exit("a place in the picture is no number")
# The name of SVG's namespace is no address that is loaded.
rest = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
found = re.findall(r"https?:|url\(|@import|<script|<link|<img|\bsrc=|\bhref=", rest)
if found:
    sys.exit(f"it refers to {found}")
