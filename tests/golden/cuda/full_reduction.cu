// uses FUSE_KERNEL block_barrier global kernel load shared shuffle_xor store warp_sum

// full_reduce_sum_0: %1 reduce_sum: results 1 of N each, by r:grid c:serial c:grid264 c:warp8 c:lane32
FUSE_KERNEL(256, 2) full_reduce_sum_0(global<const float> x, global<float> part, int N) {
  FUSE_SHARED(float, 8, shared_acc);
  const int b = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = 0.0f;                                         // %1 reduce_sum
  for (int c = 256 * b + lane + 32 * warp; c < N; c += 67584) {
    const float v0 = load(x, c);                            // %x input
    acc = acc + v0;                                         // %1 reduce_sum
  }
  acc = warp_sum(acc);                                      // %1 reduce_sum
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %1 reduce_sum
  }
  block_barrier();                                          // %1 reduce_sum
  const float v1 = load(shared_acc, lane % 8);              // %1 reduce_sum
  float total = v1;                                         // %1 reduce_sum
  #pragma unroll
  for (int d = 4; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total, d);             // %1 reduce_sum
    const float combined = total + other0;                  // %1 reduce_sum
    total = combined;                                       // %1 reduce_sum
  }
  if (warp == 0 && lane == 0) {
    store(part, b, total);                                  // %1 reduce_sum
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

