// SPDX-License-Identifier: MIT
//
// FILE on the command line. See input.h.
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/graph/import.h"
#include "core/memory/block.h"

static const char sqlite_magic[16] = "SQLite format 3";

const char *cli_input_name(const cli_input *in) {
    switch (in->kind) {
    case CLI_INPUT_ONNX:
        return "an ONNX model";
    case CLI_INPUT_GRAPH:
        return "graph text";
    case CLI_INPUT_PLAN:
        return "a plan";
    case CLI_INPUT_LIFETIMES:
        return "a lifetimes CSV";
    case CLI_INPUT_LIFETIMES_JSON:
        return "a list of lifetimes";
    case CLI_INPUT_FOREIGN_LIST:
        return tide_list_format_name(in->format);
    case CLI_INPUT_TRACE:
        return "a trace";
    }
    return "?";
}

bool cli_input_is_trace(const char *path) {
    if (strcmp(path, "-") == 0) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC); // and no stream: that takes memory
    if (fd < 0) return false;
    char head[sizeof sqlite_magic];
    const bool found =
        pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, sqlite_magic, sizeof head) == 0;
    close(fd);
    return found;
}

static size_t skip_blank(const char *data, size_t len) {
    size_t i = 0;
    if (len >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0) i = 3; // byte order mark
    while (i < len && strchr(" \t\r\n", data[i]) != NULL && data[i] != '\0') i++;
    return i;
}

/// Text from its first byte on, as a protobuf never is: its first byte is a field tag, a control character.
static bool looks_like_text(const char *data, size_t len) {
    const size_t n = len < 256 ? len : 256;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)data[i];
        if (c < 0x20 && c != '\t' && c != '\r' && c != '\n') return false;
    }
    return n > 0 && memchr(data, ',', len < 4096 ? len : 4096) != NULL;
}

/// Whether the first key "schema" of a JSON document has this value; by contract it comes first.
static bool schema_is(const char *json, const char *value) {
    const char *at = strstr(json, "\"schema\"");
    if (at == NULL) return false;
    at += strlen("\"schema\"");
    at += strspn(at, " \t\r\n");
    if (*at++ != ':') return false;
    at += strspn(at, " \t\r\n");
    const size_t n = strlen(value);
    return at[0] == '"' && strncmp(at + 1, value, n) == 0 && at[1 + n] == '"';
}

enum { HEAD_BYTES = 4096 };

/// Maps an ONNX model or a foreign list. Leaves out->file NULL where the file is something else, no plain file, or on a
/// file system that maps none: then it is read.
static void map_model(const char *path, cli_input *out) {
    char head[HEAD_BYTES];
    struct stat info;
    if (strcmp(path, "-") == 0) return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    const bool is_plain = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const ssize_t got = is_plain ? pread(fd, head, sizeof head, 0) : 0;
    close(fd);
    if (got <= 0) return;
    const size_t n = (size_t)got, start = skip_blank(head, n);
    out->format = tide_list_look(head, (size_t)info.st_size < n ? n : (size_t)info.st_size);
    const bool is_text = start == n || head[start] == '{' || looks_like_text(head + start, n - start);
    if (out->format == TIDE_LIST_UNKNOWN && is_text) return;
    if (tide_block_map_file(path, 0, 0, TIDE_KIND_HOST_PAGEABLE, &out->file, NULL) != TIDE_OK) return;
    out->data = tide_block_data(out->file); // read only
    out->len = out->file->mem.requested_bytes;
    out->format = tide_list_look(out->data, out->len);
    out->kind = out->format != TIDE_LIST_UNKNOWN ? CLI_INPUT_FOREIGN_LIST : CLI_INPUT_ONNX;
}

static tide_status classify(cli_input *in, tide_error *err) {
    const size_t start = skip_blank(in->data, in->len);
    const char *head = in->data + start;
    const size_t left = in->len - start;
    if (left == 0) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is empty", in->path);
    in->format = tide_list_look(in->data, in->len);
    if (in->format != TIDE_LIST_UNKNOWN) {
        in->kind = CLI_INPUT_FOREIGN_LIST;
        return TIDE_OK;
    }
    // The full parsers report what is wrong inside; here only which of them to ask.
    if (*head == '{')
        in->kind = schema_is(head, "tidemark.plan")        ? CLI_INPUT_PLAN
                   : schema_is(head, "tidemark.lifetimes") ? CLI_INPUT_LIFETIMES_JSON
                                                           : CLI_INPUT_GRAPH;
    else
        in->kind = looks_like_text(head, left) ? CLI_INPUT_LIFETIMES : CLI_INPUT_ONNX;
    return TIDE_OK;
}

tide_status cli_input_open(const char *path, cli_input *out, tide_error *err) {
    *out = (cli_input){.path = path};
    const char *trace;
    TIDE_TRY(cli_trace_path(path, &trace, err));
    if (cli_input_is_trace(trace)) {
        out->kind = CLI_INPUT_TRACE;
        return TIDE_OK;
    }
    map_model(path, out);
    if (out->file != NULL) return TIDE_OK;
    TIDE_TRY(tide_read_file(path, 0, &out->data, &out->len, err));
    const tide_status st = classify(out, err);
    if (st != TIDE_OK) cli_input_close(out);
    return st;
}

void cli_input_close(cli_input *in) {
    if (in->file == NULL) tide_host_free(in->data);
    tide_block_unref(in->file);
    in->file = NULL;
    in->data = NULL;
    in->len = 0;
}

/// What a file that is no trace is instead, in the place of `err`; it stays where that is not known.
static tide_status say_what_it_is(const char *path, tide_error *err) {
    cli_input in;
    if (strcmp(path, "-") == 0 || cli_input_open(path, &in, NULL) != TIDE_OK) return TIDE_ERR_BAD_INPUT;
    // A text of any other kind is taken for CSV.
    if (in.kind != CLI_INPUT_TRACE && in.kind != CLI_INPUT_LIFETIMES) {
        tide_error_clear(err);
        (void)TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is %s, and not a tidemark trace: nothing was recorded", path,
                        cli_input_name(&in));
        tide_error_where(err, "%s", path);
        if (in.kind == CLI_INPUT_PLAN)
            tide_error_hint(err, "tidemark run --plan PLAN -o trace.db MODEL records a run of it");
        else if (in.kind == CLI_INPUT_ONNX || in.kind == CLI_INPUT_GRAPH)
            tide_error_hint(err, "tidemark run -o trace.db MODEL records a run of it");
        else
            tide_error_hint(err, "tidemark plan, tui and report read it");
    }
    cli_input_close(&in);
    return TIDE_ERR_BAD_INPUT;
}

tide_status cli_trace_open(const char *path, tide_trace **out, tide_error *err) {
    TIDE_TRY(cli_trace_path(path, &path, err));
    cli_log_notes(true);
    tide_trace *t = NULL;
    tide_status st = tide_trace_open(path, &t, err);
    cli_log_notes(false);
    if (st == TIDE_ERR_BAD_INPUT && !cli_input_is_trace(path)) return say_what_it_is(path, err);
    TIDE_TRY(st);
    tide_trace_hold(t);
    st = tide_trace_refresh(t, NULL, err);
    if (st != TIDE_OK)
        tide_trace_close(t);
    else
        *out = t;
    return st;
}

tide_status cli_input_require_graph(const cli_input *in, tide_error *err) {
    if (in->kind == CLI_INPUT_ONNX || in->kind == CLI_INPUT_GRAPH) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is %s; a model or graph text is needed here", in->path,
                     cli_input_name(in));
}

/// What planning may take by itself where no option says.
static uint64_t default_own_bytes(size_t file_bytes) { return ((uint64_t)64 << 20) + 20 * (uint64_t)file_bytes; }

tide_status cli_input_sizes(cli_input *in, const tide_contents *contents, uint64_t own_bytes, tide_graph **out,
                            tide_error *err) {
    TIDE_TRY(cli_input_require_graph(in, err));
    const size_t max = own_bytes != 0 ? own_bytes : default_own_bytes(in->len);
    const tide_status st =
        in->file != NULL             ? tide_graph_sizes_from_onnx_mapped(in->file, in->path, contents, max, out, err)
        : in->kind == CLI_INPUT_ONNX ? tide_graph_sizes_from_onnx(in->data, in->len, in->path, max, out, err)
                                     : tide_graph_sizes_from_json(in->data, in->len, in->path, contents, max, out, err);
    if (st == TIDE_ERR_NOMEM && own_bytes == 0)
        tide_error_hint(err, "--own-memory SIZE lets planning take more than 64 MiB and 20 times the file");
    return st;
}

tide_status cli_input_graph(cli_input *in, tide_graph **out, tide_error *err) {
    TIDE_TRY(cli_input_require_graph(in, err));
    const tide_status st = in->file != NULL             ? tide_graph_from_onnx_mapped(in->file, in->path, out, err)
                           : in->kind == CLI_INPUT_ONNX ? tide_graph_from_onnx(in->data, in->len, in->path, out, err)
                                                        : tide_graph_from_json(in->data, in->len, in->path, out, err);
    if (!in->keep) cli_input_close(in); // the graph holds what it needs: do not keep bytes of the file beside it
    return st;
}
