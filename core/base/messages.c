// SPDX-License-Identifier: MIT
//
// tide_set_messages, see tidemark/status.h. In a file of its own because libtidemark-record.so has another one, which
// tells the part that it opens as well (lib/record_front.c).
#include "core/base/log.h"

void tide_set_messages(tide_message_fn fn, void *ctx) { tide__log_set_messages(fn, ctx); }
