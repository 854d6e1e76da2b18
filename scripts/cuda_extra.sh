#!/bin/sh
# Prints the extra of pyproject.toml whose CuPy fits the NVIDIA driver: cuda13, cuda12, or nothing without a GPU.
version=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]*Version *: *\([0-9][0-9]*\).*/\1/p' | head -n 1)
case "$version" in
    '') ;;
    12) echo cuda12 ;;
    1[3-9]) echo cuda13 ;;
    *) echo "the NVIDIA driver speaks CUDA $version, CuPy needs 12 or newer: update the driver to use the GPU" >&2 ;;
esac
