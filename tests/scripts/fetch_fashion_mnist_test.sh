#!/bin/sh
# Tests cmake/fetch-fashion-mnist.sh through file:// URLs, without a network.
# Usage: sh tests/scripts/fetch_fashion_mnist_test.sh; exit code 0, 1 (failed) or 77 (curl is missing).
set -u

script=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)/cmake/fetch-fashion-mnist.sh
command -v curl >/dev/null 2>&1 || { echo "skipped: curl is not installed"; exit 77; }
root=$(mktemp -d) || exit 1
trap 'rm -rf -- "$root"' EXIT
failures=0

check() { # description, then a command that must succeed
    description=$1
    shift
    "$@" || { echo "FAILED: $description"; failures=$((failures + 1)); }
}
# The script with its output in $root/out and $root/err.
fetch() { sh "$script" "$@" >"$root/out" 2>"$root/err"; }
fetch_fails() { ! fetch "$@"; }
one_line() { [ "$(wc -l <"$root/err")" -eq 1 ]; }
says() { grep -q -- "$1" "$root/err"; }
only() { # folder, then all the names that it may hold
    [ "$(ls -A "$1" | sort | tr '\n' ' ')" = "$(shift; printf '%s\n' "$@" | sort | tr '\n' ' ')" ]
}
same() { cmp -s "$server/$1" "$2/$1"; }

server=$root/server
mkdir "$server"
head -c 300000 /dev/urandom >"$server/a.gz"
echo content >"$server/b.gz"
LOCKSTEP_FASHION_MNIST_URL=file://$server
LOCKSTEP_FASHION_MNIST_MD5=$(cd "$server" && md5sum a.gz b.gz)
export LOCKSTEP_FASHION_MNIST_URL LOCKSTEP_FASHION_MNIST_MD5

folder="$root/new folder/data"
check "a first call succeeds" fetch "$folder"
check "it leaves the files and nothing else" only "$folder" a.gz b.gz
check "the files are the server's" same a.gz "$folder"
check "others may read the files" [ "$(ls -l "$folder/a.gz" | cut -c 1-10)" = "$(ls -l "$server/a.gz" | cut -c 1-10)" ]

LOCKSTEP_FASHION_MNIST_URL=file://$root/gone
check "good files are not fetched again" fetch "$folder"
LOCKSTEP_FASHION_MNIST_URL=file://$server
echo damaged >"$folder/b.gz"
check "a bad file is replaced" fetch "$folder"
check "by the good one" same b.gz "$folder"

LOCKSTEP_FASHION_MNIST_URL=file://$root/gone
check "a missing server is a failure" fetch_fails "$root/empty"
check "told in one line" one_line
check "that names the file" says "gone/a.gz"
check "and nothing is left behind" [ ! -e "$root/empty" ]
LOCKSTEP_FASHION_MNIST_URL=file://$server

good=$LOCKSTEP_FASHION_MNIST_MD5
LOCKSTEP_FASHION_MNIST_MD5="00000000000000000000000000000000 a.gz"
mkdir "$root/mine"
echo kept >"$root/mine/a.gz"
check "a wrong checksum is a failure" fetch_fails "$root/mine"
check "told in one line" one_line
check "that names both checksums" says "a.gz: expected md5 00000000000000000000000000000000, found [0-9a-f]\{32\}"
check "and the file that was there stays" [ "$(cat "$root/mine/a.gz")" = kept ]
check "with nothing beside it" only "$root/mine" a.gz
LOCKSTEP_FASHION_MNIST_MD5=$good

echo file >"$root/file"
check "a folder that cannot be made is a failure" fetch_fails "$root/file/data"
check "told in one line" one_line
check "an unknown option is a failure" fetch_fails --help
check "so are two folders" fetch_fails "$root/x" "$root/y"

folder=$root/four
processes=
for i in 1 2 3 4; do
    sh "$script" "$folder" >"$root/out.$i" 2>&1 &
    processes="$processes $!"
done
for process in $processes; do check "four calls at once all succeed" wait "$process"; done
check "they leave the files and nothing else" only "$folder" a.gz b.gz
check "the files are whole" same a.gz "$folder"

# Debian's package holds the published files without the name and time in their gzip header; with these put back, the script's own
# checksums must accept them.
debian=/usr/share/datasets/fashion-mnist
if [ -d "$debian" ]; then
    unset LOCKSTEP_FASHION_MNIST_MD5
    mkdir "$root/published"
    for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
        case $name in train*) time='\0336' ;; *) time='\0363' ;; esac
        { printf '\037\213\010\010%b\351\247\131\000\003%s-ubyte\000' "$time" "$name"; tail -c +11 "$debian/$name-ubyte.gz"; } \
            >"$root/published/$name-ubyte.gz"
    done
    LOCKSTEP_FASHION_MNIST_URL=file://$root/published
    check "the published files are accepted" fetch "$root/data"
    LOCKSTEP_FASHION_MNIST_URL=file://$debian
    check "files with another header are not" fetch_fails "$root/other"
else
    echo "not checked: the published files ($debian is not there)"
fi

[ "$failures" -eq 0 ] && echo "all passed"
[ "$failures" -eq 0 ]
