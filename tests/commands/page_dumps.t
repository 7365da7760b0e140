SPDX-License-Identifier: Apache-2.0

docs/architecture.md follows one tensor through what the programs print. Each line that they print today stands there.
What does not is shown.

    $ graph="--versions 1 examples/graphs/layernorm.fuse" kernel=layernorm_layer_norm_0
    $ not_in_page() { sed -n 's/^\(.\)/    \1/p' | grep -vFx -f docs/architecture.md; }
    $ fusec print examples/graphs/layernorm.fuse | not_in_page
    [1]
    $ fusec plan $graph | sed '1d;/^kernel  /,$d' | not_in_page
    [1]
    $ fusec plan $graph --kernels | sed -n "/^kernel @$kernel/,/^}/p" | not_in_page
    [1]
    $ fusec emit $graph -o out
    kernel                  threads  shared bytes  barriers
    layernorm_layer_norm_0      256            64         2
    wrote out/layernorm.cu
    $ sed -n "/^FUSE_KERNEL.* $kernel(/,/^}/p" out/layernorm.cu | not_in_page
    [1]

None of these texts is empty.

    $ fusec plan $graph | sed '1d;/^kernel  /,$d' | grep -c .
    16
    $ fusec plan $graph --kernels | sed -n "/^kernel @$kernel/,/^}/p" | grep -c .
    86
    $ sed -n "/^FUSE_KERNEL.* $kernel(/,/^}/p" out/layernorm.cu | grep -c .
    90
