// SPDX-License-Identifier: MIT
//
// How rules.c and cupti_rules.c ask: a rule has a name, the answer that a real device gave (docs/gpu-results.md) and
// the answer of this one, and is printed as "rule | expected | answer". Included by these two alone.
#ifndef TIDE_TESTS_CUDA_RULES_H
#define TIDE_TESTS_CUDA_RULES_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB(n) ((size_t)(n) << 20)

static int n_rules, n_differ;

static inline const char *name_of(CUresult r) {
    const char *name = NULL;
    if (r == CUDA_SUCCESS) return "ok";
    if (cuGetErrorName(r, &name) != CUDA_SUCCESS || name == NULL) return "unknown";
    return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : name;
}

static inline void rule_text(const char *rule, const char *expected, const char *answer) {
    n_rules++;
    const int differs = strcmp(expected, answer) != 0;
    n_differ += differs;
    printf("%s%s | %s | %s\n", differs ? "DIFFERS " : "", rule, expected, answer);
}

static inline void rule(const char *what, const char *expected, CUresult r) { rule_text(what, expected, name_of(r)); }

static inline void rule_number(const char *what, unsigned long long expected, unsigned long long answer) {
    char a[32], b[32];
    snprintf(a, sizeof a, "%llu", expected);
    snprintf(b, sizeof b, "%llu", answer);
    rule_text(what, a, b);
}

static inline void rule_bool(const char *what, int expected, int answer) {
    rule_text(what, expected ? "yes" : "no", answer ? "yes" : "no");
}

/// What must work for the rest to mean anything.
static inline void must(const char *what, CUresult r) {
    if (r == CUDA_SUCCESS) return;
    fprintf(stderr, "rules: %s: %s\n", what, name_of(r));
    exit(2);
}
#define MUST(call) must(#call, call)

#endif
