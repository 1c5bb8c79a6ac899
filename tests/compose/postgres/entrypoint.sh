#!/bin/sh
# Starts as root, reads the password file, hands the data folder to postgres and becomes that user: what the
# official image does, so that the capabilities and mounts of docker/compose.yaml are tried for real.
set -eu
if [ "$(id -u)" = 0 ]; then
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
    mkdir -p "$PGDATA"
    chmod 700 "$PGDATA"
    chown postgres: "$PGDATA" /run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
    initdb -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 --locale=C.UTF-8 > /dev/null
    rm /tmp/password
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    pg_ctl -s -w -o "-c listen_addresses=''" start
    PGPASSWORD=$POSTGRES_PASSWORD createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -s -w -m fast stop
fi
unset POSTGRES_PASSWORD
exec postgres -c listen_addresses='*'
