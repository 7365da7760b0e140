// uses FUSE_KERNEL block_barrier global kernel load load_vector local shared shuffle_xor store warp_sum

// full_reduce_sum_0: %1 reduce_sum: results 1 of N each, by r:grid c:serial c:grid264 c:warp8 c:lane32 c:vector4
FUSE_KERNEL(256, 2) full_reduce_sum_0(global<const float> x, global<float> part, int N) {
  FUSE_SHARED(float, 8, shared_acc);
  FUSE_LOCAL(float, 4, x_v);
  const int g = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int lane_mod_8 = lane % 8;
  if (N % 4 == 0) {
    const int N_over4 = N / 4;
    float acc = 0.0f;                                       // %1 reduce_sum
    for (int g_1 = 256 * g + lane + 32 * warp; g_1 < N_over4; g_1 += 67584) {
      load_vector(x_v, x, 4 * g_1);                         // %x input
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float v0 = load(x_v, v);                      // %x input
        acc = acc + v0;                                     // %1 reduce_sum
      }
    }
    acc = warp_sum(acc);                                    // %1 reduce_sum
    if (lane == 0) {
      store(shared_acc, warp, acc);                         // %1 reduce_sum
    }
    block_barrier();                                        // %1 reduce_sum
    const float v1 = load(shared_acc, lane_mod_8);          // %1 reduce_sum
    float total = v1;                                       // %1 reduce_sum
    #pragma unroll
    for (int d = 4; d > 0; d >>= 1) {
      const float other0 = shuffle_xor(total, d);           // %1 reduce_sum
      const float combined = total + other0;                // %1 reduce_sum
      total = combined;                                     // %1 reduce_sum
    }
    if (warp == 0 && lane == 0) {
      store(part, g, total);                                // %1 reduce_sum
    }
  }
  if (0 < N % 4) {
    float acc_1 = 0.0f;                                     // %1 reduce_sum
    for (int c = 256 * g + lane + 32 * warp; c < N; c += 67584) {
      const float v0_1 = load(x, c);                        // %x input
      acc_1 = acc_1 + v0_1;                                 // %1 reduce_sum
    }
    acc_1 = warp_sum(acc_1);                                // %1 reduce_sum
    if (lane == 0) {
      store(shared_acc, warp, acc_1);                       // %1 reduce_sum
    }
    block_barrier();                                        // %1 reduce_sum
    const float v1_1 = load(shared_acc, lane_mod_8);        // %1 reduce_sum
    float total_1 = v1_1;                                   // %1 reduce_sum
    #pragma unroll
    for (int d = 4; d > 0; d >>= 1) {
      const float other0 = shuffle_xor(total_1, d);         // %1 reduce_sum
      const float combined_1 = total_1 + other0;            // %1 reduce_sum
      total_1 = combined_1;                                 // %1 reduce_sum
    }
    if (warp == 0 && lane == 0) {
      store(part, g, total_1);                              // %1 reduce_sum
    }
  }
}

// full_reduce_sum_1: %1 reduce_sum: results 1 of 264 each, by r:grid p:serial p:warp8 p:lane32
FUSE_KERNEL(256, 1) full_reduce_sum_1(global<const float> part, global<float> t1) {
  FUSE_SHARED(float, 8, shared_acc);
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = 0.0f;                                         // %1 reduce_sum
  for (int c = lane + 32 * warp; c < 264; c += 256) {
    const float v1 = load(part, c + 264 * row);             // %1 reduce_sum
    acc = acc + v1;                                         // %1 reduce_sum
  }
  acc = warp_sum(acc);                                      // %1 reduce_sum
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %1 reduce_sum
  }
  block_barrier();                                          // %1 reduce_sum
  const float v1_1 = load(shared_acc, lane % 8);            // %1 reduce_sum
  float total = v1_1;                                       // %1 reduce_sum
  #pragma unroll
  for (int d = 4; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total, d);             // %1 reduce_sum
    const float combined = total + other0;                  // %1 reduce_sum
    total = combined;                                       // %1 reduce_sum
  }
  if (warp == 0 && lane == 0) {
    store(t1, row, total);                                  // %1 reduce_sum
  }
}

