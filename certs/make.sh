#!/bin/sh
# Makes a small certificate authority and a server certificate for the given names.
# Usage: certs/make.sh DIR NAME...     (see README.md)
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 DIR NAME..." >&2
    exit 2
fi
dir=$1
shift
days=30
one_day=86400

umask 077
mkdir -p "$dir"
cd "$dir"
work=$(mktemp -d .making.XXXXXX)
trap 'rm -rf "$work"' EXIT

# "DNS:a.example,IP:127.0.0.1" out of the names.
alternative_names() {
    list=
    for name in "$@"; do
        case $name in
            *:*) kind=IP ;; # IPv6
            *[!0-9.]*) kind=DNS ;;
            *) kind=IP ;;
        esac
        list=$list${list:+,}$kind:$name
    done
    printf '%s\n' "$list"
}

still_valid() {
    [ -s "$1.pem" ] && [ -s "$1.key" ] && openssl x509 -in "$1.pem" -noout -checkend $one_day >/dev/null
}

new_key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'

if ! still_valid ca; then
    # shellcheck disable=SC2086 # several words on purpose
    openssl req -x509 $new_key -days $days -subj "/O=webfill/OU=authority/CN=webfill test authority" \
        -addext basicConstraints=critical,CA:TRUE,pathlen:0 \
        -addext keyUsage=critical,keyCertSign,cRLSign \
        -keyout "$work/ca.key" -out "$work/ca.pem" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    mv "$work/ca.key" "$work/ca.pem" .
    rm -f server.names
fi

names=$(alternative_names "$@")
if still_valid server && [ "$(cat server.names 2>/dev/null)" = "$names" ]; then
    exit 0
fi
cat >"$work/extensions" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=$names
END
# shellcheck disable=SC2086
openssl req $new_key -subj "/O=webfill/OU=server/CN=webfill test server" \
    -keyout "$work/server.key" -out "$work/server.csr" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
openssl x509 -req -in "$work/server.csr" -CA ca.pem -CAkey ca.key -days $days \
    -set_serial "0x$(openssl rand -hex 8)" -extfile "$work/extensions" \
    -out "$work/server.pem" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
mv "$work/server.key" "$work/server.pem" .
printf '%s\n' "$names" >server.names
