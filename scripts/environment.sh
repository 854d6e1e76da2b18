#!/bin/sh
# Makes or updates a virtual environment with this checkout installed: environment.sh FOLDER [EXTRA]
set -eu
folder=$1
extra=${2:-}
if ! "$folder/bin/python" -c 'import pip' >/dev/null 2>&1; then
    python=$(sh scripts/find_python.sh)
    echo "making $folder with $python"
    "$python" -m venv --clear "$folder"
fi
echo "installing lbmtune${extra:+ with $extra} into $folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    --constraint constraints-dev.txt --editable ".${extra:+[$extra]}"
