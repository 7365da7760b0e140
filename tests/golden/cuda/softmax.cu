// uses FUSE_KERNEL block_barrier divide global infinity_f32 kernel load local maximum shared store warp_max warp_sum

// softmax_softmax_0: softmax, %1 reduce_max | %5 reduce_sum | %7 div: results 1024, row_block over 1000 each
FUSE_KERNEL(256) softmax_softmax_0(global<const float> x, global<float> t7) {
  FUSE_LOCAL(float, 4, hx);
  FUSE_LOCAL(float, 4, h4);
  FUSE_SHARED(float, 8, shared_acc);
  FUSE_SHARED(float, 8, shared_acc_1);
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = -infinity_f32();                              // %1 reduce_max  softmax
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int c = 256 * k + lane + 32 * warp;
    if (c < 1000) {
      const float v0 = load(x, c + 1000 * row);             // %x input
      acc = maximum(acc, v0);                               // %1 reduce_max  softmax
      store(hx, k, v0);                                     // %x input
    }
  }
  acc = warp_max(acc);                                      // %1 reduce_max  softmax
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %1 reduce_max  softmax
  }
  block_barrier();                                          // %1 reduce_max  softmax
  float total = -infinity_f32();                            // %1 reduce_max  softmax
  if (lane < 8) {
    const float v1 = load(shared_acc, lane);                // %1 reduce_max  softmax
    total = maximum(total, v1);                             // %1 reduce_max  softmax
  }
  total = warp_max(total);                                  // %1 reduce_max  softmax
  float acc_1 = 0.0f;                                       // %5 reduce_sum  softmax
  #pragma unroll
  for (int k_1 = 0; k_1 < 4; ++k_1) {
    const int c_1 = 256 * k_1 + lane + 32 * warp;
    if (c_1 < 1000) {
      const float v0_1 = load(hx, k_1);                     // %x input
      const float v3 = v0_1 - total;                        // %3 sub  softmax
      const float v4 = expf(v3);                            // %4 exp  softmax
      acc_1 = acc_1 + v4;                                   // %5 reduce_sum  softmax
      store(h4, k_1, v4);                                   // %4 exp  softmax
    }
  }
  acc_1 = warp_sum(acc_1);                                  // %5 reduce_sum  softmax
  if (lane == 0) {
    store(shared_acc_1, warp, acc_1);                       // %5 reduce_sum  softmax
  }
  block_barrier();                                          // %5 reduce_sum  softmax
  float total_1 = 0.0f;                                     // %5 reduce_sum  softmax
  if (lane < 8) {
    const float v5 = load(shared_acc_1, lane);              // %5 reduce_sum  softmax
    total_1 = total_1 + v5;                                 // %5 reduce_sum  softmax
  }
  total_1 = warp_sum(total_1);                              // %5 reduce_sum  softmax
  #pragma unroll
  for (int k_2 = 0; k_2 < 4; ++k_2) {
    const int c_2 = 256 * k_2 + lane + 32 * warp;
    if (c_2 < 1000) {
      const float v4_1 = load(h4, k_2);                     // %4 exp  softmax
      const float v7 = divide(v4_1, total_1);               // %7 div  softmax
      store(t7, c_2 + 1000 * row, v7);                      // %7 div  softmax
    }
  }
}

