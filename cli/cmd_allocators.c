// SPDX-License-Identifier: MIT
//
// tidemark allocators: what serves which memory.
#include <inttypes.h>
#include <stdio.h>

#include "cli/memory_report.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/device/plugin.h"
#include "core/device/sim_device.h"
#include "core/memory/allocators/allocators.h"

static int run_allocators(int argc, char **argv);

enum { OPT_DEVICE = 3000, OPT_JSON };
static const char help[] =
    "  --device D          those of one device, as `tidemark devices` lists them; it has to be there. Or sim:\n"
    "                      addresses without memory, for `tidemark replay`\n"
    "  --json              print the table as JSON\n";
static const struct option option_table[] = {{"device", required_argument, NULL, OPT_DEVICE},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

const cli_command cli_command_allocators = {
    "allocators",      "[--device D] [--json]", "Which allocator serves which memory kind", help, option_table,
    CLI_OPERANDS_NONE, run_allocators};

typedef struct options {
    bool has_device, as_json;
    tide_device device; ///< whose names are listed; the CPU where none was given
} options;

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

static void add_rows(tide_json_out *j, const tide_registry_row *rows, size_t n) {
    tide_json_open(j, "allocators", '[');
    for (size_t i = 0; i < n; i++) {
        char device[32];
        tide_allocator_stats stats;
        tide_allocator_props props;
        tide_allocator_get_stats(rows[i].allocator, &stats);
        tide_allocator_get_props(rows[i].allocator, &props);
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "device", tide_device_format(rows[i].device, device, sizeof device));
        tide_json_text(j, "kind", tide_memory_kind_name(rows[i].kind));
        tide_json_text(j, "allocator", tide_allocator_name(rows[i].allocator));
        tide_json_i64(j, "priority", rows[i].priority);
        tide_json_u64(j, "align_bytes", tide_memory_kind_alignment(rows[i].kind, rows[i].device));
        cli_json_props(j, &props);
        cli_json_stats(j, &stats);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
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

static void add_named(tide_json_out *j, const char *name, tide_allocator *a, const char *why) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "name", name);
    tide_json_text(j, "reason", why);
    if (a != NULL) {
        tide_allocator_props props;
        tide_allocator_stats stats;
        tide_allocator_get_props(a, &props);
        tide_allocator_get_stats(a, &stats);
        cli_json_props(j, &props);
        cli_json_stats(j, &stats);
    }
    tide_json_close(j, '}');
}

static void print_named(const char *name, tide_allocator *a, const char *why) {
    if (a == NULL) {
        printf("%-24s not here: %s\n", name, why);
        return;
    }
    tide_allocator_props props;
    tide_allocator_get_props(a, &props);
    printf("%-24s %5zu  ", name, props.align_bytes);
    print_props(&props);
    printf("  %s\n", props.what);
}

/// Lists the values of --allocator on a device. Each allocator is created to ask for its properties; what the device
/// lacks for one is said. @param j  an open array; NULL: print instead
static tide_status show_named(tide_json_out *j, tide_device device) {
    if (j == NULL) printf("\n%-24s %5s  " PROPS_HEAD "  what\n", "--allocator", "align");
    const char *name;
    for (size_t i = 0; (name = tide_allocator_name_on(device, i)) != NULL; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        const tide_status st = tide_allocator_create_on(device, name, &a, &err);
        if (st != TIDE_OK && st != TIDE_ERR_NOT_IMPLEMENTED) {
            cli_print_error(&err);
            return st;
        }
        const char *const why = a == NULL ? err.msg : NULL;
        if (j != NULL)
            add_named(j, name, a, why);
        else
            print_named(name, a, why);
        tide_allocator_unref(a);
    }
    return TIDE_OK;
}

/// The rule of (device, kind), or 0 where the kind is not legal.
static size_t rule(tide_memory_kind kind, tide_device device) {
    return tide_memory_kind_check(kind, device, NULL) == TIDE_OK ? tide_memory_kind_alignment(kind, device) : 0;
}

static void add_rules(tide_json_out *j) {
    tide_json_open(j, "alignment", '[');
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        for (size_t d = 0; d < N_RULED; d++) {
            const size_t align = rule((tide_memory_kind)k, ruled[d]);
            if (align == 0) continue;
            char device[32];
            tide_json_open(j, NULL, '{');
            tide_json_text(j, "kind", tide_memory_kind_name((tide_memory_kind)k));
            tide_json_text(j, "device", tide_device_format(ruled[d], device, sizeof device));
            tide_json_u64(j, "align_bytes", align);
            tide_json_close(j, '}');
        }
    }
    tide_json_close(j, ']');
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

static void print_registry(const tide_registry_row *rows, size_t n, const options *o) {
    char device[32];
    if (o->has_device && n == 0)
        printf("no kind of memory is served on %s: allocators are made by name there\n",
               tide_device_format(o->device, device, sizeof device));
    else
        print_rows(rows, n);
}

static int show_allocators(const tide_registry_row *rows, size_t n, const options *o) {
    if (!o->as_json) {
        print_registry(rows, n, o);
        print_rules();
        return cli_exit_code(show_named(NULL, o->device));
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("allocators", &text);
    add_rows(&j, rows, n);
    add_rules(&j);
    tide_json_open(&j, "named", '[');
    const tide_status st = show_named(&j, o->device);
    if (st != TIDE_OK) {
        tide_text_deinit(&text);
        return cli_exit_code(st);
    }
    tide_json_close(&j, ']');
    cli_document_end(&j);
    return cli_document_print(&text);
}

/// Rows of the device that is asked for, moved to the front. @return how many
static size_t keep_rows(tide_registry_row *rows, size_t n, const options *o) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!o->has_device || tide_device_equal(rows[i].device, o->device)) rows[kept++] = rows[i];
    }
    return kept;
}

static int show_all(const options *o) {
    tide_registry *registry = tide_registry_default();
    const size_t n = tide_registry_rows(registry, NULL, 0);
    tide_registry_row *rows = tide_host_calloc(n + 1, sizeof *rows);
    if (rows == NULL) {
        fputs("error: out of memory: no memory for the table\n", stderr);
        return CLI_EXIT_DOES_NOT_FIT;
    }
    tide_registry_rows(registry, rows, n);
    const int shown = show_allocators(rows, keep_rows(rows, n, o), o);
    tide_host_free(rows);
    return shown;
}

static int run_allocators(int argc, char **argv) {
    const cli_command *cmd = &cli_command_allocators;
    options o = {.device = TIDE_CPU};
    tide_error err = TIDE_ERROR_INIT;
    int c;
    while ((c = cli_next_option(cmd, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c != OPT_DEVICE && c != OPT_JSON) return CLI_EXIT_USAGE;
        if (c == OPT_JSON) o.as_json = true;
        if (c != OPT_DEVICE) continue;
        o.has_device = true;
        if (tide_sim_device_parse(optarg, &o.device, &err) != TIDE_OK) return cli_usage(cmd, "--device: %s", err.msg);
    }
    if (optind != argc) return cli_usage(cmd, "no FILE is wanted here");
    return tide_device_load(o.device, &err) == TIDE_OK ? show_all(&o) : cli_fail(&err);
}
