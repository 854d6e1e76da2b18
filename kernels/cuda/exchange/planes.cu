// The limits along z of launches that take the first plane that they update, and that behind the last: parts of a domain
// update the planes beside a face apart from the others.
//@begin direct
//@begin limits
    const int z = first_plane + blockIdx.z * BLOCK_Z + threadIdx.z;
    const bool inside = x < nx && y < ny && z < last_plane;
//@end limits
//@end direct
//@begin column
//@begin limits
    const int first = first_plane + MARCH * (blockIdx.z * BLOCK_Z + threadIdx.z);
    const bool inside = x < nx && y < ny && first < last_plane;
//@end limits
//@begin top
    const int end = first + MARCH < last_plane ? first + MARCH : last_plane;
//@end top
//@end column
//@begin tiles
//@begin sizes
    const int height = (ny + gridDim.y - 1) / gridDim.y, depth = (last_plane - first_plane + gridDim.z - 1) / gridDim.z;
//@end sizes
//@begin chunk
    const int begin = first_plane + blockIdx.z * depth, end = least(begin + depth, last_plane), planes = end - begin + 2 * STEPS;
//@end chunk
//@begin bottom
    const auto bottom = [&](const int k) { return first_plane + least(depth * k * (2 * chunks - k) / chunks, last_plane - first_plane); };
//@end bottom
//@end tiles
