# Sourced by the checks of pages: installs the browser's driver, and starts a service for the time of the check.

# Installs the packages again only when the lock file has changed. Sets `modules`, where scripts must be to find them.
install_browser() {
    modules=.cache/browser
    if ! cmp -s scripts/browser/package-lock.json $modules/installed-lock.json; then
        rm -rf $modules
        mkdir -p $modules
        cp scripts/browser/package*.json $modules
        npm ci --prefix $modules --no-audit --no-fund --loglevel=error
        cp scripts/browser/package-lock.json $modules/installed-lock.json
    fi
    cp scripts/browser/launch.mjs $modules
}

# Sets `port`, a free one, and `home`, a folder that is deleted at the end together with the service.
prepare_service() {
    home=$(mktemp -d)
    service=''
    trap '[[ $service ]] && kill "$service" && wait "$service"; rm -rf "$home"' EXIT
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
}

# Starts `serve` with these settings and arguments, and waits until it answers. What it prints is in $home/printed.
start_service() {
    env -i "${settings[@]}" "$svc" serve "$@" >"$home/printed" 2>&1 &
    service=$!
    for _ in {1..600}; do
        if curl -sf "http://127.0.0.1:$port/ready" >/dev/null; then return; fi
        kill -0 "$service" 2>/dev/null || { cat "$home/printed" >&2; echo "${0##*/}: the service ended" >&2; exit 1; }
        sleep 0.1
    done
}
