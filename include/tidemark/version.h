// SPDX-License-Identifier: MIT
//
// version: that of this tidemark, and of what programs that were compiled before may rely on. It stands here alone:
// CMakeLists.txt reads it, and tests/house/version.py finds a second place. A release changes it, and the first head of
// CHANGELOG.md.
#ifndef TIDEMARK_VERSION_H
#define TIDEMARK_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/// Of the headers that a program was compiled with; the library that it runs with says tide_version().
#define TIDE_VERSION "0.1.0"
/// The binary interface: the number in libtidemark.so.N. It grows when a struct or a function of these headers changes
/// in a way that programs which are compiled already do not survive; a new function leaves it as it is.
#define TIDE_ABI 0

/// The version of the library, "1.2.3". Static text.
const char *tide_version(void);

#ifdef __cplusplus
}
#endif
#endif
