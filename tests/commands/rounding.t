SPDX-License-Identifier: Apache-2.0

Roundings change by opt-in only: x / 3 is a quotient unless the user asks otherwise.

    $ cat >third.fuse <<'END'
    > graph @third(%x: f32[8]) -> (y: f32[8]) {
    >   %1 = constant {value = 0x1.8p+1} : f32[8]
    >   %2 = div %x, %1 : f32[8]
    >   return y = %2
    > }
    > END
    $ fusec plan third.fuse --kernels | grep -E ' = (div|mul) '
            let v2: f32 = div v0, v1  # %2 div
    $ fusec plan third.fuse --kernels --relaxed-rounding | grep -E ' = (div|mul) '
            let v2: f32 = mul v0, v1  # %2 mul
    $ fusec run third.fuse --device emulated --relaxed-rounding --check
    ...
    output   y f32\[8] * (glob)
    check y: *: OK (glob)
