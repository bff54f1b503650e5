#!/bin/sh
# Makes a client certificate, key and certificate in one file, from the authority that make.sh made.
# Usage: certs/make-client.sh DIR NAME [OU]     (see README.md)
set -eu

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: $0 DIR NAME [OU]" >&2
    exit 2
fi
dir=$1
name=$2
# MongoDB takes a client with the servers' own OU for a server.
unit=${3:-clients}
days=30
one_day=86400

umask 077
cd "$dir"
if [ ! -s ca.key ]; then
    echo "$0: there is no authority in $dir: run make.sh first" >&2
    exit 1
fi
if [ -s "$name.pem" ] && openssl x509 -in "$name.pem" -noout -checkend $one_day >/dev/null &&
    openssl verify -CAfile ca.pem "$name.pem" >/dev/null 2>&1; then
    exit 0
fi
work=$(mktemp -d .making.XXXXXX)
trap 'rm -rf "$work"' EXIT

cat >"$work/extensions" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=clientAuth
END
{
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -subj "/O=webfill/OU=$unit/CN=$name" -keyout "$work/key" -out "$work/csr"
    openssl x509 -req -in "$work/csr" -CA ca.pem -CAkey ca.key -days $days \
        -set_serial "0x$(openssl rand -hex 8)" -extfile "$work/extensions" -out "$work/pem"
} 2>"$work/log" || {
    cat "$work/log" >&2
    exit 1
}
# The last step: the file is there whole or not at all.
cat "$work/key" "$work/pem" >"$work/both"
mv "$work/both" "$name.pem"
