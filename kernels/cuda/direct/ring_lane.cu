    // rings of the preceding blocks lie between coordinates of the domain and of the storage
    const int ORIGIN_X = 2 * blockIdx.x + 1, ORIGIN_Y = 2 * blockIdx.y + 1, ORIGIN_Z = RING_Z * (2 * blockIdx.z + 1);
    Lane lane = make_lane(x, nx, n, active);
    lane.at = along_x(x + ORIGIN_X, n);
    lane.before = along_x(x + ORIGIN_X - 1, n);
    lane.after = along_x(x + ORIGIN_X + 1, n);
