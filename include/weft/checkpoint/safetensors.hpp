// SPDX-License-Identifier: Apache-2.0
// Safetensors files: SafetensorsFile maps one and gives views of its tensors, write_safetensors makes one.
#pragma once

#include "weft/checkpoint/read_safetensors.hpp"
#include "weft/checkpoint/write_safetensors.hpp"
