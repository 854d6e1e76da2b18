#!/bin/sh
# Prints the extra of pyproject.toml whose CuPy fits the NVIDIA driver: cuda13, cuda12, or nothing without a GPU.
command -v nvidia-smi >/dev/null || exit 0
told=$(nvidia-smi 2>&1)
version=$(echo "$told" | sed -n 's/.*CUDA[A-Za-z ]*Version *: *\([0-9][0-9]*\).*/\1/p' | head -n 1)
case "$version" in
    '') echo "no GPU is used, because nvidia-smi fails: $(echo "$told" | grep -m 1 .)" >&2 ;;
    12) echo cuda12 ;;
    1[3-9]) echo cuda13 ;;
    *) echo "the NVIDIA driver speaks CUDA $version, CuPy needs 12 or newer: update the driver to use the GPU" >&2 ;;
esac
