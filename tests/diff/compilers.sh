#!/usr/bin/env bash
# The C that a batch of random functions becomes, under gcc and clang, as C11 and as C++17, warnings as errors.
#   compilers.sh DIFF_TEST SEED
set -euo pipefail
diff_test=$1 seed=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$diff_test" --seed "$seed" --write-c "$folder/batch.c"
"$diff_test" --seed "$seed" --write-c "$folder/again.c"
cmp "$folder/batch.c" "$folder/again.c" # the same bytes on every run
tried=0
for compiler in gcc clang-19 clang; do
    command -v "$compiler" > /dev/null || continue
    for language in "-std=c11" "-x c++ -std=c++17"; do
        # shellcheck disable=SC2086
        "$compiler" $language -Wall -Wextra -Wconversion -Werror -fsyntax-only "$folder/batch.c"
        tried=$((tried + 1))
    done
done
echo "$tried compiles without a warning"
((tried > 1))
