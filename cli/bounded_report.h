// SPDX-License-Identifier: MIT
//
// bounded report: tensors that are sized while running within bounds, and what came out of them.
#ifndef TIDE_CLI_BOUNDED_REPORT_H
#define TIDE_CLI_BOUNDED_REPORT_H

#include "core/base/json_out.h"
#include "core/runtime/context.h"

/// One tensor over all contexts of a run.
typedef struct cli_bounded {
    char *name;                 ///< owned
    tide_context_bounded facts; ///< its name is that above
} cli_bounded;
typedef struct cli_bounded_list {
    cli_bounded *items; ///< [n], owned
    size_t n;
} cli_bounded_list;

/// Add what came out in one context; all are of one program, or of one at several sizes, the largest first.
/// TIDE_ERR_NOMEM: the list is as it was.
tide_status cli_bounded_add(cli_bounded_list *list, const tide_context *c, tide_error *err) TIDE_NODISCARD;
void cli_bounded_deinit(cli_bounded_list *list);
/// As a table: those with the largest bounds; nothing where there are none.
void cli_bounded_print(const cli_bounded_list *list);
/// As the list `key`: all of them; left out where there are none.
void cli_bounded_json(tide_json_out *j, const char *key, const cli_bounded_list *list);

#endif
