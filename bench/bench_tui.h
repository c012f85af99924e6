// SPDX-License-Identifier: MIT
//
// bench tui: what its two files share.
#ifndef TIDE_BENCH_BENCH_TUI_H
#define TIDE_BENCH_BENCH_TUI_H

#include "analysis/subject.h"

double bench_tui_ms(void);
void bench_tui_print_once(const char *what, double ms);
/// The view of a subject at 200x60, worker and all: first frame, then keys, each with the frame it makes. `path` NULL:
/// of `plan` (taken), which may then not be NULL.
void bench_tui_view(const char *path, tide_memory_plan *plan);

#endif
