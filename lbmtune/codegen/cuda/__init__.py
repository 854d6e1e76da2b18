"""CUDA text: the skeletons of kernels/cuda, with constants, population access and collision printed from the tables."""
