SPDX-License-Identifier: Apache-2.0

Any machine can show the plans for CPUs. A layer norm's backward pass reads its operands once: rows and columns are in one
walk, and a second launch adds up the partial sums of the columns.

    $ fusec plan --profile x86-64-v4 "$ROOT/examples/graphs/layer_norm_backward.fuse" | sed -n '/^kernel  /,$p'
    kernel                         segment  grid  blocks  threads  index  shared  barriers                                 nest
    layer_norm_backward_convert_0        0    16      16       32    i32       0         0  r:serial r:grid16 c:serial c:lane32
    layer_norm_backward_convert_1        0    32      32       32    i32       0         0             c:grid p:serial c:lane32

    kernels: 2  gemms: 0  barriers: 0

Lanes in one row of a broadcast have a body of their own.

    $ cat >"$SCRATCH/rows.fuse" <<'END'
    > graph @rows(%x: f32[16, 1000], %s: f32[16], %b: f32[1000]) -> (y: f32[16, 1000]) {
    >   %1 = broadcast_in_dim %s {dims = [0]} : f32[16, 1000]
    >   %2 = broadcast_in_dim %b {dims = [1]} : f32[16, 1000]
    >   %3 = mul %x, %1 : f32[16, 1000]
    >   %4 = add %3, %2 : f32[16, 1000]
    >   return y = %4
    > }
    > END
    $ fusec plan --profile x86-64-v3 --kernels "$SCRATCH/rows.fuse" | sed -n '/^kernel @/,/^}/p'
    kernel @rows_add_0(x: global const f32[16000], s: global const f32[16], b: global const f32[1000], t6: global f32[16000]) block 32 grid 500 index i32 {
      for b_1 in [0, 500) @grid {
        for t in [0, 32) @block {
          bind i = 32 * b_1 + t
          if 8 * ((4 * b_1) % 125) + 31 < 1000 {
            let v0: f32 = load x[i]  # %x input
            let v1: f32 = load s[(4 * b_1) / 125]  # %s input
            let v5: f32 = mul v0, v1  # %5 mul
            let v2: f32 = load b[t + 8 * ((4 * b_1) % 125)]  # %b input
            let v6: f32 = add v5, v2  # %6 add
            store t6[i] = v6  # %6 add
          }
          if 1000 < 8 * ((4 * b_1) % 125) + 32 {
            let v0: f32 = load x[i]  # %x input
            let v1: f32 = load s[i / 1000]  # %s input
            let v5: f32 = mul v0, v1  # %5 mul
            let v2: f32 = load b[i % 1000]  # %b input
            let v6: f32 = add v5, v2  # %6 add
            store t6[i] = v6  # %6 add
          }
        }
      }
    }

A tile is transposed between two barriers.

    $ cat >"$SCRATCH/turned.fuse" <<'END'
    > graph @turned(%x: f32[64, 96]) -> (y: f32[96, 64]) {
    >   %1 = transpose %x {dims = [1, 0]} : f32[96, 64]
    >   %2 = exp %1 : f32[96, 64]
    >   return y = %2
    > }
    > END
    $ fusec plan --profile x86-64-v2 --kernels "$SCRATCH/turned.fuse" | sed -n '/^kernel @/,/^}/p'
    kernel @turned_exp_0(x: global const f32[6144], t2: global f32[6144]) block 32 grid 6 index i32 {
      tile: shared f32[1024]
      for b in [0, 6) @grid {
        bind b_div_3 = b / 3
        bind b_mod_3 = b % 3
        for warp in [0, 1) @warp {
          for lane in [0, 32) @lane {
            for r in [0, 32) @serial unrolled {
              bind c = 32 * b_div_3 + r + warp
              bind g = 32 * b_mod_3 + lane
              let v0: f32 = load x[96 * c + g]  # %x input
              store tile[lane + 32 * r + 32 * warp] = v0  # %1 transpose
            }
            barrier block  # %2 exp
            transpose tile  # %2 exp
            barrier block  # %2 exp
            for r_1 in [0, 32) @serial unrolled {
              bind c_1 = 32 * b_mod_3 + r_1 + warp
              bind g_1 = 32 * b_div_3 + lane
              let v1: f32 = load tile[lane + 32 * r_1 + 32 * warp]  # %1 transpose
              let v2: f32 = exp v1  # %2 exp
              store t2[64 * c_1 + g_1] = v2  # %2 exp
            }
          }
        }
      }
    }

The emulated device runs kernels of GPUs alone.

    $ fusec run --device emulated --profile x86-64-v4 "$SCRATCH/turned.fuse"
    error: the emulated device cannot be a x86-64-v4: it runs kernels of GPUs
      hint: Device::cpu() runs kernels of CPUs
    [2]
