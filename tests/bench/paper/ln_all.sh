#!/bin/bash
# SPDX-License-Identifier: MIT
# All of On Limitations of Network Acceleration: all.sh ln, with its knobs.
exec bash "$(dirname "$0")/all.sh" ln "$@"
