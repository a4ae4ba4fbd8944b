#!/bin/bash
# SPDX-License-Identifier: MIT
# Conformance again, between two ends that take each other for strangers.
exec "${top_builddir:?}/tests/soft/conform" --device apart "$@"
