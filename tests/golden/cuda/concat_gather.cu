// uses FUSE_KERNEL bf16 clamped_index global kernel load store

// moves_concat_0: %4 concat: results 20 * T, by r:grid r:warp8 r:lane32
FUSE_KERNEL(256, 1) moves_concat_0(global<const bf16> table, global<const long long> tokens, global<const bf16> x, global<bf16> t4, int T) {
  const int b = blockIdx.x;
  const int t = threadIdx.x;
  const int i = 256 * b + t;
  const int i_mod_20 = i % 20;
  const int i_div_20 = i / 20;
  if (i < 20 * T) {
    const bool v4 = i_mod_20 < 8;                           // %4 concat
    const bool v4_1 = !v4;                                  // %4 concat
    const bool v4_2 = i_mod_20 < 12;                        // %4 concat
    const bool v4_3 = v4_1 && v4_2;                         // %4 concat
    const bool v4_4 = !v4_2;                                // %4 concat
    const long long v1 = v4_4 ? load(tokens, i_div_20) : 0LL;  // %tokens input
    const int g3 = (int)clamped_index(v1, 50);              // %3 gather
    const bf16 v0 = v4_4 ? load(table, 8 * g3 + i_mod_20 - 12) : bf16{};  // %table parameter
    const bf16 v2 = v4_3 ? load(x, 4 * i_div_20 + i_mod_20 - 8) : bf16{};  // %x input
    const long long v1_1 = v4 ? load(tokens, i_div_20) : 0LL;  // %tokens input
    const int g3_1 = (int)clamped_index(v1_1, 50);          // %3 gather
    const bf16 v0_1 = v4 ? load(table, 8 * g3_1 + i_mod_20) : bf16{};  // %table parameter
    const bf16 v4_5 = v4_2 ? v2 : v0;                       // %4 concat
    const bf16 v4_6 = v4 ? v0_1 : v4_5;                     // %4 concat
    store(t4, i, v4_6);                                     // %4 concat
  }
}

