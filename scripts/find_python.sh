#!/bin/sh
# Prints the first Python >= 3.11 that really runs and can make virtual environments.
# A name on PATH proves nothing: it may be a version manager's shim without a version behind it. Shims come last: version
# managers build without profiles unless asked to, and such a Python takes a fifth more processor time for our tests.
for shims in passed taken; do
    for name in ${PYTHON:-} python3.12 python3.11 python3.13 python3.14 python3 /usr/bin/python3; do
        case $name:$shims:$(command -v "$name") in
        "${PYTHON:-}":*) ;;
        *:passed:*/shims/*) continue ;;
        esac
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            exit 0
        fi
    done
done
echo "lbmtune needs Python 3.11 or newer with its venv module, and none was found;" \
    "install it (Debian: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12 ..." >&2
exit 1
