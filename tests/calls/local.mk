# tests/calls
