# SPDX-License-Identifier: Apache-2.0
"""The text that the example gpt writes, with a cache of keys and values, against PyTorch's without one."""

import os
import subprocess
from types import SimpleNamespace

import gpt

PROMPTS = ("The Licensor", "You may ", '"Work" shall mean', "Redistribution.")
DEVICES = ("emulated", "cpu")
TOKENS = 100


def run(log, options):
    weights = os.path.join("examples", "data", "gpt.safetensors")
    passed = failed = 0
    for prompt in PROMPTS:
        expected, gap = gpt.generated(SimpleNamespace(weights=weights, prompt=prompt, tokens=TOKENS))
        for device in DEVICES:
            command = [os.path.join(options.bin, "gpt"), "--device", device, "--weights", weights]
            command += ["--prompt", prompt, "--tokens", str(TOKENS)]
            told = subprocess.run(command, capture_output=True, check=False)
            same = told.returncode == 0 and told.stdout == expected + b"\n"
            passed, failed = passed + same, failed + (not same)
            log.say(f"text: {device}, {prompt!r}: {'the same text' if same else 'ANOTHER TEXT'}; least gap {gap:.3f}")
            if not same:
                log.say(f"  PyTorch: {expected!r}\n  fuse:    {told.stdout!r} {told.stderr.decode()!r}")
    return passed, failed
