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

// layer_norm_layer_norm_var_1: layer_norm.var, %10 reduce_sum: results B, row_warp over 768 each
FUSE_KERNEL(128) layer_norm_layer_norm_var_1(global<const bf16> x, global<const float> t4, global<float> t10, int B) {
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = 4 * b + warp;
  if (row < B) {
    float acc = 0.0f;                                       // %10 reduce_sum  layer_norm.var
    for (int c = lane; c < 768; c += 32) {
      const bf16 v0 = load(x, c + 768 * row);               // %x input
      const float v3 = to_f32(v0);                          // %3 convert  layer_norm
      const float v4 = load(t4, row);                       // %4 reduce_sum  layer_norm.mean
      const float v5 = 768.0f;                              // %5 constant  layer_norm.mean
      const float v6 = divide(v4, v5);                      // %6 div  layer_norm.mean
      const float v8 = v3 - v6;                             // %8 sub  layer_norm.mean
      const float v9 = v8 * v8;                             // %9 mul  layer_norm.var
      acc = acc + v9;                                       // %10 reduce_sum  layer_norm.var
    }
    acc = warp_sum(acc);                                    // %10 reduce_sum  layer_norm.var
    if (lane == 0) {
      store(t10, row, acc);                                 // %10 reduce_sum  layer_norm.var
    }
  }
}

// layer_norm_layer_norm_2: layer_norm, %21 convert: results 768 * B
FUSE_KERNEL(256) layer_norm_layer_norm_2(global<const bf16> x, global<const float> gamma, global<const float> beta, global<const float> t4, global<const float> t10, global<bf16> t21, int B) {
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
    const float v6 = divide(v4, v5);                        // %6 div  layer_norm.mean
    const float v8 = v3 - v6;                               // %8 sub  layer_norm.mean
    const float v10 = load(t10, i_div_768);                 // %10 reduce_sum  layer_norm.var
    const float v11 = divide(v10, v5);                      // %11 div  layer_norm.var
    const float v12 = 1e-05f;                               // %12 constant  layer_norm.var
    const float v13 = v11 + v12;                            // %13 add  layer_norm.var
    const float v14 = rsqrtf(v13);                          // %14 rsqrt  layer_norm.var
    const float v16 = v8 * v14;                             // %16 mul  layer_norm
    const float v1 = load(gamma, i_mod_768);                // %gamma parameter
    const float v18 = v16 * v1;                             // %18 mul  layer_norm
    const float v2 = load(beta, i_mod_768);                 // %beta parameter
    const float v20 = v18 + v2;                             // %20 add  layer_norm
    const bf16 v21 = to_bf16(v20);                          // %21 convert  layer_norm
    store(t21, i, v21);                                     // %21 convert  layer_norm
  }
}

