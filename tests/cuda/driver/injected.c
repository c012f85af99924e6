// SPDX-License-Identifier: MIT
//
// A library that the driver loads at cuInit (CUDA_INJECTION64_PATH): says in the environment how often it was called.
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void) {
    static int n_times;
    char text[16];
    snprintf(text, sizeof text, "%d", ++n_times);
    setenv("SIM_INJECTED_TIMES", text, 1);
    return 1;
}
