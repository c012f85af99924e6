// SPDX-License-Identifier: MIT
//
// The facts of a trace: what it holds, of whom, and what it lacks. See trace_view.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"

#define NAME TIDE_UNIT_NAME
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define DURATION TIDE_UNIT_DURATION

/// Everything that is printed; [n_…] arrays are owned.
typedef struct facts {
    tide_trace_info info;
    cli_span span;
    cli_span whole;
    uint64_t peak_bytes, whole_bytes;
    cli_moment peak, whole_peak; // of the span, and of the whole trace
    tide_trace_kind *kinds;
    size_t n_kinds;
    tide_trace_run *runs;
    size_t n_runs;
    tide_trace_used *run_peaks; // [n_runs]
    tide_trace_mark *marks;
    size_t n_marks;
} facts;

static tide_status read_facts(tide_trace *t, int64_t run_id, facts *f, tide_error *err) {
    TIDE_TRY(tide_trace_get_info(t, &f->info, err));
    TIDE_TRY(cli_trace_span(t, run_id, &f->span, err));
    TIDE_TRY(cli_trace_span(t, 0, &f->whole, err));
    TIDE_TRY(cli_moment_of(t, &f->span, "peak", &f->peak, err));
    TIDE_TRY(cli_moment_of(t, &f->whole, "peak", &f->whole_peak, err));
    TIDE_TRY(tide_trace_peak(t, f->span.run_id, -1, &f->peak_bytes, NULL, err));
    TIDE_TRY(tide_trace_peak(t, 0, -1, &f->whole_bytes, NULL, err));
    TIDE_TRY(tide_trace_kinds(t, f->span.run_id, &f->kinds, &f->n_kinds, err));
    TIDE_TRY(tide_trace_runs(t, &f->runs, &f->n_runs, err));
    TIDE_TRY(TIDE_NEW(&f->run_peaks, f->n_runs + 1, err, "for %zu runs", f->n_runs));
    for (size_t i = 0; i < f->n_runs; i++) {
        TIDE_TRY(tide_trace_fullest(t, f->runs[i].id, SIZE_MAX, &f->run_peaks[i], err));
    }
    return tide_trace_marks(t, &f->marks, &f->n_marks, err);
}

static void facts_deinit(facts *f) {
    tide_trace_kinds_free(f->kinds);
    tide_trace_runs_free(f->runs);
    tide_host_free(f->run_peaks);
    tide_trace_marks_free(f->marks);
}

static const char *state_name(tide_trace_state s) {
    return s == TIDE_TRACE_COMPLETE ? "complete" : s == TIDE_TRACE_CUT_SHORT ? "cut short" : "recording";
}

/// A value of table meta; "" when it is not there.
static const char *meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes) {
    if (tide_trace_meta(t, key, buf, buf_bytes, NULL) != TIDE_OK) buf[0] = '\0';
    return buf;
}

static uint64_t meta_number(tide_trace *t, const char *key) {
    char text[32];
    return strtoull(meta(t, key, text, sizeof text), NULL, 10);
}

/// Why a block that counts as never freed may have been freed; "" if there is no reason. An allocation that comes late,
/// after its own free, makes that free contradict the events before it, so it is refused, and the block stays.
static const char *leak_doubt(const tide_trace_info *i) {
    if (i->n_lost > 0) return "events were lost";
    return i->n_late > 0 && i->n_problems > 0 ? "events came late" : "";
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

// ---- text ----

static void print_origin(tide_trace *t, const cli_trace_options *o, const facts *f) {
    char path[4096], utc[64], tool[64], version[64], bytes[24], reason[512];
    printf("trace      %s, version %s, %s\n", cli_clean(o->path, path, sizeof path),
           meta(t, "version", tool, sizeof tool), state_name(f->info.state));
    if (f->info.reason[0] != '\0') printf("           %s\n", cli_clean(f->info.reason, reason, sizeof reason));
    meta(t, "created_utc", utc, sizeof utc);
    meta(t, "created_by", tool, sizeof tool);
    meta(t, "tool_version", version, sizeof version);
    char clean[3][64];
    if (utc[0] != '\0')
        printf("recorded   %s%s%s %s\n", cli_clean(utc, clean[0], sizeof clean[0]), tool[0] != '\0' ? " by " : "",
               cli_clean(tool, clean[1], sizeof clean[1]), cli_clean(version, clean[2], sizeof clean[2]));
    const uint64_t in_chunks = f->info.n_events - (f->info.first_kept_event - 1) - f->info.n_rows;
    printf("events     %" PRIu64 " in %s: %" PRIu64 " as rows, ", f->info.n_events,
           tide_format_bytes(f->info.file_bytes, bytes, sizeof bytes), f->info.n_rows);
    printf("%" PRIu64 " in %" PRIu64 " chunk%s\n", f->info.n_chunks > 0 ? in_chunks : 0, f->info.n_chunks,
           plural(f->info.n_chunks));
    if (f->info.first_kept_event > 1)
        printf("           the first %" PRIu64 " were left out to keep the file small; totals count them\n",
               f->info.first_kept_event - 1);
}

static void print_health(tide_trace *t, const facts *f) {
    const tide_trace_info *i = &f->info;
    char a[24], b[24], c[24], place[96];
    printf("span       %s: %" PRIu32 " process%s, %" PRIu32 " thread%s, %" PRIu32 " run%s\n",
           tide_format_ns(i->end_ns - i->begin_ns, "us", a, sizeof a), i->n_processes, i->n_processes == 1 ? "" : "es",
           i->n_threads, plural(i->n_threads), i->n_runs, plural(i->n_runs));
    printf("lost       %" PRIu64 " event%s on full rings\n", i->n_lost, plural(i->n_lost));
    printf("problems   %" PRIu64 " event%s that contradict another\n", i->n_problems, plural(i->n_problems));
    if (i->n_late > 0)
        printf("late       %" PRIu64 " event%s came later than the trace waited; their own times are in view late\n",
               i->n_late, plural(i->n_late));
    const char *doubt = i->n_leaked > 0 ? leak_doubt(i) : "";
    printf("blocks     %" PRIu64 ", %" PRIu64 " never freed%s%s%s\n", i->n_blocks, i->n_leaked,
           doubt[0] != '\0' ? "; " : "", doubt, doubt[0] != '\0' ? ": some may have been freed" : "");
    const uint64_t feed = meta_number(t, "feed_bytes"), own = meta_number(t, "own_peak_bytes");
    if (feed > 0)
        printf("recorder   rings %s, its own peak %s, threads waited %s\n", tide_format_bytes(feed, a, sizeof a),
               tide_format_bytes(own, b, sizeof b), tide_format_ns(meta_number(t, "blocked_ns"), "us", c, sizeof c));
    printf("peak       %s at %s\n", tide_format_bytes(f->peak_bytes, a, sizeof a),
           cli_moment_place(&f->peak, &f->span, place, sizeof place));
    if (f->span.run_id > 0 && f->whole_bytes != f->peak_bytes)
        printf("whole      %s at %s\n", tide_format_bytes(f->whole_bytes, a, sizeof a),
               cli_moment_place(&f->whole_peak, &f->whole, place, sizeof place));
    if (f->span.run_id > 0 && f->n_kinds > 0)
        printf("kinds      of run %" PRId64 "; --whole has those of the whole trace\n", f->span.run_id);
}

// ---- tables ----

static const tide_column kind_columns[] = {
    {"kind", "kind", TIDE_UNIT_KIND, TIDE_AT(tide_trace_kind, kind)},
    {"device", "device", NAME, TIDE_TEXT_AT(tide_trace_kind, device)},
    {"requested_bytes", NULL, BYTES, TIDE_AT(tide_trace_kind, requested_bytes)},
    {"peak_bytes", "peak bytes", BYTES, TIDE_AT(tide_trace_kind, peak_bytes)},
    {"reserved_peak_bytes", "active", BYTES, TIDE_AT(tide_trace_kind, peak_reserved_bytes)},
    {"live_at_end_bytes", "at the end", BYTES, TIDE_AT(tide_trace_kind, live_at_end_bytes)},
    {NULL, "allocated", BYTES, TIDE_AT(tide_trace_kind, requested_bytes)},
    {"allocations", "allocs", COUNT, TIDE_AT(tide_trace_kind, n_allocs)},
    {"frees", "frees", COUNT, TIDE_AT(tide_trace_kind, n_frees)},
};

static tide_table kinds_of(const facts *f) {
    return (tide_table){.name = "kinds",
                        TIDE_COLUMNS(kind_columns),
                        .rows = f->kinds,
                        .row_bytes = sizeof *f->kinds,
                        .n_rows = f->n_kinds,
                        .is_exact = true};
}

typedef struct run_row {
    int64_t id;
    const char *model, *source, *mode, *strategy, *device;
    uint64_t begin_ns, end_ns, since_ns, took_ns, peak_bytes, peak_since_ns, peak_event, plan_bytes;
} run_row;

static const tide_column run_columns[] = {
    {"id", "run", COUNT, TIDE_AT(run_row, id)},
    {"model", "model", NAME, TIDE_AT(run_row, model), .may_be_cut = true},
    {"source", NULL, NAME, TIDE_AT(run_row, source)},
    {"mode", "mode", NAME, TIDE_AT(run_row, mode)},
    {"strategy", "plan", TIDE_UNIT_TEXT, TIDE_AT(run_row, strategy), .may_be_cut = true},
    {"device", NULL, NAME, TIDE_AT(run_row, device)},
    {"begin_ns", NULL, DURATION, TIDE_AT(run_row, begin_ns)},
    {"end_ns", NULL, DURATION, TIDE_AT(run_row, end_ns)},
    {NULL, "begin", DURATION, TIDE_AT(run_row, since_ns)},
    {NULL, "took", DURATION, TIDE_AT(run_row, took_ns)},
    {"peak_bytes", "peak", BYTES, TIDE_AT(run_row, peak_bytes)},
    {"peak_since_begin_ns", NULL, DURATION, TIDE_AT(run_row, peak_since_ns)},
    {"peak_event", NULL, COUNT, TIDE_AT(run_row, peak_event)},
    {"plan_bytes", "planned", BYTES, TIDE_AT(run_row, plan_bytes)},
};

static const void *run_row_at(const tide_table *t, size_t i, void *room) {
    const facts *f = t->data;
    const tide_trace_run *r = &f->runs[i];
    const tide_trace_used *peak = &f->run_peaks[i];
    run_row *row = room;
    *row = (run_row){.id = r->id,
                     .model = r->model,
                     .source = r->source,
                     .mode = r->mode,
                     .strategy = r->strategy,
                     .device = r->device,
                     .begin_ns = r->begin_ns,
                     .end_ns = r->end_ns,
                     .since_ns = cli_since(&f->span, r->begin_ns),
                     .took_ns = r->end_ns - r->begin_ns,
                     .peak_bytes = peak->live_bytes,
                     .peak_since_ns = cli_since(&f->span, peak->t_ns),
                     .peak_event = peak->event,
                     .plan_bytes = r->has_plan ? r->plan_bytes : TIDE_UNKNOWN_BYTES};
    return row;
}

static tide_table runs_of(const facts *f) {
    return (tide_table){
        .name = "runs", TIDE_COLUMNS(run_columns), .row = run_row_at, .n_rows = f->n_runs, .data = f, .blank = "-"};
}

static void mark_since(const void *row, tide_cell *v) {
    const facts *f = v->table->data;
    tide_cell_count(v, cli_since(&f->span, ((const tide_trace_mark *)row)->t_ns));
}

static const tide_column mark_columns[] = {
    {"name", "mark", NAME, TIDE_AT(tide_trace_mark, name), .may_be_cut = true},
    {"t_ns", NULL, DURATION, TIDE_AT(tide_trace_mark, t_ns)},
    {"since_begin_ns", "at", DURATION, .get = mark_since},
    {"event", "event", COUNT, TIDE_AT(tide_trace_mark, event_id)},
};

static tide_table marks_of(const facts *f) {
    return (tide_table){.name = "marks",
                        TIDE_COLUMNS(mark_columns),
                        .rows = f->marks,
                        .row_bytes = sizeof *f->marks,
                        .n_rows = f->n_marks,
                        .data = f};
}

/// Nothing for a table without rows.
static void print_table(const tide_table *t) {
    if (t->n_rows == 0) return;
    putchar('\n');
    cli_table_print(t, "  ", stdout);
}

// ---- JSON ----

static void add_peak(tide_json_out *j, const char *key, const cli_span *span, const cli_moment *peak, uint64_t bytes) {
    tide_json_open(j, key, '{');
    tide_json_u64(j, "bytes", bytes);
    tide_json_u64(j, "t_ns", peak->t_ns);
    tide_json_u64(j, "since_begin_ns", cli_since(span, peak->t_ns));
    tide_json_u64(j, "event", peak->event);
    tide_json_u64_if(j, "run", span->run_id > 0, (uint64_t)span->run_id);
    tide_json_close(j, '}');
}

static void add_meta(tide_json_out *j, tide_trace *t, const char *key) {
    char text[256];
    tide_json_text_or_null(j, key, meta(t, key, text, sizeof text));
}

static int facts_json(tide_trace *t, const cli_trace_options *o, const facts *f) {
    const tide_trace_info *i = &f->info;
    const tide_table tables[] = {kinds_of(f), runs_of(f), marks_of(f)};
    tide_text text = {0};
    tide_json_out j = cli_document_begin("trace_facts", &text);
    tide_json_text(&j, "file", o->path);
    tide_json_u64(&j, "trace_version", meta_number(t, "version"));
    tide_json_text(&j, "state", state_name(i->state));
    tide_json_text_or_null(&j, "reason", i->reason);
    add_meta(&j, t, "created_by");
    add_meta(&j, t, "tool_version");
    add_meta(&j, t, "created_utc");
    tide_json_u64(&j, "file_bytes", i->file_bytes);
    tide_json_u64(&j, "begin_ns", i->begin_ns);
    tide_json_u64(&j, "end_ns", i->end_ns);
    tide_json_u64(&j, "events", i->n_events);
    tide_json_u64(&j, "rows", i->n_rows);
    tide_json_u64(&j, "chunks", i->n_chunks);
    tide_json_u64(&j, "first_kept_event", i->first_kept_event);
    tide_json_u64(&j, "processes", i->n_processes);
    tide_json_u64(&j, "threads", i->n_threads);
    tide_json_u64(&j, "lost", i->n_lost);
    tide_json_u64(&j, "problems", i->n_problems);
    tide_json_u64(&j, "late", i->n_late);
    tide_json_u64(&j, "blocks", i->n_blocks);
    tide_json_u64(&j, "leaks", i->n_leaked);
    tide_json_bool(&j, "leaks_uncertain", leak_doubt(i)[0] != '\0');
    tide_json_u64(&j, "feed_bytes", meta_number(t, "feed_bytes"));
    tide_json_u64(&j, "own_peak_bytes", meta_number(t, "own_peak_bytes"));
    tide_json_u64(&j, "blocked_ns", meta_number(t, "blocked_ns"));
    add_peak(&j, "peak", &f->span, &f->peak, f->peak_bytes);
    add_peak(&j, "whole_peak", &f->whole, &f->whole_peak, f->whole_bytes);
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) tide_table_json(&tables[k], false, &j);
    tide_error err = TIDE_ERROR_INIT;
    if (cli_trace_devices(t, &f->span, NULL, &j, &err) != TIDE_OK) {
        tide_text_deinit(&text);
        return cli_fail(&err);
    }
    cli_document_end(&j);
    return cli_document_print(&text);
}

int cli_trace_facts(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    facts f = {0};
    int code = CLI_EXIT_OK;
    if (read_facts(t, o->run_id, &f, &err) != TIDE_OK) {
        code = cli_fail(&err);
    } else if (o->json) {
        code = facts_json(t, o, &f);
    } else {
        print_origin(t, o, &f);
        print_health(t, &f);
        const tide_table tables[] = {kinds_of(&f), runs_of(&f), marks_of(&f)};
        for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) print_table(&tables[i]);
        if (cli_trace_devices(t, &f.span, NULL, NULL, &err) != TIDE_OK) code = cli_fail(&err);
    }
    facts_deinit(&f);
    return code;
}

// ---- check ----

/// What a sound file does not hold: one finding for each.
static void find_gaps(const tide_trace_info *i, tide_text *out) {
    if (i->state == TIDE_TRACE_CUT_SHORT)
        tide_text_addf(out, "recording ended early: %s\n", i->reason[0] != '\0' ? i->reason : "no reason is noted");
    if (i->state == TIDE_TRACE_RECORDING) tide_text_add(out, "it is not finished\n");
    if (i->n_lost > 0)
        tide_text_addf(out, "%" PRIu64 " event%s lost on full rings\n", i->n_lost, i->n_lost == 1 ? " was" : "s were");
    if (i->n_problems > 0)
        tide_text_addf(out, "%" PRIu64 " event%s another: table problem\n", i->n_problems,
                       i->n_problems == 1 ? " contradicts" : "s contradict");
}

static void add_lines(tide_json_out *j, const char *key, const char *text) {
    char line[1024];
    tide_json_open(j, key, '[');
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        tide_json_text(j, NULL, line);
    }
    tide_json_close(j, ']');
}

int cli_trace_check(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_info info;
    if (tide_trace_check(t, &err) != TIDE_OK || tide_trace_get_info(t, &info, &err) != TIDE_OK) return cli_fail(&err);
    tide_text findings = {0};
    find_gaps(&info, &findings);
    const bool whole = findings.len == 0;
    int code = CLI_EXIT_OK;
    if (o->json) {
        tide_text text = {.failed = findings.failed};
        tide_json_out j = cli_document_begin("trace_check", &text);
        tide_json_text(&j, "file", o->path);
        tide_json_text(&j, "verdict", whole ? "pass" : "fail");
        tide_json_u64(&j, "events", info.n_events);
        tide_json_u64(&j, "late", info.n_late);
        add_lines(&j, "findings", tide_text_str(&findings));
        cli_document_end(&j);
        code = cli_document_print(&text);
    } else {
        char path[4096];
        printf("%s: sound, %" PRIu64 " event%s%s\n%s", cli_clean(o->path, path, sizeof path), info.n_events,
               plural(info.n_events), whole ? "" : ", but not whole", tide_text_str(&findings));
        // Nothing is missing then: each is kept with both of its times.
        if (info.n_late > 0)
            printf("%" PRIu64 " event%s later than others that happened after %s: view late\n", info.n_late,
                   info.n_late == 1 ? " came" : "s came", info.n_late == 1 ? "it" : "them");
    }
    tide_text_deinit(&findings);
    return code == CLI_EXIT_OK && !whole ? CLI_EXIT_CHECK_FAILED : code;
}
