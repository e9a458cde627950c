#!/bin/sh
# Compiles parameter_hash.cpp in one way, runs it, on each instruction set that is there, and compares what it prints with what is
# stored here:
#     sh parameter_hash_test.sh <compiler> <flags> [<command that runs the program>]
# Exit code 0, 1 (failed) or 77 (a tool is missing). Also flags that let a compiler fuse multiplications and additions change nothing.
set -eu

expected="reference float d35b508aa4618140
every-layer float 4decb7e8887f2701
every-layer double cfcd7bb3c873047e"

compiler=$1
flags=$2
runner=${3:-}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

for tool in "$compiler" $runner; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: there is no $tool"
        exit 77
    fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck disable=SC2086 # words
"$compiler" -std=c++20 $flags -pthread -I "$here/../../include" "$here/parameter_hash.cpp" -o "$folder/parameter_hash"

# $1: an instruction set, or nothing for the program's own choice.
check() {
    printed=$(LOCKSTEP_SIMD=$1 $runner "$folder/parameter_hash")
    if [ "$printed" != "$expected" ]; then
        printf '%s %s, instruction set "%s": expected\n%s\ngot\n%s\n' "$compiler" "$flags" "$1" "$expected" "$printed" >&2
        exit 1
    fi
    echo "as expected: instruction set ${1:-by default}"
}

check ""
[ -z "$runner" ] || exit 0
for flag in avx2 avx512; do
    case $flag in
        avx2) needs="avx2 fma" ;;
        avx512) needs="avx512f avx512bw avx512dq avx512vl" ;;
    esac
    for feature in $needs; do
        grep -qw "$feature" /proc/cpuinfo || { echo "this processor has no $flag" && continue 2; }
    done
    check $flag
done
