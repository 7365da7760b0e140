SPDX-License-Identifier: Apache-2.0

A small GPT writes what it has read. tests/oracle/text.py compares the same texts with PyTorch's.

    $ for device in cpu emulated; do gpt --device $device --prompt "The Licensor" --tokens 70; done
    The Licensor,
          except as required for reasonable and customary use in describ
    The Licensor,
          except as required for reasonable and customary use in describ

The text ends where the context does, and a prompt has to fit into it.

    $ gpt --device cpu --prompt "$(head -c 127 $ROOT/LICENSE)" --tokens 100 | wc -c
    129
    $ gpt --device cpu --prompt "$(head -c 200 $ROOT/LICENSE)"
    error: --prompt: 1 to 128 characters are needed
    [2]
    $ gpt --device cpu --weights $ROOT/LICENSE
    error: safetensors file '$ROOT/LICENSE': its header of 2314885530818453514 bytes goes beyond the file's 11358
    [2]
