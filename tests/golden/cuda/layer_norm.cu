// uses FUSE_KERNEL bf16 block_barrier divide first_f32 global kernel load load_pair load_vector local pair pair_of second_f32 shared shuffle_xor store store_pair store_vector warp_sum

// layer_norm_layer_norm_0: layer_norm, %4 reduce_sum | %10 reduce_sum | %21 convert: results B of 768 each, by r:grid c:serial c:warp2 c:lane32 c:vector8
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
      for (int p = 0; p < 4; ++p) {
        const pair<bf16> v0_1 = load_pair(x_v, 2 * p);      // %x input
        const float v3_2 = first_f32(v0_1);                 // %3 convert  layer_norm
        const float v3_3 = second_f32(v0_1);                // %3 convert  layer_norm
        acc = acc + v3_2;                                   // %4 reduce_sum  layer_norm.mean
        acc = acc + v3_3;                                   // %4 reduce_sum  layer_norm.mean
        store(h3, 8 * k + 2 * p, v3_2);                     // %3 convert  layer_norm
        store(h3, 8 * k + 2 * p + 1, v3_3);                 // %3 convert  layer_norm
      }
    }
  }
  acc = warp_sum(acc);                                      // %4 reduce_sum  layer_norm.mean
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %4 reduce_sum  layer_norm.mean
  }
  block_barrier();                                          // %4 reduce_sum  layer_norm.mean
  const int lane_mod_2 = lane % 2;
  const float v4 = load(shared_acc, lane_mod_2);            // %4 reduce_sum  layer_norm.mean
  float total = v4;                                         // %4 reduce_sum  layer_norm.mean
  #pragma unroll
  for (int d = 1; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total, d);             // %4 reduce_sum  layer_norm.mean
    const float combined = total + other0;                  // %4 reduce_sum  layer_norm.mean
    total = combined;                                       // %4 reduce_sum  layer_norm.mean
  }
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
  const float v10 = load(shared_acc_1, lane_mod_2);         // %10 reduce_sum  layer_norm.var
  float total_1 = v10;                                      // %10 reduce_sum  layer_norm.var
  #pragma unroll
  for (int d = 1; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total_1, d);           // %10 reduce_sum  layer_norm.var
    const float combined_1 = total_1 + other0;              // %10 reduce_sum  layer_norm.var
    total_1 = combined_1;                                   // %10 reduce_sum  layer_norm.var
  }
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
      for (int p_1 = 0; p_1 < 4; ++p_1) {
        const float v8_1_1 = load(h8, 8 * k_2 + 2 * p_1);   // %8 sub  layer_norm.mean
        const float v8_1_2 = load(h8, 8 * k_2 + 2 * p_1 + 1);  // %8 sub  layer_norm.mean
        const float v16_1 = v8_1_1 * v14;                   // %16 mul  layer_norm
        const float v16_2 = v8_1_2 * v14;                   // %16 mul  layer_norm
        const float v1_1 = load(gamma_v, 2 * p_1);          // %gamma parameter
        const float v1_2 = load(gamma_v, 2 * p_1 + 1);      // %gamma parameter
        const float v18_1 = v16_1 * v1_1;                   // %18 mul  layer_norm
        const float v18_2 = v16_2 * v1_2;                   // %18 mul  layer_norm
        const float v2_1 = load(beta_v, 2 * p_1);           // %beta parameter
        const float v2_2 = load(beta_v, 2 * p_1 + 1);       // %beta parameter
        const float v20_1 = v18_1 + v2_1;                   // %20 add  layer_norm
        const float v20_2 = v18_2 + v2_2;                   // %20 add  layer_norm
        const pair<bf16> v21_1 = pair_of<bf16>(v20_1, v20_2);  // %21 convert  layer_norm
        store_pair(t21_v, 2 * p_1, v21_1);                  // %21 convert  layer_norm
      }
      store_vector(t21, 8 * g_2 + 768 * row, t21_v);        // %21 convert  layer_norm
    }
  }
}

