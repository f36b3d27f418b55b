// SPDX-License-Identifier: Apache-2.0
// Facade of what needs no other library: plans, CPU kernels, ranks as threads, training, data and generation.
// Optional parts have facades or folders of their own: checkpoint/ (safetensors), data/gzip/, kernel/cblas/, kernel/onednn/.
#pragma once

#include "weft/comm/self/self_communicator.hpp"
#include "weft/data/idx.hpp"
#include "weft/data/labelled_images.hpp"
#include "weft/data/loader.hpp"
#include "weft/data/text.hpp"
#include "weft/data/token_file.hpp"
#include "weft/data/token_windows.hpp"
#include "weft/kernel/cpu/gemm.hpp"
#include "weft/optim/optim.hpp"
#include "weft/plan.hpp"
#include "weft/run/balance.hpp"
#include "weft/run/check_copies.hpp"
#include "weft/run/generate.hpp"
#include "weft/run/launch.hpp"
#include "weft/run/process_memory.hpp"
#include "weft/run/trainer.hpp"
