#!/bin/sh
# tensors.sh SOURCE BUILD: builds tensors, and all that is below them but LLVM, with the thread sanitizer and runs
# tests/unit/tensor_threads.c.  A race is a failure.
set -eu
source=$1 build=$2
cmake -Wno-dev -S "$source" -B "$build" -DTIGA_SANITIZE=thread -DTIGA_TESTS=ON > /dev/null
cmake --build "$build" -j "$(nproc)" --target threads_tensors > "$build/log" || { tail -n 30 "$build/log" && exit 1; }
# ASLR with many random bits puts mappings where old versions of the sanitizer cannot have them
fixed=
if setarch "$(uname -m)" -R true 2> /dev/null; then fixed="setarch $(uname -m) -R"; fi
# shellcheck disable=SC2086 # several words
$fixed "$build/bin/threads_tensors"
