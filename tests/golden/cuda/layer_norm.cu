// uses FUSE_KERNEL bf16 block_barrier divide global kernel load load_vector local shared store store_vector to_bf16 to_f32 warp_sum

// layer_norm_layer_norm_0: layer_norm, %4 reduce_sum | %10 reduce_sum | %21 convert: results B, row_block over 768 each
FUSE_KERNEL(64, 16) layer_norm_layer_norm_0(global<const bf16> x, global<const float> gamma, global<const float> beta, global<bf16> t21) {
  FUSE_LOCAL(float, 16, h3);
  FUSE_LOCAL(float, 16, h8);
  FUSE_SHARED(float, 2, shared_acc);
  FUSE_SHARED(float, 2, shared_acc_1);
  FUSE_LOCAL(bf16, 8, x_v);
  FUSE_LOCAL(float, 8, gamma_v);
  FUSE_LOCAL(float, 8, beta_v);
  FUSE_LOCAL(bf16, 8, t21_v);
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = 0.0f;                                         // %4 reduce_sum  layer_norm.mean
  #pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int g = 64 * k + lane + 32 * warp;
    if (g < 96) {
      load_vector(x_v, x, 8 * g + 768 * row);               // %x input
      #pragma unroll
      for (int v = 0; v < 8; ++v) {
        const bf16 v0 = load(x_v, v);                       // %x input
        const float v3 = to_f32(v0);                        // %3 convert  layer_norm
        acc = acc + v3;                                     // %4 reduce_sum  layer_norm.mean
        store(h3, 8 * k + v, v3);                           // %3 convert  layer_norm
      }
    }
  }
  acc = warp_sum(acc);                                      // %4 reduce_sum  layer_norm.mean
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %4 reduce_sum  layer_norm.mean
  }
  block_barrier();                                          // %4 reduce_sum  layer_norm.mean
  float total = 0.0f;                                       // %4 reduce_sum  layer_norm.mean
  if (lane < 2) {
    const float v4 = load(shared_acc, lane);                // %4 reduce_sum  layer_norm.mean
    total = total + v4;                                     // %4 reduce_sum  layer_norm.mean
  }
  total = warp_sum(total);                                  // %4 reduce_sum  layer_norm.mean
  float acc_1 = 0.0f;                                       // %10 reduce_sum  layer_norm.var
  const float v5 = 768.0f;                                  // %5 constant  layer_norm.mean
  const float v6 = divide(total, v5);                       // %6 div  layer_norm.mean
  #pragma unroll
  for (int k_1 = 0; k_1 < 2; ++k_1) {
    const int g_1 = 64 * k_1 + lane + 32 * warp;
    if (g_1 < 96) {
      #pragma unroll
      for (int v_1 = 0; v_1 < 8; ++v_1) {
        const float v3_1 = load(h3, 8 * k_1 + v_1);         // %3 convert  layer_norm
        const float v8 = v3_1 - v6;                         // %8 sub  layer_norm.mean
        const float v9 = v8 * v8;                           // %9 mul  layer_norm.var
        acc_1 = acc_1 + v9;                                 // %10 reduce_sum  layer_norm.var
        store(h8, 8 * k_1 + v_1, v8);                       // %8 sub  layer_norm.mean
      }
    }
  }
  acc_1 = warp_sum(acc_1);                                  // %10 reduce_sum  layer_norm.var
  if (lane == 0) {
    store(shared_acc_1, warp, acc_1);                       // %10 reduce_sum  layer_norm.var
  }
  block_barrier();                                          // %10 reduce_sum  layer_norm.var
  float total_1 = 0.0f;                                     // %10 reduce_sum  layer_norm.var
  if (lane < 2) {
    const float v10 = load(shared_acc_1, lane);             // %10 reduce_sum  layer_norm.var
    total_1 = total_1 + v10;                                // %10 reduce_sum  layer_norm.var
  }
  total_1 = warp_sum(total_1);                              // %10 reduce_sum  layer_norm.var
  const float v11 = divide(total_1, v5);                    // %11 div  layer_norm.var
  const float v12 = 1e-05f;                                 // %12 constant  layer_norm.var
  const float v13 = v11 + v12;                              // %13 add  layer_norm.var
  const float v14 = rsqrtf(v13);                            // %14 rsqrt  layer_norm.var
  #pragma unroll
  for (int k_2 = 0; k_2 < 2; ++k_2) {
    const int g_2 = 64 * k_2 + lane + 32 * warp;
    if (g_2 < 96) {
      load_vector(gamma_v, gamma, 8 * g_2);                 // %gamma parameter
      load_vector(beta_v, beta, 8 * g_2);                   // %beta parameter
      #pragma unroll
      for (int v_2 = 0; v_2 < 8; ++v_2) {
        const float v8_1 = load(h8, 8 * k_2 + v_2);         // %8 sub  layer_norm.mean
        const float v16 = v8_1 * v14;                       // %16 mul  layer_norm
        const float v1 = load(gamma_v, v_2);                // %gamma parameter
        const float v18 = v16 * v1;                         // %18 mul  layer_norm
        const float v2 = load(beta_v, v_2);                 // %beta parameter
        const float v20 = v18 + v2;                         // %20 add  layer_norm
        const bf16 v21 = to_bf16(v20);                      // %21 convert  layer_norm
        store(t21_v, v_2, v21);                             // %21 convert  layer_norm
      }
      store_vector(t21, 8 * g_2 + 768 * row, t21_v);        // %21 convert  layer_norm
    }
  }
}

