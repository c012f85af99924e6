// SPDX-License-Identifier: MIT
//
// bench tui: what its files share.
#ifndef TIDE_BENCH_BENCH_TUI_H
#define TIDE_BENCH_BENCH_TUI_H

#include "analysis/subject.h"
#include "tui/draw/cells.h"

double bench_tui_ms(void);
void bench_tui_print_once(const char *what, double ms);
/// The view of a subject at 200x60, worker and all: first frame, then keys, each with the frame it makes. `path` NULL:
/// of `plan` (taken), which may then not be NULL.
void bench_tui_view(const char *path, tide_memory_plan *plan);

// ---- bench_tui_screen.c: a terminal that counts ----

/// It stands in for standard input and output until it is closed.
void bench_tui_screen_open(int width, int height);
/// Bytes that it took to put the frame on the screen.
uint64_t bench_tui_screen_show(const tide_tui_grid *grid);
void bench_tui_screen_close(void);

#endif
