#!/bin/bash
# The short form of idle.sh, for make check.
QUICK=1 exec "$(dirname "$0")/idle.sh"
