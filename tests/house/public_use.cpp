// SPDX-License-Identifier: MIT
//
// public_use.c, as C++.
#include "public_use.c" // NOLINT(bugprone-suspicious-include)
