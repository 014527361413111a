#!/usr/bin/env bash
# A private PostgreSQL cluster in a folder of its own; listens on 127.0.0.1 only, and touches no system service.
#
#   postgres.sh start DIR [PORT]      start it, or find it running; prints its URL. The port is PORT, else
#                                     TOCSIN_PG_PORT, else the one it had last time, else a free one
#   postgres.sh url DIR               print its URL; fails when it does not run
#   postgres.sh standby DIR SOURCE    start a standby of the cluster in SOURCE; prints its URL
#   postgres.sh promote DIR           make a standby the primary, and wait until it takes writes
#   postgres.sh stop DIR              stop it, keep its data
#   postgres.sh stop-immediate DIR    stop it as a crash would: the next start recovers from the log
#   postgres.sh remove DIR            stop it and delete its data
#
# TOCSIN_PG_OPTIONS: further server options, such as '-c shared_buffers=1GB'. Everyone on this machine may connect
# (trust).
# PostgreSQL refuses to run as root, so root starts it as user postgres. Where that user cannot reach DIR (below /root,
# say), the data goes to a folder in /var/tmp that belongs to DIR.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

bin=${TOCSIN_PG_BIN:-/usr/lib/postgresql/15/bin}

# Runs a command as the user who owns the cluster.
as_owner() {
  if ((EUID == 0)); then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups env HOME=/ "$@")
  else
    "$@"
  fi
}

# Sets `home`, the folder the cluster lives in. REQUIRES: $1, the folder asked for.
find_home() {
  local asked=$1 owner
  owner=$(as_owner id -un)
  home=$asked
  [[ $command != start ]] || mkdir -p "$(dirname "$asked")"
  if ! as_owner test -x "$(dirname "$asked")"; then
    home=/var/tmp/tocsin-$(printf '%s' "$asked" | sha256sum | head -c 12)
    [[ $command != start ]] || echo "User $owner cannot reach $asked: the data of PostgreSQL goes to $home" >&2
  fi
  # In a folder that all users may write to, another user's folder may exist under this name.
  if [[ -e $home ]]; then
    [[ -d $home && ! -L $home && $(stat -c %U "$home") == @("$owner"|"$(id -un)") ]] ||
      die "$home is not a folder of $owner"
  fi
}

is_running() { as_owner "$bin/pg_ctl" status -D "$home/data" >/dev/null 2>&1; }

url() { echo "postgresql://postgres@127.0.0.1:$(cat "$home/port")/tocsin"; }

create_cluster() {
  mkdir -p "$home"
  chmod 700 "$home"
  ((EUID != 0)) || chown postgres: "$home"
  # Made under another name, so that a cluster whose creation was interrupted is not taken for one.
  as_owner rm -rf "$home/new"
  as_owner "$bin/initdb" -D "$home/new" -U postgres --auth=trust -E UTF8 --locale=C.UTF-8 --no-instructions \
    >/dev/null || die "initdb failed"
  as_owner tee -a "$home/new/postgresql.conf" >/dev/null <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 256MB
max_wal_size = 4GB
timezone = 'UTC'
log_timezone = 'UTC'
CONF
  as_owner mv "$home/new" "$home/data"
}

start() {
  local port=${1:-${TOCSIN_PG_PORT:-}} attempt
  [[ -x $bin/postgres ]] || die "no PostgreSQL 15 in $bin; run scripts/install"
  [[ -e $home/data ]] || create_cluster
  if ! is_running; then
    for attempt in 1 2 3; do
      try_start "${port:-$(last_port)}" && break
      # Another process may have taken the port meanwhile; a port that was asked for is not exchanged.
      [[ -z $port && $attempt != 3 ]] || { tail -n 20 "$home/log" >&2; die "PostgreSQL does not start; see $home/log"; }
    done
  fi
  local url maintenance
  url=$(url)
  maintenance=${url%/*}/postgres
  [[ -n $(as_owner "$bin/psql" -qXAtc "SELECT 1 FROM pg_database WHERE datname = 'tocsin'" "$maintenance") ]] ||
    as_owner "$bin/createdb" --maintenance-db="$maintenance" tocsin
  echo "$url"
}

last_port() {
  local port
  port=$(cat "$home/port" 2>/dev/null || true)
  if [[ -z $port ]] || port_is_taken "$port"; then
    port=$(free_port)
  fi
  echo "$port"
}

try_start() {
  echo "$1" | as_owner tee "$home/port" >/dev/null
  # A private cluster outlives the script: it must hold neither its output nor its locks.
  as_owner "$bin/pg_ctl" start -w -s -D "$home/data" -l "$home/log" -o "-p $1 ${TOCSIN_PG_OPTIONS:-}" \
    </dev/null >/dev/null 2>&1 9>&-
}

# A copy of the cluster in the folder $1, which follows it by streaming replication.
standby() {
  local source target=$home
  find_home "$(realpath -m "$1")"
  source=$(url)
  home=$target
  [[ ! -e $home/data ]] || die "$home holds a cluster already"
  mkdir -p "$home"
  chmod 700 "$home"
  ((EUID != 0)) || chown postgres: "$home"
  as_owner "$bin/pg_basebackup" -D "$home/data" -R -X stream -c fast -d "${source%/*}/postgres" >/dev/null
  try_start "$(free_port)" || { tail -n 20 "$home/log" >&2; die "the standby does not start; see $home/log"; }
  url
}

stop() {
  ! is_running || as_owner "$bin/pg_ctl" stop -w -s -m "$1" -D "$home/data"
}

command=${1:-}
[[ $# -ge 2 && -n $2 ]] ||
  die "usage: postgres.sh start|url|standby|promote|stop|stop-immediate|remove DIR [PORT|SOURCE]"
find_home "$(realpath -m "$2")"
case $command in
  start) start "${3:-}" ;;
  url) is_running && url ;;
  standby) standby "${3:?postgres.sh standby needs the folder of its primary}" ;;
  promote) as_owner "$bin/pg_ctl" promote -w -s -D "$home/data" ;;
  stop) stop fast ;;
  stop-immediate) stop immediate ;;
  remove) stop immediate && rm -rf "$home" ;;
  *) die "unknown command $command" ;;
esac
