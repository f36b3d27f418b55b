// SPDX-License-Identifier: Apache-2.0
// All update rules, schedules and clipping.
#pragma once

#include "weft/optim/adam.hpp"
#include "weft/optim/adamw.hpp"
#include "weft/optim/clip.hpp"
#include "weft/optim/optimizer.hpp"
#include "weft/optim/rate_schedules.hpp"
#include "weft/optim/sgd.hpp"
