// SPDX-License-Identifier: MIT
//
// planner child: one row of a planner bench in a process of its own, so that its memory and its processor time are its
// own too. The parent keeps small: what a child inherits counts as the child's.
#ifndef TIDE_BENCH_PLANNER_CHILD_H
#define TIDE_BENCH_PLANNER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_TEXT_BYTES = 160, BENCH_NUMBERS = 16 };

/// What a child tells; plain bytes, sent through a pipe.
typedef struct bench_answer {
    bool done;                   ///< false: `text` says why not
    char text[BENCH_TEXT_BYTES]; ///< a word or a reason
    uint64_t n[BENCH_NUMBERS];   ///< as the section means them
} bench_answer;

/// What it took.
typedef struct bench_cost {
    double cpu_s, wall_s;
    double rss_mb; ///< at its highest, MB of 2^20 bytes
} bench_cost;

typedef void (*bench_work)(void *arg, bench_answer *out);

/// Run `work` in a child. A child that dies or takes longer than `limit_s` seconds has not done it, and the text says
/// so.
bench_answer bench_run_child(bench_work work, void *arg, unsigned limit_s, bench_cost *cost);
/// Run another program, its output thrown away. @return its exit status; -1: it could not be run or was stopped
int bench_run_program(char *const *argv, unsigned limit_s, bench_cost *cost);

#endif
