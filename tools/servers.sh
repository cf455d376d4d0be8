#!/usr/bin/env bash
# Makes sure that the servers of the tests are installed: redis-server, mariadbd with Galera, postgres, Patroni, etcd,
# ZooKeeper, haproxy, prometheus, libfaketime and the browser Chromium; with the argument pictures, a Chinese font as well.
# Tests start servers of their own, so nothing is started here and nothing is set to start with the machine.
set -euo pipefail

has() { PATH="$PATH:/usr/sbin:/usr/local/sbin:/opt/homebrew/bin:/opt/homebrew/opt/mariadb/bin" command -v "$1" >/dev/null; }

packages=()
has redis-server || packages+=(redis-server)
{ has mariadbd && has mariadb-install-db; } || packages+=(mariadb-server)
[[ -e /usr/lib/galera/libgalera_smm.so || -e /usr/lib64/galera-4/libgalera_smm.so ]] || packages+=(galera-4)
has rsync || packages+=(rsync) # copies the data of a Galera node to another one
has postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || packages+=(postgresql)
has etcd || packages+=(etcd-server)
[[ $OSTYPE != linux* ]] || has ip || packages+=(iproute2) # for networks of namespaces
has patroni || packages+=(patroni python3-etcd)
compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || packages+=(libfaketime) # sets the clock of one server
has haproxy || packages+=(haproxy)
{ has prometheus && has promtool; } || packages+=(prometheus)
has chromium || has google-chrome || packages+=(chromium)
has java || packages+=(default-jre-headless)
[[ -e /usr/share/java/zookeeper.jar || -d /opt/zookeeper || -d /opt/homebrew/opt/zookeeper || -d /usr/local/opt/zookeeper ]] || packages+=(libzookeeper-java) # the server is in it
[[ ${1-} != pictures ]] || [[ $(fc-list :lang=zh 2>/dev/null) ]] || packages+=(fontconfig fonts-wqy-microhei) # for pictures in Chinese
((${#packages[@]})) || exit 0

sudo=()
((EUID == 0)) || sudo=(sudo -n)
if ! command -v apt-get >/dev/null || ! "${sudo[@]}" true 2>/dev/null; then
	echo "missing servers: install ${packages[*]} (macOS: brew install redis mariadb postgresql patroni etcd zookeeper haproxy chromium), then run this again" >&2
	exit 1
fi
echo "installing ${packages[*]}" >&2

# Debian starts a server when its package is installed, unless this file says 101.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	trap '"${sudo[@]}" rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" install -m 755 /dev/stdin "$policy"
fi

install_packages() {
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1 ||
		{ tail -n 20 "$log" >&2; echo "apt-get $1 failed" >&2; return 1; }
}
log=$(mktemp)
install_packages update -q
install_packages install -q -y --no-install-recommends "${packages[@]}"
rm -f "$log"

# A package enables its service for the next start of the machine.
for service in redis-server mariadb postgresql patroni etcd haproxy prometheus; do
	if [[ " ${packages[*]} " == *" $service"* ]] && command -v systemctl >/dev/null; then
		"${sudo[@]}" systemctl disable --quiet "$service" 2>/dev/null || true
	fi
done
