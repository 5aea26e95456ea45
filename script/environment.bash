# Sourced by the other scripts: one virtual environment with the package as a built wheel.
# CRAWLHEALTH_VENV names another folder than .venv, PYTHON another interpreter.

venv=${CRAWLHEALTH_VENV:-.venv}
export PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

may_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

debian_packages() { # installs the named packages
    echo "Installing $* with apt-get"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

find_python() { # prints an interpreter of 3.11 or newer that can make environments; sets nothing
    local candidate recent=
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
        recent=$candidate
    done
    if [ -n "$recent" ]; then
        fail "$recent cannot make virtual environments: install python3-venv (Debian, Ubuntu), or set PYTHON."
    fi
    fail "Python 3.11 or newer is needed and was not found: install it, or set PYTHON to its path."
}

make_venv() {
    local python
    if "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        return
    fi
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
}

install_wheel() { # builds this tree's wheel and installs it; the argument is "" or an extra like "[dev]"
    local extra=$1 built
    make_venv
    local requirements stamp=$venv/.crawlhealth$extra
    requirements=$(cksum <pyproject.toml)
    built=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$built'" EXIT
    "$venv/bin/python" -c 'import hatchling' 2>/dev/null || "$venv/bin/pip" install -q 'hatchling>=1.26'
    "$venv/bin/pip" wheel -q --no-deps --no-build-isolation --wheel-dir "$built" .
    if [ "$(cat "$stamp" 2>/dev/null)" != "$requirements" ]; then
        echo "Installing crawlhealth$extra and what it needs into $venv"
        "$venv/bin/pip" install -q "$(echo "$built"/*.whl)$extra"
        echo "$requirements" >"$stamp"
    fi
    "$venv/bin/pip" install -q --no-deps --no-index --force-reinstall "$built"/*.whl
    rm -rf "$built"
}
