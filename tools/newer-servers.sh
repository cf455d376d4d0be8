#!/usr/bin/env bash
# Unpacks a server that is newer than that of this Debian into .bin/servers/NAME, with the libraries that it needs, and
# installs nothing. The archive is the one that apt has, and apt checks its signatures. Vitess is built from its module, which took
# five minutes on two processors.
#
#   tools/newer-servers.sh NAME...
#
# A program in .bin/servers/NAME has the name under which the tests look for it, so that a test uses it with that folder first in PATH.
# MySQL is called mariadbd there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# describe NAME: set the suite of Debian, the package, the programs as PATH=NAME IN PATH, and what each gets after its arguments.
describe() {
	local usr=$PWD/.bin/servers/$1/root/usr
	more=()
	case $1 in
		redis-8) suite=trixie package=redis-server programs=(usr/bin/redis-server=redis-server) ;;
		valkey-9) suite=sid package=valkey-server programs=(usr/bin/valkey-server=redis-server) ;;
		postgresql-17) suite=trixie package=postgresql-17 programs=(usr/lib/postgresql/17/bin/{postgres=postgres,initdb=initdb}) ;;
		mariadb-11.8) suite=trixie package=mariadb-server-core more=("--basedir=$usr")
			programs=(usr/sbin/mariadbd=mariadbd usr/bin/mariadb-install-db=mariadb-install-db) ;;
		mysql-9) suite=sid package=mysql-server-core programs=(usr/sbin/mysqld=mariadbd)
			more=("--basedir=$usr" "--lc-messages-dir=$usr/share/mysql" "--plugin-dir=$usr/lib/mysql/plugin" --secure-file-priv=NULL --mysqlx=OFF) ;;
		vitess) programs=(vtcombo=vtcombo) ;;
		*) echo "unknown server $1: there are redis-8, valkey-9, postgresql-17, mariadb-11.8, mysql-9 and vitess" >&2; exit 2 ;;
	esac
}

# complete NAME FOLDER: write what the package lacks of what the tests start.
complete() {
	case $1 in
		mariadb-11.8) for program in my_print_defaults resolveip; do # which find nothing
			printf '#!/bin/sh\n' >"$2/root/usr/bin/$program"
			chmod +x "$2/root/usr/bin/$program"
		done ;;
		mysql-9)
			echo "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;" >"$2/users.sql"
			cat >"$2/mariadb-install-db" <<-'END'
				#!/bin/sh
				for argument; do
					shift
					case $argument in --auth-root-* | --skip-test-db) ;; *) set -- "$@" "$argument" ;; esac
				done
				folder=$(dirname "$0")
				exec "$folder/mariadbd" "$@" --initialize-insecure "--init-file=$folder/users.sql"
			END
			chmod +x "$2/mariadb-install-db" ;;
	esac
}

# apt_of FOLDER ARGUMENT...: run apt-get for a system of its own, which is empty, so that every library comes along.
apt_of() {
	local folder=$1
	shift
	apt-get -q -y --no-install-recommends -o "Dir::State=$folder/state" -o "Dir::State::status=$folder/status" -o "Dir::Cache=$folder/cache" \
		-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/nonexistent "$@" >"$folder/log" 2>&1 ||
		{ tail -n 5 "$folder/log" >&2; echo "apt-get failed" >&2; return 1; }
}

# vitess FOLDER: build vtcombo. It refuses to run as root, so in a namespace of its own the user has another number, and the same rights.
vitess() {
	local module=vitess.io/vitess@v0.24.4 sum=h1:fjIFc28fGYF6Bxu4heHsKvx+huPbA4NmIeLJL4clbc8= source
	source=$(go mod download -json "$module")
	grep -qF "\"Sum\": \"$sum\"" <<<"$source" || { echo "$module has another sum than $sum" >&2; return 1; }
	source=$(sed -n 's/.*"Dir": "\(.*\)",*$/\1/p' <<<"$source")
	mkdir -p "$1/root"
	install -m 644 "$source/go.mod" "$1/root/build.mod"
	install -m 644 "$source/go.sum" "$1/root/build.sum"
	(cd "$source" && go build -modfile="$1/root/build.mod" -o "$1/root/vtcombo" ./go/cmd/vtcombo)
	cat >"$1/vtcombo" <<-END
		#!/bin/sh
		[ "\$(id -u)" != 0 ] || exec unshare --user --map-user=1000 "$1/root/vtcombo" "\$@"
		exec "$1/root/vtcombo" "\$@"
	END
	chmod +x "$1/vtcombo"
}

# fetch NAME
fetch() {
	local folder=$PWD/.bin/servers/$1 work root site key=/usr/share/keyrings/debian-archive-keyring.gpg
	describe "$1"
	[ ! -e "$folder/complete" ] || return 0
	if [ "$1" = vitess ]; then
		rm -rf "$folder"
		vitess "$folder"
		touch "$folder/complete"
		return
	fi
	site=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | sort -u | head -n 1) || true
	[ -n "$site" ] && [ -e "$key" ] || { echo "$1 is fetched from the Debian archive that apt has, and it has none" >&2; return 1; }
	rm -rf "$folder"
	work=$folder/work root=$folder/root
	mkdir -p "$work"/state/lists/partial "$work"/cache/archives/partial "$root"
	: >"$work/status"
	echo "deb [signed-by=$key] $site $suite main" >"$work/sources.list"
	apt_of "$work" update
	apt_of "$work" --download-only install "$package"
	for deb in "$work"/cache/archives/*.deb; do dpkg -x "$deb" "$root"; done
	rm -rf "$work"
	for program in "${programs[@]}"; do wrap "$root" "${program%=*}" "$folder/${program#*=}" "${more[@]}"; done
	complete "$1" "$folder"
	touch "$folder/complete"
}

# wrap ROOT PROGRAM WRAPPER ARGUMENT...: write a script that starts a program with the loader and the libraries below ROOT, and with
# arguments after its own. A program of binary code is replaced by that script, as others start it, too.
wrap() {
	local loader libraries program=$1/$2 wrapper=$3
	loader=$(find "$1" -name 'ld-linux*.so.*' -not -type d | head -n 1)
	libraries=$(find "$1" -name '*.so*' -path '*linux-gnu*' -printf '%h\n' | sort -u | paste -sd:)
	[ -n "$loader" ] && [ -e "$program" ] || { echo "$1 lacks $2, or a loader" >&2; return 1; }
	shift 3
	if [ "$(head -c 2 "$program")" = '#!' ]; then
		printf '#!/bin/sh\nexec %q "$@" %s\n' "$program" "${*@Q}" >"$wrapper"
	else
		mv "$program" "$program.bin"
		printf '#!/bin/sh\nexec %q --library-path %q %q "$@" %s\n' "$loader" "$libraries" "$program.bin" "${*@Q}" >"$program"
		ln -s "$program" "$wrapper"
	fi
	chmod +x "$wrapper"
}

for name; do
	fetch "$name"
	describe "$name"
	echo "$name: $(".bin/servers/$name/${programs[0]#*=}" --version)"
done
