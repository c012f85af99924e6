// SPDX-License-Identifier: MIT
//
// version: that of this tidemark. It stands here alone: CMakeLists.txt reads it, and tests/house/version.py finds a
// second place. A release changes it, and the first head of CHANGELOG.md.
#ifndef TIDE_CORE_BASE_VERSION_H
#define TIDE_CORE_BASE_VERSION_H

#define TIDE_VERSION "0.1.0"

#endif
