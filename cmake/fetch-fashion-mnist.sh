#!/bin/sh
# Downloads Fashion-MNIST into a folder (default: ./data), for machines where it is not installed as a package.
# Usage: sh cmake/fetch-fashion-mnist.sh [FOLDER]
# Files that are already there and good are kept; several calls at once do not disturb each other; a failure leaves no partial file.
# LOCKSTEP_FASHION_MNIST_URL overrides where the files come from; LOCKSTEP_FASHION_MNIST_MD5 ("md5 name" lines) what they must be.
set -u

folder=${1:-data}
case $#$folder in
    [01]-* | [!01]*)
        echo "usage: sh cmake/fetch-fashion-mnist.sh [FOLDER]" >&2
        exit 2
        ;;
esac
url=${LOCKSTEP_FASHION_MNIST_URL:-http://fashion-mnist.s3-website.eu-central-1.amazonaws.com}
checksums=${LOCKSTEP_FASHION_MNIST_MD5:-"8d4fb7e6c68d591d4c3dfef9ec88bf0d train-images-idx3-ubyte.gz
25c81989df183df01b3e8a0aad5dffbe train-labels-idx1-ubyte.gz
bef4ecab320f06d8554ea6380940ec79 t10k-images-idx3-ubyte.gz
bb300cfdad3c16e7a12a480ee83cd310 t10k-labels-idx1-ubyte.gz"}
temporary=
created=

fail() {
    echo "fetch-fashion-mnist: $*" >&2
    exit 1
}

clean_up() {
    [ -z "$temporary" ] || rm -rf -- "$temporary"
    # Only a folder that this call made and that is still empty.
    [ -z "$created" ] || rmdir -- "$folder" 2>/dev/null
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

md5_of() {
    if command -v md5sum >/dev/null 2>&1; then
        md5sum <"$1" | cut -d ' ' -f 1
    elif command -v md5 >/dev/null 2>&1; then
        md5 -q "$1"
    else
        openssl md5 <"$1" | sed 's/.* //'
    fi
}

# Writes $1 to the file $2; time limits, so that a dead server cannot hold it up for ever. Errors go to stdout.
download() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 2 --connect-timeout 20 --speed-limit 1000 --speed-time 60 -o "$2" "$1" 2>&1
    elif command -v wget >/dev/null 2>&1; then
        wget -nv --tries=3 --timeout=60 -O "$2" "$1" 2>&1
    else
        echo "neither curl nor wget is installed"
        return 1
    fi
}

fetch() { # md5 name
    target=$folder/$2
    if [ -f "$target" ] && [ "$(md5_of "$target")" = "$1" ]; then
        echo "$target: already there"
        return
    fi
    message=$(download "$url/$2" "$temporary/$2") || fail "$url/$2: $(printf '%s' "$message" | tr '\n' ' ')"
    [ -f "$temporary/$2" ] || fail "$url/$2: nothing arrived"
    found=$(md5_of "$temporary/$2")
    [ "$found" = "$1" ] || fail "$url/$2: expected md5 $1, found $found"
    # Within one file system a rename is atomic: others see the old file or the complete new one.
    mv -f -- "$temporary/$2" "$target" || fail "$target: cannot be written"
    echo "$target: fetched"
}

if [ ! -d "$folder" ]; then
    mkdir -p -- "$folder" 2>/dev/null || fail "$folder: cannot be made"
    created=yes
fi
temporary=$(mktemp -d "$folder/.fetch.XXXXXX" 2>/dev/null) || fail "$folder: cannot be written"
while read -r md5 name; do
    fetch "$md5" "$name"
done <<EOF
$checksums
EOF
created=
