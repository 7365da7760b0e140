// uses FUSE_KERNEL divide global infinity_f32 kernel load maximum store warp_max warp_sum

// softmax_softmax_0: softmax, %1 reduce_max: results 1024, row_warp over 1000 each
FUSE_KERNEL(128) softmax_softmax_0(global<const float> x, global<float> t1) {
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = 4 * b + warp;
  if (row < 1024) {
    float acc = -infinity_f32();                            // %1 reduce_max  softmax
    for (int c = lane; c < 1000; c += 32) {
      const float v0 = load(x, c + 1000 * row);             // %x input
      acc = maximum(acc, v0);                               // %1 reduce_max  softmax
    }
    acc = warp_max(acc);                                    // %1 reduce_max  softmax
    if (lane == 0) {
      store(t1, row, acc);                                  // %1 reduce_max  softmax
    }
  }
}

// softmax_softmax_1: softmax, %5 reduce_sum: results 1024, row_warp over 1000 each
FUSE_KERNEL(128) softmax_softmax_1(global<const float> x, global<const float> t1, global<float> t5) {
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = 4 * b + warp;
  if (row < 1024) {
    float acc = 0.0f;                                       // %5 reduce_sum  softmax
    for (int c = lane; c < 1000; c += 32) {
      const float v0 = load(x, c + 1000 * row);             // %x input
      const float v1 = load(t1, row);                       // %1 reduce_max  softmax
      const float v3 = v0 - v1;                             // %3 sub  softmax
      const float v4 = expf(v3);                            // %4 exp  softmax
      acc = acc + v4;                                       // %5 reduce_sum  softmax
    }
    acc = warp_sum(acc);                                    // %5 reduce_sum  softmax
    if (lane == 0) {
      store(t5, row, acc);                                  // %5 reduce_sum  softmax
    }
  }
}

// softmax_softmax_2: softmax, %7 div: results 1024000
FUSE_KERNEL(256) softmax_softmax_2(global<const float> x, global<const float> t1, global<const float> t5, global<float> t7) {
  const int b = blockIdx.x;
  const int t = threadIdx.x;
  const int i = 256 * b + t;
  const int i_div_1000 = i / 1000;
  if (i < 1024000) {
    const float v0 = load(x, i);                            // %x input
    const float v1 = load(t1, i_div_1000);                  // %1 reduce_max  softmax
    const float v3 = v0 - v1;                               // %3 sub  softmax
    const float v4 = expf(v3);                              // %4 exp  softmax
    const float v5 = load(t5, i_div_1000);                  // %5 reduce_sum  softmax
    const float v7 = divide(v4, v5);                        // %7 div  softmax
    store(t7, i, v7);                                       // %7 div  softmax
  }
}

