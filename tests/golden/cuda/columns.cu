// uses FUSE_KERNEL block_barrier global group_barrier kernel load load_vector local shared shuffle_xor store

// columns_block_0_bias_gradient_0: block.0.bias gradient, %1 reduce_sum: results 256 of 4096 each, by r:grid c:serial c:grid32 c:warp8 c:lane4 r:lane8 r:vector4
FUSE_KERNEL(256, 2) columns_block_0_bias_gradient_0(global<const float> dy, global<float> part) {
  FUSE_LOCAL(float, 4, row_acc);
  FUSE_SHARED(float, 64, shared_acc);
  FUSE_SHARED(float, 64, shared_acc_1);
  FUSE_SHARED(float, 64, shared_acc_2);
  FUSE_SHARED(float, 64, shared_acc_3);
  FUSE_LOCAL(float, 4, dy_v);
  const int b = blockIdx.x;
  const int b_mod_32 = b % 32;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int lane_mod_8 = lane % 8;
  const int row = lane_mod_8 + 8 * (b / 32);
  const float v1 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int v = 0; v < 4; ++v) {
    store(row_acc, v, v1);                                  // %1 reduce_sum  block.0.bias gradient
  }
  for (int c = 32 * b_mod_32 + 4 * warp + lane / 8; c < 4096; c += 1024) {
    load_vector(dy_v, dy, 256 * c + 4 * row);               // %dy input  block.0.bias gradient
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      const float v0 = load(dy_v, v_1);                     // %dy input  block.0.bias gradient
      const float v1_1 = load(row_acc, v_1);                // %1 reduce_sum  block.0.bias gradient
      float acc = v1_1;                                     // %1 reduce_sum  block.0.bias gradient
      acc = acc + v0;                                       // %1 reduce_sum  block.0.bias gradient
      store(row_acc, v_1, acc);                             // %1 reduce_sum  block.0.bias gradient
    }
  }
  const float v1_2 = load(row_acc, 0);                      // %1 reduce_sum  block.0.bias gradient
  float acc_1 = v1_2;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_3 = load(row_acc, 1);                      // %1 reduce_sum  block.0.bias gradient
  float acc_2 = v1_3;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_4 = load(row_acc, 2);                      // %1 reduce_sum  block.0.bias gradient
  float acc_3 = v1_4;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_5 = load(row_acc, 3);                      // %1 reduce_sum  block.0.bias gradient
  float acc_4 = v1_5;                                       // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_1, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_1 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_1 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_2, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_2 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_2 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_3, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_3 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_3 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_4, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_4 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_4 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  if (lane < 8) {
    store(shared_acc, lane + 8 * warp, acc_1);              // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_1, lane + 8 * warp, acc_2);            // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_2, lane + 8 * warp, acc_3);            // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_3, lane + 8 * warp, acc_4);            // %1 reduce_sum  block.0.bias gradient
  }
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total = 0.0f;                                       // %1 reduce_sum  block.0.bias gradient
  float total_1 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_2 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_3 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  for (int w = 0; w < 8; ++w) {
    const float v1_6 = load(shared_acc, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total = total + v1_6;                                   // %1 reduce_sum  block.0.bias gradient
    const float v1_7 = load(shared_acc_1, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_1 = total_1 + v1_7;                               // %1 reduce_sum  block.0.bias gradient
    const float v1_8 = load(shared_acc_2, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_2 = total_2 + v1_8;                               // %1 reduce_sum  block.0.bias gradient
    const float v1_9 = load(shared_acc_3, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_3 = total_3 + v1_9;                               // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, b_mod_32 + 128 * row, total);               // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, b_mod_32 + 128 * row + 32, total_1);        // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, b_mod_32 + 128 * row + 64, total_2);        // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, b_mod_32 + 128 * row + 96, total_3);        // %1 reduce_sum  block.0.bias gradient
  }
}

// columns_block_0_bias_gradient_1: block.0.bias gradient, %1 reduce_sum: results 256 of 32 each, by r:grid p:serial p:warp8 p:lane4 r:lane8
FUSE_KERNEL(256, 1) columns_block_0_bias_gradient_1(global<const float> part, global<float> t1) {
  FUSE_SHARED(float, 64, shared_acc);
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int lane_mod_8 = lane % 8;
  const int column = 8 * b + lane_mod_8;
  float acc = 0.0f;                                         // %1 reduce_sum  block.0.bias gradient
  for (int c = 4 * warp + lane / 8; c < 32; c += 32) {
    const float v1 = load(part, c + 32 * column);           // %1 reduce_sum  block.0.bias gradient
    acc = acc + v1;                                         // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc, d);               // %1 reduce_sum  block.0.bias gradient
    const float combined = acc + other0;                    // %1 reduce_sum  block.0.bias gradient
    acc = combined;                                         // %1 reduce_sum  block.0.bias gradient
  }
  if (lane < 8) {
    store(shared_acc, lane + 8 * warp, acc);                // %1 reduce_sum  block.0.bias gradient
  }
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total = 0.0f;                                       // %1 reduce_sum  block.0.bias gradient
  for (int w = 0; w < 8; ++w) {
    const float v1_1 = load(shared_acc, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total = total + v1_1;                                   // %1 reduce_sum  block.0.bias gradient
  }
  if (4 * warp + lane / 8 == 0) {
    store(t1, column, total);                               // %1 reduce_sum  block.0.bias gradient
  }
}

// columns_block_0_bias_gradient_2: block.0.bias gradient, %1 reduce_sum: results 256 of 4096 each, by r:grid c:serial c:grid32 c:warp8 c:lane4 r:lane8 r:vector4; one kernel with what combines them
FUSE_KERNEL(256, 2) columns_block_0_bias_gradient_2(global<const float> dy, global<float> part, global<int> barrier, global<float> t1) {
  FUSE_LOCAL(float, 4, row_acc);
  FUSE_SHARED(float, 64, shared_acc);
  FUSE_SHARED(float, 64, shared_acc_1);
  FUSE_SHARED(float, 64, shared_acc_2);
  FUSE_SHARED(float, 64, shared_acc_3);
  FUSE_LOCAL(float, 4, dy_v);
  const int g = blockIdx.x;
  const int g_mod_32 = g % 32;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int lane_mod_8 = lane % 8;
  const int row = lane_mod_8 + 8 * (g / 32);
  const float v1 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int v = 0; v < 4; ++v) {
    store(row_acc, v, v1);                                  // %1 reduce_sum  block.0.bias gradient
  }
  const int lane_div_8 = lane / 8;
  for (int c = 32 * g_mod_32 + lane_div_8 + 4 * warp; c < 4096; c += 1024) {
    load_vector(dy_v, dy, 256 * c + 4 * row);               // %dy input  block.0.bias gradient
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      const float v0 = load(dy_v, v_1);                     // %dy input  block.0.bias gradient
      const float v1_1 = load(row_acc, v_1);                // %1 reduce_sum  block.0.bias gradient
      float acc = v1_1;                                     // %1 reduce_sum  block.0.bias gradient
      acc = acc + v0;                                       // %1 reduce_sum  block.0.bias gradient
      store(row_acc, v_1, acc);                             // %1 reduce_sum  block.0.bias gradient
    }
  }
  const float v1_2 = load(row_acc, 0);                      // %1 reduce_sum  block.0.bias gradient
  float acc_1 = v1_2;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_3 = load(row_acc, 1);                      // %1 reduce_sum  block.0.bias gradient
  float acc_2 = v1_3;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_4 = load(row_acc, 2);                      // %1 reduce_sum  block.0.bias gradient
  float acc_3 = v1_4;                                       // %1 reduce_sum  block.0.bias gradient
  const float v1_5 = load(row_acc, 3);                      // %1 reduce_sum  block.0.bias gradient
  float acc_4 = v1_5;                                       // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_1, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_1 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_1 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_2, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_2 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_2 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_3, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_3 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_3 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_4, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined = acc_4 + other0;                  // %1 reduce_sum  block.0.bias gradient
    acc_4 = combined;                                       // %1 reduce_sum  block.0.bias gradient
  }
  if (lane < 8) {
    store(shared_acc, lane + 8 * warp, acc_1);              // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_1, lane + 8 * warp, acc_2);            // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_2, lane + 8 * warp, acc_3);            // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_3, lane + 8 * warp, acc_4);            // %1 reduce_sum  block.0.bias gradient
  }
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total = 0.0f;                                       // %1 reduce_sum  block.0.bias gradient
  float total_1 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_2 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_3 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  for (int w = 0; w < 8; ++w) {
    const float v1_6 = load(shared_acc, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total = total + v1_6;                                   // %1 reduce_sum  block.0.bias gradient
    const float v1_7 = load(shared_acc_1, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_1 = total_1 + v1_7;                               // %1 reduce_sum  block.0.bias gradient
    const float v1_8 = load(shared_acc_2, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_2 = total_2 + v1_8;                               // %1 reduce_sum  block.0.bias gradient
    const float v1_9 = load(shared_acc_3, lane_mod_8 + 8 * w);  // %1 reduce_sum  block.0.bias gradient
    total_3 = total_3 + v1_9;                               // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, g_mod_32 + 128 * row, total);               // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, g_mod_32 + 128 * row + 32, total_1);        // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, g_mod_32 + 128 * row + 64, total_2);        // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0 && lane / 8 == 0) {
    store(part, g_mod_32 + 128 * row + 96, total_3);        // %1 reduce_sum  block.0.bias gradient
  }
  group_barrier(barrier, 1, 32);                            // %1 reduce_sum  block.0.bias gradient
  float total_4 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_5 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_6 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_7 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  if (g % 32 == 0) {
    for (int p = lane_div_8 + 4 * warp; p < 32; p += 32) {
      const float v1_10 = load(part, p + 128 * row);        // %1 reduce_sum  block.0.bias gradient
      total_4 = total_4 + v1_10;                            // %1 reduce_sum  block.0.bias gradient
      const float v1_11 = load(part, p + 128 * row + 32);   // %1 reduce_sum  block.0.bias gradient
      total_5 = total_5 + v1_11;                            // %1 reduce_sum  block.0.bias gradient
      const float v1_12 = load(part, p + 128 * row + 64);   // %1 reduce_sum  block.0.bias gradient
      total_6 = total_6 + v1_12;                            // %1 reduce_sum  block.0.bias gradient
      const float v1_13 = load(part, p + 128 * row + 96);   // %1 reduce_sum  block.0.bias gradient
      total_7 = total_7 + v1_13;                            // %1 reduce_sum  block.0.bias gradient
    }
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(total_4, d);           // %1 reduce_sum  block.0.bias gradient
    const float combined_1 = total_4 + other0;              // %1 reduce_sum  block.0.bias gradient
    total_4 = combined_1;                                   // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(total_5, d);           // %1 reduce_sum  block.0.bias gradient
    const float combined_2 = total_5 + other0;              // %1 reduce_sum  block.0.bias gradient
    total_5 = combined_2;                                   // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(total_6, d);           // %1 reduce_sum  block.0.bias gradient
    const float combined_3 = total_6 + other0;              // %1 reduce_sum  block.0.bias gradient
    total_6 = combined_3;                                   // %1 reduce_sum  block.0.bias gradient
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(total_7, d);           // %1 reduce_sum  block.0.bias gradient
    const float combined_4 = total_7 + other0;              // %1 reduce_sum  block.0.bias gradient
    total_7 = combined_4;                                   // %1 reduce_sum  block.0.bias gradient
  }
  if (lane < 8) {
    store(shared_acc, lane + 8 * warp, total_4);            // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_1, lane + 8 * warp, total_5);          // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_2, lane + 8 * warp, total_6);          // %1 reduce_sum  block.0.bias gradient
    store(shared_acc_3, lane + 8 * warp, total_7);          // %1 reduce_sum  block.0.bias gradient
  }
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total_8 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_9 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  float total_10 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  float total_11 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  for (int w_1 = 0; w_1 < 8; ++w_1) {
    const float v1_14 = load(shared_acc, lane_mod_8 + 8 * w_1);  // %1 reduce_sum  block.0.bias gradient
    total_8 = total_8 + v1_14;                              // %1 reduce_sum  block.0.bias gradient
    const float v1_15 = load(shared_acc_1, lane_mod_8 + 8 * w_1);  // %1 reduce_sum  block.0.bias gradient
    total_9 = total_9 + v1_15;                              // %1 reduce_sum  block.0.bias gradient
    const float v1_16 = load(shared_acc_2, lane_mod_8 + 8 * w_1);  // %1 reduce_sum  block.0.bias gradient
    total_10 = total_10 + v1_16;                            // %1 reduce_sum  block.0.bias gradient
    const float v1_17 = load(shared_acc_3, lane_mod_8 + 8 * w_1);  // %1 reduce_sum  block.0.bias gradient
    total_11 = total_11 + v1_17;                            // %1 reduce_sum  block.0.bias gradient
  }
  if (g % 32 == 0 && warp == 0 && lane / 8 == 0) {
    store(t1, 4 * row, total_8);                            // %1 reduce_sum  block.0.bias gradient
  }
  if (g % 32 == 0 && warp == 0 && lane / 8 == 0) {
    store(t1, 4 * row + 1, total_9);                        // %1 reduce_sum  block.0.bias gradient
  }
  if (g % 32 == 0 && warp == 0 && lane / 8 == 0) {
    store(t1, 4 * row + 2, total_10);                       // %1 reduce_sum  block.0.bias gradient
  }
  if (g % 32 == 0 && warp == 0 && lane / 8 == 0) {
    store(t1, 4 * row + 3, total_11);                       // %1 reduce_sum  block.0.bias gradient
  }
}

