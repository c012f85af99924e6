#!/bin/sh
# The packages of a folder in an empty Debian 12: installed, a toy runtime recorded as docs/embedding.md has it, the demo run,
# removed again, and nothing left behind. As root; needs debootstrap and a Debian mirror. Usage: scripts/deb_root.sh FOLDER
set -eu
folder=$(cd "$1" && pwd)
command -v debootstrap >/dev/null || { echo "deb_root.sh: debootstrap is missing" >&2; exit 77; }
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
rm -f "$root.log"
mount -t proc proc "$root/proc" 2>/dev/null || echo "deb_root.sh: no /proc can be mounted here: what needs it is left out"
[ ! -d /etc/apt/apt.conf.d ] || cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages"
for package in tidemark libtidemark0 libtidemark-dev; do
    set -- "$folder/$package"_*.deb
    [ $# -eq 1 ] && [ -e "$1" ] || { echo "deb_root.sh: not one $package in $folder" >&2; exit 1; }
    cp "$1" "$root/packages/"
done
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy=$http_proxy} sh -euc "$1"; }

in_root 'apt-get update -qq; apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config >/dev/null 2>&1'
in_root 'find / -xdev -path /proc -prune -o -print | sort' >"$root.before"
in_root 'apt-get install -y -qq --no-install-recommends /packages/*.deb >/dev/null 2>&1'
echo "installed: $(in_root 'dpkg-query -W -f "\${Package} \${Version}, " tidemark libtidemark0 libtidemark-dev')"
in_root 'tidemark --version; cd /root; cp /usr/share/doc/tidemark/examples/toy_runtime.c .
    cc -o toy_runtime toy_runtime.c $(pkg-config --cflags --libs tidemark-record)
    ./toy_runtime toy.db; tidemark trace toy.db --at end; tidemark report toy.db -o toy.html
    ! tidemark help demo >/dev/null 2>&1 || tidemark demo /root/demo >demo.txt
    test -s toy.html; rm -rf /root/*'
in_root 'apt-get purge -y -qq tidemark libtidemark0 libtidemark-dev >/dev/null 2>&1'
left=$(in_root 'find / -xdev -path /proc -prune -o -path /packages -prune -o -path "*tidemark*" -print')
rm -f "$root.before"
[ -z "$left" ] || { echo "deb_root.sh: left behind:"; echo "$left"; exit 1; }
echo "removed: nothing is left behind"
