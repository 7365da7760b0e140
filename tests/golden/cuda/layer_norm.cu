// uses FUSE_KERNEL bf16 divide global kernel load store to_bf16 to_f32 warp_sum

// layer_norm_layer_norm_mean_0: layer_norm.mean, %4 reduce_sum: results B, row_warp over 768 each
FUSE_KERNEL(128) layer_norm_layer_norm_mean_0(global<const bf16> x, global<float> t4, int B) {
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = 4 * b + warp;
  if (row < B) {
    float acc = 0.0f;                                       // %4 reduce_sum  layer_norm.mean
    for (int c = lane; c < 768; c += 32) {
      const bf16 v0 = load(x, c + 768 * row);               // %x input
      const float v3 = to_f32(v0);                          // %3 convert  layer_norm
      acc = acc + v3;                                       // %4 reduce_sum  layer_norm.mean
    }
    acc = warp_sum(acc);                                    // %4 reduce_sum  layer_norm.mean
    if (lane == 0) {
      store(t4, row, acc);                                  // %4 reduce_sum  layer_norm.mean
    }
  }
}

// layer_norm_layer_norm_var_1: layer_norm.var, %11 reduce_sum: results B, row_warp over 768 each
FUSE_KERNEL(128) layer_norm_layer_norm_var_1(global<const bf16> x, global<const float> t4, global<float> t11, int B) {
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = 4 * b + warp;
  if (row < B) {
    float acc = 0.0f;                                       // %11 reduce_sum  layer_norm.var
    for (int c = lane; c < 768; c += 32) {
      const bf16 v0 = load(x, c + 768 * row);               // %x input
      const float v3 = to_f32(v0);                          // %3 convert  layer_norm
      const float v4 = load(t4, row);                       // %4 reduce_sum  layer_norm.mean
      const float v5 = 768.0f;                              // %5 constant  layer_norm.mean
      const float v7 = divide(v4, v5);                      // %7 div  layer_norm.mean
      const float v9 = v3 - v7;                             // %9 sub  layer_norm.mean
      const float v10 = v9 * v9;                            // %10 mul  layer_norm.var
      acc = acc + v10;                                      // %11 reduce_sum  layer_norm.var
    }
    acc = warp_sum(acc);                                    // %11 reduce_sum  layer_norm.var
    if (lane == 0) {
      store(t11, row, acc);                                 // %11 reduce_sum  layer_norm.var
    }
  }
}

// layer_norm_layer_norm_2: layer_norm, %23 convert: results 768 * B
FUSE_KERNEL(256) layer_norm_layer_norm_2(global<const bf16> x, global<const float> gamma, global<const float> beta, global<const float> t4, global<const float> t11, global<bf16> t23, int B) {
  const int b = blockIdx.x;
  const int t = threadIdx.x;
  const int i = 256 * b + t;
  const int i_div_768 = i / 768;
  const int i_mod_768 = i % 768;
  if (i < 768 * B) {
    const bf16 v0 = load(x, i);                             // %x input
    const float v3 = to_f32(v0);                            // %3 convert  layer_norm
    const float v4 = load(t4, i_div_768);                   // %4 reduce_sum  layer_norm.mean
    const float v5 = 768.0f;                                // %5 constant  layer_norm.mean
    const float v7 = divide(v4, v5);                        // %7 div  layer_norm.mean
    const float v9 = v3 - v7;                               // %9 sub  layer_norm.mean
    const float v11 = load(t11, i_div_768);                 // %11 reduce_sum  layer_norm.var
    const float v12 = divide(v11, v5);                      // %12 div  layer_norm.var
    const float v13 = 1e-05f;                               // %13 constant  layer_norm.var
    const float v15 = v12 + v13;                            // %15 add  layer_norm.var
    const float v16 = rsqrtf(v15);                          // %16 rsqrt  layer_norm.var
    const float v18 = v9 * v16;                             // %18 mul  layer_norm
    const float v1 = load(gamma, i_mod_768);                // %gamma parameter
    const float v20 = v18 * v1;                             // %20 mul  layer_norm
    const float v2 = load(beta, i_mod_768);                 // %beta parameter
    const float v22 = v20 + v2;                             // %22 add  layer_norm
    const bf16 v23 = to_bf16(v22);                          // %23 convert  layer_norm
    store(t23, i, v23);                                     // %23 convert  layer_norm
  }
}

