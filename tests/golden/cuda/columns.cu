// uses FUSE_KERNEL block_barrier global kernel load shared store

// columns_block_0_bias_gradient_0: block.0.bias gradient, %1 reduce_sum: results 256, column_tile over 4096 each
FUSE_KERNEL(256, 1) columns_block_0_bias_gradient_0(global<const float> dy, global<float> t1) {
  FUSE_SHARED(float, 256, shared_acc);
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int column = 32 * b + lane;
  float acc = 0.0f;                                         // %1 reduce_sum  block.0.bias gradient
  for (int c = warp; c < 4096; c += 8) {
    const float v0 = load(dy, 256 * c + column);            // %dy input  block.0.bias gradient
    acc = acc + v0;                                         // %1 reduce_sum  block.0.bias gradient
  }
  store(shared_acc, lane + 32 * warp, acc);                 // %1 reduce_sum  block.0.bias gradient
  block_barrier();                                          // %1 reduce_sum  block.0.bias gradient
  float total = 0.0f;                                       // %1 reduce_sum  block.0.bias gradient
  for (int w = 0; w < 8; ++w) {
    const float v1 = load(shared_acc, lane + 32 * w);       // %1 reduce_sum  block.0.bias gradient
    total = total + v1;                                     // %1 reduce_sum  block.0.bias gradient
  }
  if (warp == 0) {
    store(t1, column, total);                               // %1 reduce_sum  block.0.bias gradient
  }
}

