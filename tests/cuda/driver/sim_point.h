// SPDX-License-Identifier: MIT
//
// A point: a moment in a stream that comes once. It is all that passes between streams, and from a stream to the host.
//
// Whatever came before sim_point_done happens before what comes after sim_point_wait, and nothing else here orders
// threads: every field is an atomic, and counting references is relaxed, so that ThreadSanitizer sees no order that a
// program on a real device would not have. Points are kept for use again and never given back to the system; so that a
// late look at one is harmless.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_POINT_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_POINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sim_point {
    _Atomic uint32_t state; ///< 0: to come; 1: to come, and a thread waits for it; 2: there
    _Atomic uint32_t refs;
    _Atomic uint64_t end_ns;
    struct sim_point *_Atomic next; ///< among the unused
} sim_point;

/// With one reference. The driver's lock is held.
sim_point *sim_point_new(void);
sim_point *sim_point_ref(sim_point *point);
/// NULL is nothing.
void sim_point_unref(sim_point *point);
void sim_point_done(sim_point *point);
/// Orders the caller behind the point when it says true.
bool sim_point_is_done(sim_point *point);
/// Says so without ordering anything.
bool sim_point_looks_done(const sim_point *point);
void sim_point_wait(sim_point *point);
/// Time at which it came.
uint64_t sim_point_time(const sim_point *point);

#endif
