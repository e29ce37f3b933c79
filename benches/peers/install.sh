#!/usr/bin/env bash
# Installs the receivers that tilld is measured beside into target/peers, in fixed versions; what is there already is left
# alone. What this machine lacks is named and does not keep the others from being installed: the bench runs those it finds.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$here/../..
into=${CARGO_TARGET_DIR:-$root/target}/peers
mkdir -p "$into"
into=$(cd "$into" && pwd)
lacking=()

# Whether a peer's files are installed as they stand now; the mark is written when they were.
is_current() { cmp -s "$into/$1/installed" <(cat "${@:2}"); }
mark() { cat "${@:2}" >"$into/$1/installed"; }

install_fastapi() {
    local wanted=$here/fastapi/requirements.txt
    command -v python3 >/dev/null || { lacking+=('fastapi: python3'); return; }
    command -v pip3 >/dev/null || { lacking+=('fastapi: pip3 (python3-pip)'); return; }
    if ! is_current fastapi "$wanted"; then
        rm -rf "$into/fastapi"
        pip3 install --quiet --disable-pip-version-check --no-deps --target "$into/fastapi" --requirement "$wanted" ||
            { lacking+=('fastapi: pip3 could not install it'); return; }
        mark fastapi "$wanted"
    fi
    echo "fastapi: $into/fastapi"
}

install_express() {
    local wanted=("$here/express/package.json" "$here/express/package-lock.json")
    command -v node >/dev/null || { lacking+=('express: node (nodejs)'); return; }
    command -v npm >/dev/null || { lacking+=('express: npm'); return; }
    if ! is_current express "${wanted[@]}"; then
        rm -rf "$into/express"
        mkdir -p "$into/express"
        cp "${wanted[@]}" "$into/express"
        # better-sqlite3 is compiled, which takes some minutes, where no binary of it can be had.
        npm ci --silent --no-fund --no-audit --prefix "$into/express" ||
            { lacking+=('express: npm could not install it (a C++ compiler is needed)'); return; }
        mark express "${wanted[@]}"
    fi
    echo "express: $into/express"
}

install_webhook() {
    local packages=()
    command -v webhook >/dev/null || packages+=(webhook)
    command -v sqlite3 >/dev/null || packages+=(sqlite3)
    if ((${#packages[@]})); then
        if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
            lacking+=("webhook: as root, apt-get install ${packages[*]}")
            return
        fi
        apt-get update -q >/dev/null &&
            DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${packages[@]}" >/dev/null ||
            { lacking+=("webhook: apt-get could not install ${packages[*]}"); return; }
    fi
    echo "webhook: $(command -v webhook)"
}

install_fastapi
install_express
install_webhook
for what in "${lacking[@]}"; do
    echo "not installed: $what" >&2
done
