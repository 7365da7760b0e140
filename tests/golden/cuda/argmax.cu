// uses FUSE_KERNEL block_barrier global infinity_f32 kernel load load_vector local shared shuffle_xor store

// argmax_argmax_0: %1 argmax: results 64 of 5000 each, by r:grid c:serial c:warp8 c:lane32 c:vector4
FUSE_KERNEL(256, 1) argmax_argmax_0(global<const float> x, global<long long> t1) {
  FUSE_SHARED(float, 8, shared_acc);
  FUSE_SHARED(long long, 8, shared_acc_index);
  FUSE_LOCAL(float, 4, x_v);
  const int row = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float acc = -infinity_f32();                              // %1 argmax
  long long acc_index = 9223372036854775807LL;              // %1 argmax
  for (int g = lane + 32 * warp; g < 1250; g += 256) {
    load_vector(x_v, x, 4 * g + 5000 * row);                // %x input
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float v0 = load(x_v, v);                        // %x input
      const long long v1 = 4 * g + v;                       // %1 argmax
      {
        const bool combined = v0 > acc;                     // %1 argmax
        const bool combined_1 = v0 == acc;                  // %1 argmax
        const bool combined_2 = acc != acc;                 // %1 argmax
        const bool combined_3 = v0 != v0;                   // %1 argmax
        const bool combined_4 = combined_2 && combined_3;   // %1 argmax
        const bool combined_5 = !combined_2;                // %1 argmax
        const bool combined_6 = combined_3 && combined_5;   // %1 argmax
        const bool combined_7 = combined || combined_6;     // %1 argmax
        const bool combined_8 = combined_1 || combined_4;   // %1 argmax
        const bool combined_9 = v1 < acc_index;             // %1 argmax
        const bool combined_10 = combined_8 && combined_9;  // %1 argmax
        const bool combined_11 = combined_7 || combined_10; // %1 argmax
        const float combined_12 = combined_11 ? v0 : acc;   // %1 argmax
        const long long combined_13 = combined_11 ? v1 : acc_index;  // %1 argmax
        acc = combined_12;                                  // %1 argmax
        acc_index = combined_13;                            // %1 argmax
      }
    }
  }
  #pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(acc, d);               // %1 argmax
    const long long other1 = shuffle_xor(acc_index, d);     // %1 argmax
    const bool combined = other0 > acc;                     // %1 argmax
    const bool combined_1 = other0 == acc;                  // %1 argmax
    const bool combined_2 = acc != acc;                     // %1 argmax
    const bool combined_3 = other0 != other0;               // %1 argmax
    const bool combined_4 = combined_2 && combined_3;       // %1 argmax
    const bool combined_5 = !combined_2;                    // %1 argmax
    const bool combined_6 = combined_3 && combined_5;       // %1 argmax
    const bool combined_7 = combined || combined_6;         // %1 argmax
    const bool combined_8 = combined_1 || combined_4;       // %1 argmax
    const bool combined_9 = other1 < acc_index;             // %1 argmax
    const bool combined_10 = combined_8 && combined_9;      // %1 argmax
    const bool combined_11 = combined_7 || combined_10;     // %1 argmax
    const float combined_12 = combined_11 ? other0 : acc;   // %1 argmax
    const long long combined_13 = combined_11 ? other1 : acc_index;  // %1 argmax
    acc = combined_12;                                      // %1 argmax
    acc_index = combined_13;                                // %1 argmax
  }
  if (lane == 0) {
    store(shared_acc, warp, acc);                           // %1 argmax
    store(shared_acc_index, warp, acc_index);               // %1 argmax
  }
  block_barrier();                                          // %1 argmax
  const int lane_mod_8 = lane % 8;
  const float v1_1 = load(shared_acc, lane_mod_8);          // %1 argmax
  const long long v1_2 = load(shared_acc_index, lane_mod_8);  // %1 argmax
  float total = v1_1;                                       // %1 argmax
  long long total_index = v1_2;                             // %1 argmax
  #pragma unroll
  for (int d = 4; d > 0; d >>= 1) {
    const float other0 = shuffle_xor(total, d);             // %1 argmax
    const long long other1 = shuffle_xor(total_index, d);   // %1 argmax
    const bool combined = other0 > total;                   // %1 argmax
    const bool combined_1 = other0 == total;                // %1 argmax
    const bool combined_2 = total != total;                 // %1 argmax
    const bool combined_3 = other0 != other0;               // %1 argmax
    const bool combined_4 = combined_2 && combined_3;       // %1 argmax
    const bool combined_5 = !combined_2;                    // %1 argmax
    const bool combined_6 = combined_3 && combined_5;       // %1 argmax
    const bool combined_7 = combined || combined_6;         // %1 argmax
    const bool combined_8 = combined_1 || combined_4;       // %1 argmax
    const bool combined_9 = other1 < total_index;           // %1 argmax
    const bool combined_10 = combined_8 && combined_9;      // %1 argmax
    const bool combined_11 = combined_7 || combined_10;     // %1 argmax
    const float combined_12 = combined_11 ? other0 : total; // %1 argmax
    const long long combined_13 = combined_11 ? other1 : total_index;  // %1 argmax
    total = combined_12;                                    // %1 argmax
    total_index = combined_13;                              // %1 argmax
  }
  if (warp == 0 && lane == 0) {
    store(t1, row, total_index);                            // %1 argmax
  }
}

