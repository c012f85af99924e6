// SPDX-License-Identifier: MIT
//
// libtidemark.so.0: nothing of its own, and the three parts behind it. For what is opened by one name (dlopen, ctypes).
// Programs that are linked get the parts that they use, by the text libtidemark.so (lib/CMakeLists.txt).
#include "tidemark/version.h"

/// A library wants one symbol at least.
extern const int tide_abi;
const int tide_abi = TIDE_ABI;
