// All compound functions: activations, normalisations, layers, attention. Each is written in its header, with
// Compound, and an application writes its own in the same way (compound.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/compound.hpp>
#include <fuse/nn/activations.hpp>
#include <fuse/nn/attention.hpp>
#include <fuse/nn/layers.hpp>
#include <fuse/nn/normalization.hpp>
