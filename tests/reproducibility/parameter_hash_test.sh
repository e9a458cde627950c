#!/bin/sh
# Compiles parameter_hash.cpp in one way, runs it with 1, 2 and 3 workers on each instruction set that is there, and compares what
# it prints with what is stored here:
#     sh parameter_hash_test.sh <compiler> <flags> [<command that runs the program>]
# Exit code 0, 1 (failed) or 77 (something is missing; what is there has been compared). Also flags that let a compiler fuse
# multiplications and additions change nothing. The reference job trains on the published Fashion-MNIST, from Debian's package.
set -eu

every_layer="every-layer float step 50: b0a0e6f027178cef"
every_layer_double="every-layer double step 50: 094b2007cf8ee22b"
reference="reference float step 50: 859d8236a115be4d"
reference_100="reference float step 100: d3e653fff7555b09"

compiler=$1
flags=$2
runner=${3:-}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
data=/usr/share/datasets/fashion-mnist

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

expected=$every_layer
case " $flags " in
    *" -DFLOAT_ONLY "*) ;;
    *) expected="$expected
$every_layer_double" ;;
esac
status=0
job=""
if [ -f "$data/train-images-idx3-ubyte.gz" ]; then
    for part in train-images-idx3 train-labels-idx1; do
        gzip -dc "$data/$part-ubyte.gz" >"$folder/$part"
    done
    expected="$expected
$reference"
    steps=50 # an emulator needs half a minute for them
    if [ -z "$runner" ]; then
        expected="$expected
$reference_100"
        steps=100
    fi
    job="$steps train-images-idx3 train-labels-idx1"
else
    echo "skipped: the reference job; Fashion-MNIST is not in $data (Debian package dataset-fashion-mnist)"
    status=77
fi

# check <instruction set, or nothing for the program's own choice> <workers>...
check() {
    simd=$1
    shift
    for workers in "$@"; do
        # shellcheck disable=SC2086 # words
        printed=$(cd "$folder" && LOCKSTEP_SIMD=$simd $runner ./parameter_hash "$workers" $job)
        if [ "$printed" != "$expected" ]; then
            printf '%s %s, instruction set "%s", %s workers: expected\n%s\ngot\n%s\n' "$compiler" "$flags" "$simd" "$workers" \
                "$expected" "$printed" >&2
            exit 1
        fi
        echo "as expected: instruction set ${simd:-by default}, workers: $workers"
    done
}

if [ -n "$runner" ]; then
    check "" 2
    exit $status
fi
check "" 1 2 3
for simd in avx2 avx512; do
    case $simd in
        avx2) needs="avx2 fma" ;;
        avx512) needs="avx512f avx512bw avx512dq avx512vl" ;;
    esac
    for feature in $needs; do
        grep -qw "$feature" /proc/cpuinfo || { echo "this processor has no $simd" && continue 2; }
    done
    check $simd 1 2 3
done
# Where its multiply-adds are calls and no instructions, the portable set takes half a minute.
case " $flags " in
    *" -march=native "*) check portable 2 ;;
esac
exit $status
