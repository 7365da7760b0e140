SPDX-License-Identifier: Apache-2.0

The transformer block is as near to the reference as its ops one by one, in every dtype.

    $ transformer_block
    ...
    logits error * op by op  OK (glob)
    loss error * (glob)
    $ small=(--blocks 1 --hidden 32 --heads 2 --window 32 --batch 2)
    $ transformer_block "${small[@]}" --dtype f32 --device emulated --profile tiny3 --checked
    ...
    logits error * op by op  OK (glob)
    loss error * (glob)
    $ transformer_block "${small[@]}" --dtype f16 --device emulated --profile tiny3 --checked
    ...
    logits error * op by op  OK (glob)
    loss error * (glob)
    $ transformer_block "${small[@]}" --dtype bf16 --device emulated --profile tiny3 --checked
    ...
    logits error * op by op  OK (glob)
    loss error * (glob)

So it is on the cores of this machine.

    $ on_cpu() { transformer_block "${small[@]}" --dtype "$1" --device cpu | grep -E '^(device|logits error) '; }
    $ on_cpu f32
    device            cpu x86-64-v* (cpu: asked for) (glob)
    logits error * op by op  OK (glob)
    $ on_cpu f16
    device            cpu x86-64-v* (cpu: asked for) (glob)
    logits error * op by op  OK (glob)
    $ on_cpu bf16
    device            cpu x86-64-v* (cpu: asked for) (glob)
    logits error * op by op  OK (glob)
    $ transformer_block "${small[@]}" --device cpu --profile tiny3
    error: --checked and --profile are of the emulated device
    [2]

Weights that were saved give the same loss.

    $ transformer_block "${small[@]}" --seed 7 --save-weights w.safetensors | grep '^loss  ' >drawn
    $ transformer_block "${small[@]}" --weights w.safetensors | grep '^loss  ' | cmp - drawn
