// SPDX-License-Identifier: MIT
//
// The values of an axis: "1,2,4", "1..64", "1..64:8", "1..1024*2". See sweep.h.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/host_alloc.h"

enum { MAX_VALUE = INT32_MAX };

void cli_sweep_axis_deinit(cli_sweep_axis *axis) {
    tide_host_free(axis->name);
    tide_host_free(axis->values);
    *axis = (cli_sweep_axis){0};
}

/// One value or range, as the list is read.
typedef struct item {
    uint64_t from, to;
    uint64_t step, factor; // one of them; both 0: no more than a range
    bool is_range;
} item;

/// A number from 1 to 2^31-1 at *at, which moves behind it.
static bool read_number(const char **at, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    if (**at < '0' || **at > '9') return false;
    const unsigned long long value = strtoull(*at, &end, 10);
    if (errno != 0 || value == 0 || value > MAX_VALUE) return false;
    *out = value;
    *at = end;
    return true;
}

static bool read_item(const char **at, item *out) {
    *out = (item){0};
    if (!read_number(at, &out->from)) return false;
    out->to = out->from;
    if (strncmp(*at, "..", 2) != 0) return true;
    *at += 2;
    out->is_range = true;
    if (!read_number(at, &out->to) || out->to < out->from) return false;
    if (**at != ':' && **at != '*') return true;
    const bool is_factor = **at == '*';
    ++*at;
    if (!read_number(at, is_factor ? &out->factor : &out->step)) return false;
    return !is_factor || out->factor > 1;
}

/// NULL: that is all of them; else what is wrong.
static const char *add_values(cli_sweep_axis *axis, size_t *cap, const item *it) {
    for (uint64_t v = it->from; v <= it->to;) {
        if (axis->n >= CLI_SWEEP_MAX_POINTS) return "has more values than a sweep takes";
        if (tide_host_grow(&axis->values, cap, axis->n + 1, sizeof *axis->values) != TIDE_OK)
            return "needs more memory";
        axis->values[axis->n++] = v;
        v = it->factor > 0 ? v * it->factor : v + (it->step > 0 ? it->step : 1); // below 2^62
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_values(cli_sweep_axis *axis) {
    size_t kept = 0;
    if (axis->n > 0) qsort(axis->values, axis->n, sizeof *axis->values, by_value);
    for (size_t i = 0; i < axis->n; i++) {
        if (kept == 0 || axis->values[kept - 1] != axis->values[i]) axis->values[kept++] = axis->values[i];
    }
    axis->n = kept;
}

/// The list behind the '='.
static bool parse_values(const cli_command *cmd, const char *option, const char *text, cli_sweep_axis *axis) {
    size_t cap = 0, n_items = 0;
    const char *at = text;
    for (bool more = true; more; n_items++) {
        item it;
        if (!read_item(&at, &it) || (*at != '\0' && *at != ',')) {
            cli_usage(cmd,
                      "%s: '%s' is none of 1,2,4 or 1..64 or 1..64:8 (step) or 1..1024*2 (factor), of sizes from 1 "
                      "to %d",
                      option, text, MAX_VALUE);
            return false;
        }
        axis->lo = n_items == 0 || it.from < axis->lo ? it.from : axis->lo;
        axis->hi = it.to > axis->hi ? it.to : axis->hi;
        more = *at == ',';
        axis->is_range_only = n_items == 0 && !more && it.is_range && it.step == 0 && it.factor == 0;
        // A long range may be one to search: its values are listed when it turns out that it is not.
        const char *wrong = axis->is_range_only ? NULL : add_values(axis, &cap, &it);
        if (wrong != NULL) {
            cli_usage(cmd, "%s: '%s' %s", option, text, wrong);
            return false;
        }
        at += more;
    }
    sort_values(axis);
    return true;
}

bool cli_sweep_axis_parse(const cli_command *cmd, const char *option, const char *text, cli_sweep_axis *out) {
    *out = (cli_sweep_axis){.is_batch = strcmp(option, "--batch") == 0};
    // Symbols may hold a '=': what follows the last one are the values, if they can be any.
    const char *eq = out->is_batch ? NULL : strrchr(text, '=');
    const char *values = out->is_batch ? text : eq != NULL ? eq + 1 : "";
    const size_t len = eq != NULL ? (size_t)(eq - text) : strlen(text);
    if (len == 0) {
        cli_usage(cmd, "%s: '%s' is not of the form NAME=1,2,4", option, text);
        return false;
    }
    out->name = out->is_batch ? tide_host_strdup("batch") : tide_host_strndup(text, len);
    if (out->name == NULL) cli_option_no_memory(option);
    if (!out->is_batch && eq == NULL) {
        out->lo = 1;
        out->hi = MAX_VALUE;
        out->is_range_only = true;
        return true;
    }
    if (parse_values(cmd, option, values, out)) return true;
    cli_sweep_axis_deinit(out);
    return false;
}

bool cli_sweep_axis_list(const cli_command *cmd, cli_sweep_axis *axis) {
    size_t cap = 0;
    const item it = {.from = axis->lo, .to = axis->hi};
    const char *wrong = add_values(axis, &cap, &it);
    if (wrong == NULL) return true;
    cli_usage(cmd,
              "'%s=%" PRIu64 "..%" PRIu64 "' %s: give a step (%s=%" PRIu64 "..%" PRIu64
              ":N), or --fits SIZE to search it",
              axis->name, axis->lo, axis->hi, wrong, axis->name, axis->lo, axis->hi);
    return false;
}
