#!/bin/sh
# All parts are in the whole, each once.
test "$(sort -u whole.txt | wc -l)" -eq 8 && test "$(wc -l < whole.txt)" -eq 8
