// SPDX-License-Identifier: MIT
//
// version: see tidemark/version.h.
#include "tidemark/version.h"

const char *tide_version(void) { return TIDE_VERSION; }
