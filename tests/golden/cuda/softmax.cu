// uses FUSE_KERNEL block_barrier divide_vector divisor_reciprocal global infinity_f32 kernel load load_vector local maximum shared shuffle_xor store store_vector warp_max warp_sum

// softmax_softmax_0: softmax, %1 reduce_max | %5 reduce_sum | %7 div: results 1024 of 1000 each, by r:grid c:serial c:warp4 c:lane32 c:vector4
FUSE_KERNEL(128, 8) softmax_softmax_0(global<const float> x, global<float> t7) {
  FUSE_LOCAL(float, 8, hx);
  FUSE_LOCAL(float, 8, h4);
  FUSE_SHARED(float, 4, shared_acc);
  FUSE_SHARED(float, 4, shared_acc_1);
  FUSE_LOCAL(float, 4, x_v);
  FUSE_LOCAL(float, 4, t7_v);
  FUSE_LOCAL(float, 4, v7_n);
  FUSE_LOCAL(float, 4, v7_q);
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = -infinity_f32();                              // %1 reduce_max  softmax
  #pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int g = 128 * k + lane + 32 * warp;
    if (g < 250) {
      load_vector(x_v, x, 4 * g + 1000 * row);              // %x input
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float v0 = load(x_v, v);                      // %x input
        acc = maximum(acc, v0);                             // %1 reduce_max  softmax
        store(hx, 4 * k + v, v0);                           // %x input
      }
    }
  }
  acc = warp_max(acc);                                      // %1 reduce_max  softmax
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %1 reduce_max  softmax
  }
  block_barrier();                                          // %1 reduce_max  softmax
  const int lane_mod_4 = lane % 4;
  const float v1 = load(shared_acc, lane_mod_4);            // %1 reduce_max  softmax
  float total = v1;                                         // %1 reduce_max  softmax
  #pragma unroll
  for (int d = 2; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total, d);             // %1 reduce_max  softmax
    const float combined = maximum(total, other0);          // %1 reduce_max  softmax
    total = combined;                                       // %1 reduce_max  softmax
  }
  float acc_1 = 0.0f;                                       // %5 reduce_sum  softmax
  #pragma unroll
  for (int k_1 = 0; k_1 < 2; ++k_1) {
    const int g_1 = 128 * k_1 + lane + 32 * warp;
    if (g_1 < 250) {
      #pragma unroll
      for (int v_1 = 0; v_1 < 4; ++v_1) {
        const float v0_1 = load(hx, 4 * k_1 + v_1);         // %x input
        const float v3 = v0_1 - total;                      // %3 sub  softmax
        const float v4 = expf(v3);                          // %4 exp  softmax
        acc_1 = acc_1 + v4;                                 // %5 reduce_sum  softmax
        store(h4, 4 * k_1 + v_1, v4);                       // %4 exp  softmax
      }
    }
  }
  acc_1 = warp_sum(acc_1);                                  // %5 reduce_sum  softmax
  if (lane == 0) {
    store(shared_acc_1, warp, acc_1);                       // %5 reduce_sum  softmax
  }
  block_barrier();                                          // %5 reduce_sum  softmax
  const float v5 = load(shared_acc_1, lane_mod_4);          // %5 reduce_sum  softmax
  float total_1 = v5;                                       // %5 reduce_sum  softmax
  #pragma unroll
  for (int d = 2; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total_1, d);           // %5 reduce_sum  softmax
    const float combined_1 = total_1 + other0;              // %5 reduce_sum  softmax
    total_1 = combined_1;                                   // %5 reduce_sum  softmax
  }
  const float total_1_r = divisor_reciprocal(total_1);      // %7 div  softmax
  #pragma unroll
  for (int k_2 = 0; k_2 < 2; ++k_2) {
    const int g_2 = 128 * k_2 + lane + 32 * warp;
    if (g_2 < 250) {
      #pragma unroll
      for (int v_2 = 0; v_2 < 4; ++v_2) {
        const float v4_1 = load(h4, 4 * k_2 + v_2);         // %4 exp  softmax
        store(v7_n, v_2, v4_1);                             // %7 div  softmax
      }
      divide_vector(v7_q, v7_n, total_1, total_1_r);        // %7 div  softmax
      #pragma unroll
      for (int v_2_1 = 0; v_2_1 < 4; ++v_2_1) {
        const float v7 = load(v7_q, v_2_1);                 // %7 div  softmax
        store(t7_v, v_2_1, v7);                             // %7 div  softmax
      }
      store_vector(t7, 4 * g_2 + 1000 * row, t7_v);         // %7 div  softmax
    }
  }
}

