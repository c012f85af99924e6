// SPDX-License-Identifier: MIT
//
// tidemark allocators, tidemark devices: what serves which memory, and on what.
#include <inttypes.h>
#include <stdio.h>

#include "cli/memory_report.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"

static int run_allocators(int argc, char **argv);
static int run_devices(int argc, char **argv);

static const char help[] = "  --json              print the table as JSON\n";
const cli_command cli_command_allocators = {"allocators", "[--json]", "Which allocator serves which memory kind", help,
                                            run_allocators};
const cli_command cli_command_devices = {"devices", "[--json]", "Which devices this build can use", help, run_devices};

/// -1: go on; otherwise the exit code.
static int parse(const cli_command *cmd, int argc, char **argv, bool *as_json) {
    static const struct option table[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int c;
    while ((c = cli_next_option(cmd, argc, argv, table)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c != 'j') return CLI_EXIT_USAGE;
        *as_json = true;
    }
    if (optind != argc) return cli_usage(cmd, "no FILE is wanted here");
    return -1;
}

// ---- allocators ----

/// The devices that have numbers of their own, here or not.
static const tide_device ruled[] = {{TIDE_DEVICE_CPU, 0}, {TIDE_DEVICE_CUDA, 0}};
enum { N_RULED = sizeof ruled / sizeof ruled[0] };

/// "64 B", "1 GiB"; "any" for TIDE_UNKNOWN_BYTES.
static const char *size_text(uint64_t bytes, char *buf, size_t buf_bytes) {
    return bytes == TIDE_UNKNOWN_BYTES ? "any" : tide_format_bytes(bytes, buf, buf_bytes);
}

/// Four columns: what becomes of freed memory, streams, pages, and the largest request.
static void print_props(const tide_allocator_props *p) {
    char largest[24];
    printf("%-5s %-7s %-6s %10s",
           p->keeps_freed   ? "keeps"
           : p->needs_reset ? "reset"
                            : "-",
           p->stream_aware ? "aware" : "-", p->page_locked ? "locked" : "-",
           size_text(p->max_bytes, largest, sizeof largest));
}
#define PROPS_HEAD "freed streams pages     largest"

static json_t *rows_json(const tide_registry_row *rows, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        char device[32];
        tide_allocator_stats stats;
        tide_allocator_props props;
        tide_allocator_get_stats(rows[i].allocator, &stats);
        tide_allocator_get_props(rows[i].allocator, &props);
        json_t *row = json_object();
        json_object_set_new(row, "device", json_string(tide_device_format(rows[i].device, device, sizeof device)));
        json_object_set_new(row, "kind", json_string(tide_memory_kind_name(rows[i].kind)));
        json_object_set_new(row, "allocator", json_string(tide_allocator_name(rows[i].allocator)));
        json_object_set_new(row, "priority", json_integer(rows[i].priority));
        json_object_set_new(row, "align_bytes",
                            json_integer((json_int_t)tide_memory_kind_alignment(rows[i].kind, rows[i].device)));
        cli_json_props(row, &props);
        cli_json_stats(row, &stats);
        json_array_append_new(list, row);
    }
    return list;
}

static void print_rows(const tide_registry_row *rows, size_t n) {
    printf("%-8s %-13s %-14s %5s  " PROPS_HEAD " %10s %10s %10s %10s %7s\n", "device", "kind", "allocator", "align",
           "requested", "active", "cached", "reserved", "allocs");
    for (size_t i = 0; i < n; i++) {
        char device[32], a[24], b[24], c[24], d[24];
        tide_allocator_props props;
        tide_allocator_stats s;
        tide_allocator_get_props(rows[i].allocator, &props);
        tide_allocator_get_stats(rows[i].allocator, &s);
        printf("%-8s %-13s %-14s %5zu  ", tide_device_format(rows[i].device, device, sizeof device),
               tide_memory_kind_name(rows[i].kind), tide_allocator_name(rows[i].allocator),
               tide_memory_kind_alignment(rows[i].kind, rows[i].device));
        print_props(&props);
        printf(" %10s %10s %10s %10s %7" PRIu64 "\n", tide_format_bytes(s.requested_bytes, a, sizeof a),
               tide_format_bytes(s.active_bytes, b, sizeof b), tide_format_bytes(s.cached_bytes, c, sizeof c),
               tide_format_bytes(s.reserved_bytes, d, sizeof d), s.n_allocs);
    }
}

/// Lists the values of --allocator. Each allocator is created to ask for its properties. @param list  NULL: print
/// instead
static tide_status show_named(json_t *list) {
    if (list == NULL) printf("\n%-24s %5s  " PROPS_HEAD "  what\n", "--allocator", "align");
    const char *name;
    for (size_t i = 0; (name = tide_allocator_name_at(i)) != NULL; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        const tide_status st = tide_allocator_create_by_name(name, &a, &err);
        if (st != TIDE_OK) {
            cli_print_error(&err);
            return st;
        }
        tide_allocator_props props;
        tide_allocator_get_props(a, &props);
        tide_allocator_unref(a);
        if (list == NULL) {
            printf("%-24s %5zu  ", name, props.align_bytes);
            print_props(&props);
            printf("  %s\n", props.what);
            continue;
        }
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(name));
        cli_json_props(row, &props);
        json_array_append_new(list, row);
    }
    return TIDE_OK;
}

/// The rule of (device, kind), or 0 where the kind is not legal.
static size_t rule(tide_memory_kind kind, tide_device device) {
    return tide_memory_kind_check(kind, device, NULL) == TIDE_OK ? tide_memory_kind_alignment(kind, device) : 0;
}

static json_t *rules_json(void) {
    json_t *list = json_array();
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        for (size_t d = 0; d < N_RULED; d++) {
            const size_t align = rule((tide_memory_kind)k, ruled[d]);
            if (align == 0) continue;
            char device[32];
            json_t *row = json_object();
            json_object_set_new(row, "kind", json_string(tide_memory_kind_name((tide_memory_kind)k)));
            json_object_set_new(row, "device", json_string(tide_device_format(ruled[d], device, sizeof device)));
            json_object_set_new(row, "align_bytes", json_integer((json_int_t)align));
            json_array_append_new(list, row);
        }
    }
    return list;
}

/// which alignment holds for what.
static void print_rules(void) {
    printf("\n%-13s %9s %9s  %s\n", "alignment of", "cpu", "cuda", "what the kind is for");
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_memory_kind kind = (tide_memory_kind)k;
        char on[N_RULED][24];
        for (size_t d = 0; d < N_RULED; d++) {
            const size_t align = rule(kind, ruled[d]);
            snprintf(on[d], sizeof on[d], align == 0 ? "-" : "%zu", align);
        }
        printf("%-13s %9s %9s  %s\n", tide_memory_kind_name(kind), on[0], on[1], tide_memory_kind_purpose(kind));
    }
}

static int show_allocators(const tide_registry_row *rows, size_t n, bool as_json) {
    if (!as_json) {
        print_rows(rows, n);
        print_rules();
        return cli_exit_code(show_named(NULL));
    }
    json_t *named = json_array();
    const tide_status st = show_named(named);
    if (st != TIDE_OK) {
        json_decref(named);
        return cli_exit_code(st);
    }
    json_t *doc = cli_json_document("allocators");
    json_object_set_new(doc, "allocators", rows_json(rows, n));
    json_object_set_new(doc, "alignment", rules_json());
    json_object_set_new(doc, "named", named);
    return cli_json_print(doc);
}

static int run_allocators(int argc, char **argv) {
    bool as_json = false;
    const int code = parse(&cli_command_allocators, argc, argv, &as_json);
    if (code >= 0) return code;
    tide_registry *registry = tide_registry_default();
    const size_t n = tide_registry_rows(registry, NULL, 0);
    tide_registry_row *rows = tide_host_calloc(n + 1, sizeof *rows);
    if (rows == NULL) {
        fputs("error: out of memory: no memory for the table\n", stderr);
        return CLI_EXIT_DOES_NOT_FIT;
    }
    tide_registry_rows(registry, rows, n);
    const int shown = show_allocators(rows, n, as_json);
    tide_host_free(rows);
    return shown;
}

// ---- devices ----

static int run_devices(int argc, char **argv) {
    bool as_json = false;
    const int code = parse(&cli_command_devices, argc, argv, &as_json);
    if (code >= 0) return code;
    const tide_device *const known = ruled;
    json_t *list = json_array();
    for (size_t i = 0; i < N_RULED; i++) {
        char name[16];
        tide_error err = TIDE_ERROR_INIT;
        const bool here = tide_device_require(known[i], &err) == TIDE_OK;
        tide_device_format(known[i], name, sizeof name);
        char why[sizeof err.msg + sizeof err.note + 2];
        snprintf(why, sizeof why, "%s%s%s", err.msg, err.note[0] != '\0' ? ": " : "", err.note);
        if (!as_json) printf("%-8s %s\n", name, here ? "available" : why);
        json_t *row = json_object();
        json_object_set_new(row, "device", json_string(name));
        json_object_set_new(row, "available", json_boolean(here));
        json_object_set_new(row, "reason", here ? json_null() : cli_json_text(why));
        json_array_append_new(list, row);
    }
    if (!as_json) {
        json_decref(list);
        return CLI_EXIT_OK;
    }
    json_t *doc = cli_json_document("devices");
    json_object_set_new(doc, "devices", list);
    return cli_json_print(doc);
}
