#!/bin/sh
# run.sh SOURCE BUILD TEST...: builds base, runtime and hierarchy_runtime and each tests/unit/TEST.c with the thread sanitizer,
# and runs them.  A race is a failure.
set -eu
source=$1 build=$2
shift 2
cc=${CC:-cc} out=$build/threads
mkdir -p "$out"
flags="-std=gnu11 -g -O1 -D_GNU_SOURCE -DTIGA_VERSION=__DATE__ -fsanitize=thread -fopenmp -w -I$source/include -I$source/tests/unit"
for folder in base runtime hierarchy_runtime; do
    flags="$flags -I$build/include_roots/$folder"
done
objects=
for file in "$source"/base/*.c "$source"/runtime/*.c "$source"/hierarchy_runtime/*.c; do
    folder=${file%/*}
    object=$out/${folder##*/}_$(basename "$file" .c).o
    # shellcheck disable=SC2086 # several words
    $cc $flags -c "$file" -o "$object"
    objects="$objects $object"
done
# ASLR with many random bits puts mappings where old versions of the sanitizer cannot have them
fixed=
if setarch "$(uname -m)" -R true 2> /dev/null; then fixed="setarch $(uname -m) -R"; fi
for test in "$@"; do
    # shellcheck disable=SC2086
    $cc $flags -I"$source/tests/threads" -o "$out/$test" "$source/tests/unit/$test.c" "$source/tests/threads/main.c" $objects \
        -ljansson -lxxhash -lzip -lz -lm -ldl -lpthread
    TSAN_OPTIONS=die_after_fork=0 $fixed "$out/$test" # children of fork start threads
done
