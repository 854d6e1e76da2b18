#!/bin/sh
# Prints the first Python >= 3.11 that really runs and can make virtual environments.
# A name on PATH proves nothing: it may be a version manager's shim without a version behind it.
for name in ${PYTHON:-} python3.12 python3.11 python3.13 python3.14 python3 /usr/bin/python3; do
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$name"
        exit 0
    fi
done
echo "lbmtune needs Python 3.11 or newer with its venv module, and none was found;" \
    "install it (Debian: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12 ..." >&2
exit 1
