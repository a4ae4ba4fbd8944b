#!/bin/bash
# SPDX-License-Identifier: MIT
# The layouts that have what is expected (`now` in reach.sh), with small transfers, for make check-all.
# Nothing about speed.
exec "$(dirname "$0")/reach.sh" --quick "$@"
