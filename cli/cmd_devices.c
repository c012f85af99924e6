// SPDX-License-Identifier: MIT
//
// tidemark devices: what this machine and this build have, or exactly what is missing. Asking takes no memory of a
// device.
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/device/backend.h"
#include "core/device/plugin.h"

static const struct option option_table[] = {
    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
static const char help[] = "  --json              print the table as JSON\n";
const cli_command cli_command_devices = {
    "devices", "[--json]", "Which devices this machine and build have", help, option_table, CLI_OPERANDS_NONE, run};

/// What is known of a device that is there; all zero of one that tells nothing (the CPU).
static tide_status ask_facts(tide_device device, tide_device_facts *out, tide_error *err) {
    void *self;
    const tide_device_ops *ops = tide_device_find(device, &self);
    *out = (tide_device_facts){0};
    return ops != NULL && ops->facts != NULL ? ops->facts(self, device.index, out, err) : TIDE_OK;
}

/// "available  NVIDIA H100, 79.2 GiB, CUDA 13.0, maps memory by 2 MiB, has a pool"
static void print_row(const char *name, const tide_device_facts *f, const char *why, const char *hint) {
    char total[24], step[24];
    if (why != NULL) {
        printf("%-8s %s\n", name, why);
        if (hint[0] != '\0') printf("%-8s hint: %s\n", "", hint);
        return;
    }
    printf("%-8s available", name);
    if (f->name[0] != '\0') printf("  %s", f->name);
    if (f->total_bytes > 0) printf(", %s", tide_format_bytes(f->total_bytes, total, sizeof total));
    if (f->driver[0] != '\0') printf(", driver: %s", f->driver);
    if (f->map_step_bytes > 0) printf(", maps memory by %s", tide_format_bytes(f->map_step_bytes, step, sizeof step));
    if (f->name[0] != '\0') printf(", %s", f->has_pool ? "has a pool" : "no pool");
    putchar('\n');
}

static void add_row(tide_json_out *j, const char *name, const tide_device_facts *f, const char *why) {
    const bool is_known = why == NULL && f->name[0] != '\0';
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "device", name);
    tide_json_bool(j, "available", why == NULL);
    tide_json_text(j, "reason", why);
    tide_json_text_or_null(j, "name", f->name);
    tide_json_text_or_null(j, "driver", f->driver);
    tide_json_u64_if(j, "total_bytes", is_known, f->total_bytes);
    tide_json_u64_if(j, "map_step_bytes", is_known && f->map_step_bytes > 0, f->map_step_bytes);
    if (is_known)
        tide_json_bool(j, "pool", f->has_pool);
    else
        tide_json_null(j, "pool");
    tide_json_close(j, '}');
}

/// One device, here or not. @param j  NULL: print
static void show(tide_json_out *j, tide_device device) {
    char name[32], why[sizeof((tide_error *)0)->msg + sizeof((tide_error *)0)->note + 2];
    tide_error err = TIDE_ERROR_INIT;
    tide_device_facts facts = {0};
    tide_status st = tide_device_load(device, &err);
    if (st == TIDE_OK) st = ask_facts(device, &facts, &err);
    snprintf(why, sizeof why, "%s%s%s", err.msg, err.note[0] != '\0' ? ": " : "", err.note);
    tide_device_format(device, name, sizeof name);
    const char *reason = st == TIDE_OK ? NULL : why;
    if (j != NULL)
        add_row(j, name, &facts, reason);
    else
        print_row(name, &facts, reason, err.hint);
}

/// The CPU, and every device of CUDA; the first one of these when there is none, with the reason.
static void show_all(tide_json_out *j) {
    show(j, TIDE_CPU);
    int32_t index = 0;
    do {
        show(j, (tide_device){TIDE_DEVICE_CUDA, index++});
    } while (tide_device_require((tide_device){TIDE_DEVICE_CUDA, index}, NULL) == TIDE_OK);
}

static int run(int argc, char **argv) {
    bool as_json = false;
    const int code = cli_parse_json_alone(&cli_command_devices, argc, argv, &as_json);
    if (code >= 0) return code;
    if (!as_json) {
        show_all(NULL);
        return CLI_EXIT_OK;
    }
    tide_text text = {0};
    tide_json_out doc = cli_document_begin("devices", &text);
    tide_json_open(&doc, "devices", '[');
    show_all(&doc);
    tide_json_close(&doc, ']');
    cli_document_end(&doc);
    return cli_document_print(&text);
}
