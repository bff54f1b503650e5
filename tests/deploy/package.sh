#!/usr/bin/env bash
# The package: its files, upgrades, which keep changed files and restart running units, and the files left after it is
# removed and purged.
# shellcheck source=tests/deploy/machine.sh
source "$(dirname "$0")/machine.sh"

package=$(echo "$packages"/webfill_*.deb)
symbols=$(compgen -G "$packages/webfill-dbgsym_*.deb" || true)
tar=$(echo "$packages"/webfill-*.tar.gz)

# Makes a later version of the same package, with another default in its settings.
make_newer() {
    dpkg-deb --raw-extract "$package" "$work/newer"
    sed -i 's/^Version: .*/Version: 99.0.0/' "$work/newer/DEBIAN/control"
    echo '# A new default.' >>"$work/newer/etc/webfill/webfill.toml"
    dpkg-deb --build --root-owner-group -Zgzip -z1 "$work/newer" "$root/root/newer.deb" >/dev/null
    rm -r "$work/newer"
}

has() {
    in_machine test -e "$1"
}

step "the binary is stripped, and its symbols are apart"
make_root
dpkg-deb --fsys-tarfile "$package" | tar --extract --to-stdout ./usr/bin/webfill >"$work/binary"
file_says=$(readelf --sections --wide "$work/binary")
[[ $file_says != *.symtab* ]] || fail "the binary has symbols"
if [ -n "$symbols" ]; then
    build_id=$(readelf --notes "$work/binary" | sed -n 's/.*Build ID: //p')
    symbol_files=$(dpkg-deb --contents "$symbols")
    [[ -n $build_id && $symbol_files == *"${build_id:2}.debug"* ]] || fail "no symbols of build $build_id: $symbol_files"
else
    echo "LEFT OUT: debug symbols, because the binary that was packed has none" >&2
    [ -z "${CI:-}" ] || fail "no package with debug symbols"
fi
[[ $(dpkg-deb --field "$package" Depends) == *libzmq5* ]] || fail "libzmq5 is not required"

step "the archive says what it links, and runs"
tar --extract --gzip --file "$tar" --directory "$work"
unpacked=$(echo "$work"/webfill-*-linux)
linked=$(LC_ALL=C ldd "$unpacked/webfill")
[[ $linked == *libzmq.so.5* && $(cat "$unpacked/LINKS") == *libzmq.so.5* ]] || fail "LINKS or ldd lacks libzmq: $linked"
"$unpacked/webfill" --version >/dev/null

step "a Debian 12 takes it, and everything has its place"
boot
cp "$package" "$root/root/webfill.deb"
make_newer
said=$(in_machine dpkg --install /root/webfill.deb 2>&1) || fail "it is not installed: $said"
in_machine webfill --version
for path in /usr/share/man/man1/webfill-dispatcher.1.gz /usr/share/man/man1/webfill-mapping-check.1.gz \
    /usr/share/bash-completion/completions/webfill /usr/share/zsh/vendor-completions/_webfill \
    /usr/share/fish/vendor_completions.d/webfill.fish /usr/share/webfill/mapping.schema.json \
    /usr/share/doc/webfill/examples/etl-mappings/gravatar.json /usr/share/doc/webfill/how-to/install.md; do
    has "$path" || fail "$path is missing"
done
for completed in 'bash -n /usr/share/bash-completion/completions/webfill' \
    'webfill mapping check /usr/share/doc/webfill/examples/etl-mappings'; do
    # shellcheck disable=SC2086 # a command with its words
    in_machine $completed >/dev/null
done
modes=$(in_machine stat --format '%a %U:%G %n' /etc/webfill /etc/webfill/certs /var/lib/webfill/store /etc/webfill/webfill.toml)
expected='750 root:webfill /etc/webfill
1770 root:webfill /etc/webfill/certs
2770 root:webfill /var/lib/webfill/store
644 root:root /etc/webfill/webfill.toml'
[ "$modes" = "$expected" ] || fail "modes: $modes"

step "a container's user can be made beside those of the package"
useradd=$(grep -o 'useradd .* webfill$\|useradd .* webfill ' deploy/container/Dockerfile)
[ -n "$useradd" ] || fail "the Dockerfile makes no user"
# shellcheck disable=SC2086 # a command with its words
in_machine $useradd 2>&1 || fail "this fails: $useradd"

step "an upgrade keeps what was changed, and restarts what runs"
echo '# My own line.' | in_machine tee -a /etc/webfill/webfill.toml >/dev/null
echo 'WEBFILL_POLITENESS_DELAY=1' | in_machine tee /etc/webfill/dispatcher.env /etc/webfill/supervisor-vm-01.env >/dev/null
in_machine systemctl enable --quiet --now webfill-dispatcher
in_machine systemctl enable --quiet --now webfill-supervisor@vm-01
dispatcher=$(value webfill-dispatcher MainPID)
supervisor=$(value webfill-supervisor@vm-01 MainPID)
in_machine env DEBIAN_FRONTEND=noninteractive dpkg --install --force-confdef --force-confold /root/newer.deb >/dev/null
[ "$(in_machine tail -1 /etc/webfill/webfill.toml)" = '# My own line.' ] || fail "the settings were replaced"
wait_until "the dispatcher is the new one" other_process webfill-dispatcher "$dispatcher"
wait_until "the supervisor is the new one" other_process webfill-supervisor@vm-01 "$supervisor"

step "removed: the processes have ended, settings and data are kept"
in_machine dpkg --remove webfill >/dev/null
[ -z "$(in_machine pgrep --exact webfill || true)" ] || fail "processes are left"
has /etc/webfill/webfill.toml || fail "the settings are gone"
has /var/lib/webfill/dispatcher/dispatcher.db || fail "the dispatcher's state is gone"

step "purged: only what was crawled is kept"
said=$(in_machine dpkg --purge webfill 2>&1) || fail "it is not purged: $said"
for path in /etc/webfill /var/lib/webfill/dispatcher /var/lib/webfill/supervisor-vm-01 /var/log/webfill; do
    ! has "$path" || fail "$path is left"
done
left=$(in_machine find /etc/systemd/system -name 'webfill-*')
[ -z "$left" ] || fail "links are left: $left"
has /var/lib/webfill/store/webfill.db || fail "the store is gone"
echo "package: passed after $SECONDS s"
