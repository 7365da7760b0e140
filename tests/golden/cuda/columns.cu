// uses FUSE_KERNEL block_barrier global grid_barrier kernel load load_vector local shared shuffle_xor store

// columns_block_0_bias_gradient_0: block.0.bias gradient, %1 reduce_sum: results 4096, row_warp over 256 each
FUSE_KERNEL(256, 1) columns_block_0_bias_gradient_0(global<const float> dy, global<float> part) {
  FUSE_LOCAL(float, 8, col1);
  FUSE_SHARED(float, 256, shared_acc);
  FUSE_LOCAL(float, 4, dy_v);
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const float v1 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    store(col1, k, v1);                                     // %1 reduce_sum  block.0.bias gradient
  }
  for (int row = 8 * b + warp; row < 4096; row += 1056) {
    #pragma unroll
    for (int k_1 = 0; k_1 < 2; ++k_1) {
      const int g = 32 * k_1 + lane;
      load_vector(dy_v, dy, 4 * g + 256 * row);             // %dy input  block.0.bias gradient
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float v0 = load(dy_v, v);                     // %dy input  block.0.bias gradient
        const float v1_1 = load(col1, 4 * k_1 + v);         // %1 reduce_sum  block.0.bias gradient
        float acc = v1_1;                                   // %1 reduce_sum  block.0.bias gradient
        acc = acc + v0;                                     // %1 reduce_sum  block.0.bias gradient
        store(col1, 4 * k_1 + v, acc);                      // %1 reduce_sum  block.0.bias gradient
      }
    }
  }
  #pragma unroll
  for (int k_2 = 0; k_2 < 2; ++k_2) {
    const int g_1 = 32 * k_2 + lane;
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      const float v1_2 = load(col1, 4 * k_2 + v_1);         // %1 reduce_sum  block.0.bias gradient
      store(shared_acc, lane + 32 * warp, v1_2);            // %1 reduce_sum  block.0.bias gradient
      block_barrier();                                      // %1 reduce_sum  block.0.bias gradient
      if (warp == 0) {
        float total = 0.0f;                                 // %1 reduce_sum  block.0.bias gradient
        for (int w = 0; w < 8; ++w) {
          const float v1_3 = load(shared_acc, lane + 32 * w);  // %1 reduce_sum  block.0.bias gradient
          total = total + v1_3;                             // %1 reduce_sum  block.0.bias gradient
        }
        store(part, 256 * b + 4 * g_1 + v_1, total);        // %1 reduce_sum  block.0.bias gradient
      }
      block_barrier();                                      // %1 reduce_sum  block.0.bias gradient
    }
  }
}

// columns_block_0_bias_gradient_1: block.0.bias gradient, %1 reduce_sum: results 256, column_tile over 132 each
FUSE_KERNEL(256, 1) columns_block_0_bias_gradient_1(global<const float> part, global<float> t1) {
  FUSE_SHARED(float, 64, shared_acc);
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int lane_mod_8 = lane % 8;
  const int column = 8 * b + lane_mod_8;
  float acc = 0.0f;                                         // %1 reduce_sum  block.0.bias gradient
  for (int c = 4 * warp + lane / 8; c < 132; c += 32) {
    const float v1 = load(part, 256 * c + column);          // %1 reduce_sum  block.0.bias gradient
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

// columns_block_0_bias_gradient_2: block.0.bias gradient, %1 reduce_sum: results 4096, row_warp over 256 each; one kernel with what combines them
FUSE_KERNEL(256, 1) columns_block_0_bias_gradient_2(global<const float> dy, global<float> part, global<int> barrier, global<float> t1) {
  FUSE_LOCAL(float, 8, col1);
  FUSE_SHARED(float, 256, shared_acc);
  FUSE_LOCAL(float, 4, dy_v);
  const int g = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const float v1 = 0.0f;                                    // %1 reduce_sum  block.0.bias gradient
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    store(col1, k, v1);                                     // %1 reduce_sum  block.0.bias gradient
  }
  for (int row = 8 * g + warp; row < 4096; row += 1056) {
    #pragma unroll
    for (int k_1 = 0; k_1 < 2; ++k_1) {
      const int g_1 = 32 * k_1 + lane;
      load_vector(dy_v, dy, 4 * g_1 + 256 * row);           // %dy input  block.0.bias gradient
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float v0 = load(dy_v, v);                     // %dy input  block.0.bias gradient
        const float v1_1 = load(col1, 4 * k_1 + v);         // %1 reduce_sum  block.0.bias gradient
        float acc = v1_1;                                   // %1 reduce_sum  block.0.bias gradient
        acc = acc + v0;                                     // %1 reduce_sum  block.0.bias gradient
        store(col1, 4 * k_1 + v, acc);                      // %1 reduce_sum  block.0.bias gradient
      }
    }
  }
  #pragma unroll
  for (int k_2 = 0; k_2 < 2; ++k_2) {
    const int g_2 = 32 * k_2 + lane;
    #pragma unroll
    for (int v_1 = 0; v_1 < 4; ++v_1) {
      const float v1_2 = load(col1, 4 * k_2 + v_1);         // %1 reduce_sum  block.0.bias gradient
      store(shared_acc, lane + 32 * warp, v1_2);            // %1 reduce_sum  block.0.bias gradient
      block_barrier();                                      // %1 reduce_sum  block.0.bias gradient
      if (warp == 0) {
        float total = 0.0f;                                 // %1 reduce_sum  block.0.bias gradient
        for (int w = 0; w < 8; ++w) {
          const float v1_3 = load(shared_acc, lane + 32 * w);  // %1 reduce_sum  block.0.bias gradient
          total = total + v1_3;                             // %1 reduce_sum  block.0.bias gradient
        }
        store(part, 256 * g + 4 * g_2 + v_1, total);        // %1 reduce_sum  block.0.bias gradient
      }
      block_barrier();                                      // %1 reduce_sum  block.0.bias gradient
    }
  }
  grid_barrier(barrier);                                    // %1 reduce_sum  block.0.bias gradient
  const int lane_mod_8 = lane % 8;
  const int column = 8 * g + lane_mod_8;
  float acc_1 = 0.0f;                                       // %1 reduce_sum  block.0.bias gradient
  if (column < 256) {
    for (int c = 4 * warp + lane / 8; c < 132; c += 32) {
      const float v1_4 = load(part, 256 * c + column);      // %1 reduce_sum  block.0.bias gradient
      acc_1 = acc_1 + v1_4;                                 // %1 reduce_sum  block.0.bias gradient
    }
  }
  #pragma unroll
  for (int d = 16; d > 4; d >>= 1) {
    const float other0 = shuffle_xor(acc_1, d);             // %1 reduce_sum  block.0.bias gradient
    const float combined_1 = acc_1 + other0;                // %1 reduce_sum  block.0.bias gradient
    acc_1 = combined_1;                                     // %1 reduce_sum  block.0.bias gradient
  }
  if (lane < 8) {
    store(shared_acc, lane + 8 * warp, acc_1);              // %1 reduce_sum  block.0.bias gradient
  }
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total_1 = 0.0f;                                     // %1 reduce_sum  block.0.bias gradient
  for (int w_1 = 0; w_1 < 8; ++w_1) {
    const float v1_5 = load(shared_acc, lane_mod_8 + 8 * w_1);  // %1 reduce_sum  block.0.bias gradient
    total_1 = total_1 + v1_5;                               // %1 reduce_sum  block.0.bias gradient
  }
  if (4 * warp + lane / 8 == 0 && column < 256) {
    store(t1, column, total_1);                             // %1 reduce_sum  block.0.bias gradient
  }
}

