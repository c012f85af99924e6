// SPDX-License-Identifier: MIT
//
// tidemark allocators, tidemark devices: what serves which memory, and on what.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/memory/registry.h"

static int run_allocators(int argc, char **argv);
static int run_devices(int argc, char **argv);

static const char help[] = "  --json              print the table as JSON\n";
const cli_command cli_command_allocators = {"allocators", "[--json]", "Which allocator serves which memory kind", help,
                                            run_allocators};
const cli_command cli_command_devices = {"devices", "[--json]", "Which devices this build can use", help, run_devices};

enum { MAX_ROWS = 64 };

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

static int print_rows_json(const tide_registry_row *rows, size_t n) {
    char device[16];
    json_t *doc = cli_json_document("allocators");
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        tide_allocator_stats s;
        tide_allocator_get_stats(rows[i].allocator, &s);
        json_t *row = json_object();
        json_object_set_new(row, "device", json_string(tide_device_format(rows[i].device, device, sizeof device)));
        json_object_set_new(row, "kind", json_string(tide_memory_kind_name(rows[i].kind)));
        json_object_set_new(row, "allocator", json_string(tide_allocator_name(rows[i].allocator)));
        json_object_set_new(row, "priority", json_integer(rows[i].priority));
        json_object_set_new(row, "align_bytes",
                            json_integer((json_int_t)tide_memory_kind_alignment(rows[i].kind, rows[i].device)));
        json_object_set_new(row, "requested_bytes", cli_json_bytes(s.requested_bytes));
        json_object_set_new(row, "active_bytes", cli_json_bytes(s.active_bytes));
        json_object_set_new(row, "cached_bytes", cli_json_bytes(s.cached_bytes));
        json_object_set_new(row, "reserved_bytes", cli_json_bytes(s.reserved_bytes));
        json_array_append_new(list, row);
    }
    json_object_set_new(doc, "allocators", list);
    return cli_json_print(doc);
}

static int run_allocators(int argc, char **argv) {
    bool as_json = false;
    const int code = parse(&cli_command_allocators, argc, argv, &as_json);
    if (code >= 0) return code;
    tide_registry *registry = tide_registry_default();
    if (registry == NULL) {
        fputs("error: out of memory\n", stderr);
        return CLI_EXIT_INTERNAL;
    }
    tide_registry_row rows[MAX_ROWS];
    size_t n = tide_registry_rows(registry, rows, MAX_ROWS);
    if (n > MAX_ROWS) n = MAX_ROWS;
    if (as_json) return print_rows_json(rows, n);
    printf("%-8s %-13s %-14s %9s  %s\n", "device", "kind", "allocator", "alignment", "what the kind is for");
    for (size_t i = 0; i < n; i++) {
        char device[16];
        printf("%-8s %-13s %-14s %9zu  %s\n", tide_device_format(rows[i].device, device, sizeof device),
               tide_memory_kind_name(rows[i].kind), tide_allocator_name(rows[i].allocator),
               tide_memory_kind_alignment(rows[i].kind, rows[i].device), tide_memory_kind_purpose(rows[i].kind));
    }
    return CLI_EXIT_OK;
}

static int run_devices(int argc, char **argv) {
    bool as_json = false;
    const int code = parse(&cli_command_devices, argc, argv, &as_json);
    if (code >= 0) return code;
    static const tide_device known[] = {{TIDE_DEVICE_CPU, 0}, {TIDE_DEVICE_CUDA, 0}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char name[16];
        tide_error err = TIDE_ERROR_INIT;
        const bool here = tide_device_require(known[i], &err) == TIDE_OK;
        tide_device_format(known[i], name, sizeof name);
        if (!as_json) printf("%-8s %s%s\n", name, here ? "available" : "", here ? "" : err.msg);
        json_t *row = json_object();
        json_object_set_new(row, "device", json_string(name));
        json_object_set_new(row, "available", json_boolean(here));
        json_object_set_new(row, "reason", here ? json_null() : json_string(err.msg));
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
