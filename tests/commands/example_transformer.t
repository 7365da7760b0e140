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

Weights that were saved give the same loss.

    $ transformer_block "${small[@]}" --seed 7 --save-weights w.safetensors | grep '^loss  ' >drawn
    $ transformer_block "${small[@]}" --weights w.safetensors | grep '^loss  ' | cmp - drawn
