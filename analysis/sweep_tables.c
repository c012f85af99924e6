// SPDX-License-Identifier: MIT
//
// See sweep_tables.h; docs/schemas/sweep.json is the schema.
#include "analysis/sweep_tables.h"

#include <string.h>

#define TEXT TIDE_UNIT_TEXT
#define NAME TIDE_UNIT_NAME
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define FLAG TIDE_UNIT_FLAG
#define DURATION TIDE_UNIT_DURATION

// ---- names of models ----

/// The last `n` parts of a path.
static const char *last_parts(const char *path, int n) {
    const char *at = path + strlen(path);
    while (at > path) {
        if (at[-1] == '/' && --n == 0) return at;
        at--;
    }
    return path;
}

static bool is_alone(const tide_sweep *s, const char *model, int n) {
    const char *short_name = last_parts(model, n);
    for (size_t i = 0; i < s->n_series; i++) {
        const char *other = s->series[i].model;
        if (strcmp(other, model) != 0 && strcmp(last_parts(other, n), short_name) == 0) return false;
    }
    return true;
}

const char *tide_sweep_model_name(const tide_sweep *s, const char *model) {
    // ONNX's own folders call every model the same.
    int n = strcmp(last_parts(model, 1), "model.onnx") == 0 ? 2 : 1;
    while (n < 8 && !is_alone(s, model, n)) n++;
    return is_alone(s, model, n) ? last_parts(model, n) : model;
}

// ---- points: the table's data is the sweep ----

static bool is_swept(const tide_sweep *s) { return s->extent != NULL && s->extent[0] != '\0'; }

_Static_assert(sizeof(tide_sweep_point) <= TIDE_ROW_BYTES, "a point has room");

/// The point, with what it does not know marked so: figures of one that failed, measurements of one that did not run.
static const void *point_row(const tide_table *t, size_t i, void *room) {
    const tide_sweep *s = t->data;
    tide_sweep_point *p = room;
    *p = s->points[i];
    if (p->error != NULL) {
        p->process_bytes = p->total_bytes = p->planned_bytes = p->weights_bytes = p->io_bytes = p->other_bytes =
            TIDE_UNKNOWN_BYTES;
        p->naive_bytes = p->lower_bound_bytes = p->proved_bytes = TIDE_UNKNOWN_BYTES;
        p->plan_time_ns = UINT64_MAX;
    }
    if (p->process_bytes == 0) p->process_bytes = TIDE_UNKNOWN_BYTES;
    if (!p->measured) p->measured_peak_bytes = p->time_ns = UINT64_MAX;
    if (!is_swept(s)) p->value = UINT64_MAX;
    return p;
}

static void point_proven(const void *row, tide_cell *v) {
    const tide_sweep_point *p = row;
    if (p->error == NULL) tide_cell_count(v, p->proven);
}

static void point_model(const void *row, tide_cell *v) {
    tide_cell_text(v, tide_sweep_model_name(v->table->data, ((const tide_sweep_point *)row)->model));
}

/// The sizes that are not swept: the swept one has a column of its own.
static const char *other_sizes(const tide_sweep *s, const tide_sweep_point *p) {
    if (!is_swept(s)) return p->sizes;
    const char *rest = strlen(p->sizes) > strlen(s->extent) ? strchr(p->sizes + strlen(s->extent), ' ') : NULL;
    return rest != NULL ? rest + 1 : "";
}

static void point_sizes(const void *row, tide_cell *v) { tide_cell_text(v, other_sizes(v->table->data, row)); }

enum { MODEL = 1, SIZES = 3, STRATEGY, ALIGN, SWEPT, PROCESS = 8, MEASURED = 17, RUN_TIME = 19, ERROR };

static const tide_column point_columns[] = {
    {"model", NULL, NAME, TIDE_AT(tide_sweep_point, model)},
    [MODEL] = {NULL, "model", TEXT, .get = point_model},
    {"sizes", NULL, NAME, TIDE_AT(tide_sweep_point, sizes)},
    [SIZES] = {NULL, "sizes", TEXT, .get = point_sizes},
    [STRATEGY] = {"strategy", "strategy", NAME, TIDE_AT(tide_sweep_point, strategy)},
    [ALIGN] = {"align_bytes", "align", COUNT, TIDE_AT(tide_sweep_point, align_bytes)},
    [SWEPT] = {"value", "value", COUNT, TIDE_AT(tide_sweep_point, value)},
    {"total_bytes", "total", BYTES, TIDE_AT(tide_sweep_point, total_bytes)},
    [PROCESS] = {"process_bytes", "process", BYTES, TIDE_AT(tide_sweep_point, process_bytes)},
    {"planned_bytes", "planned", BYTES, TIDE_AT(tide_sweep_point, planned_bytes)},
    {"weights_bytes", "weights", BYTES, TIDE_AT(tide_sweep_point, weights_bytes)},
    {"io_bytes", "inputs, outputs", BYTES, TIDE_AT(tide_sweep_point, io_bytes)},
    {"other_bytes", NULL, BYTES, TIDE_AT(tide_sweep_point, other_bytes)},
    {"naive_bytes", "naive", BYTES, TIDE_AT(tide_sweep_point, naive_bytes)},
    {"lower_bound_bytes", "lower bound", BYTES, TIDE_AT(tide_sweep_point, lower_bound_bytes)},
    {"proved_bytes", NULL, BYTES, TIDE_AT(tide_sweep_point, proved_bytes)},
    {"proven", "proven", FLAG, .get = point_proven, .is_right = true},
    [MEASURED] = {"measured_peak_bytes", "measured", BYTES, TIDE_AT(tide_sweep_point, measured_peak_bytes)},
    {"plan_time_ns", NULL, DURATION, TIDE_AT(tide_sweep_point, plan_time_ns)},
    [RUN_TIME] = {"time_ns", "time of a run", DURATION, TIDE_AT(tide_sweep_point, time_ns)},
    [ERROR] = {"error", "error", NAME, TIDE_AT(tide_sweep_point, error)},
    {"rank", NULL, COUNT, TIDE_AT(tide_sweep_point, rank)},
};
_Static_assert(sizeof point_columns <= TIDE_SWEEP_MAX_COLUMNS * sizeof(tide_column), "the columns have room");

/// A model, a strategy or an alignment that is the same everywhere is said once elsewhere.
static uint64_t hidden_columns(const tide_sweep *s) {
    bool other_model = false, other_strategy = false, other_align = false, run = false, error = false, sizes = false,
         process = false;
    for (size_t i = 0; i < s->n; i++) {
        const tide_sweep_point *p = &s->points[i];
        other_model |= strcmp(p->model, s->points[0].model) != 0;
        other_strategy |= strcmp(p->strategy, s->points[0].strategy) != 0;
        other_align |= p->align_bytes != s->points[0].align_bytes;
        run |= p->measured;
        error |= p->error != NULL;
        process |= p->process_bytes != 0;
        sizes |= other_sizes(s, p)[0] != '\0';
    }
    const struct {
        int column;
        bool shown;
    } shown[] = {{MODEL, other_model || !is_swept(s)},
                 {SIZES, sizes},
                 {STRATEGY, other_strategy},
                 {ALIGN, other_align},
                 {SWEPT, is_swept(s)},
                 {PROCESS, process},
                 {MEASURED, run},
                 {RUN_TIME, run},
                 {ERROR, error}};
    uint64_t hidden = 0;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (!shown[i].shown) hidden |= UINT64_C(1) << shown[i].column;
    return hidden;
}

void tide_sweep_points_of(const tide_sweep *s, tide_sweep_points *points) {
    memcpy(points->columns, point_columns, sizeof point_columns);
    points->columns[SWEPT].title = s->extent;
    points->table = (tide_table){.name = "points",
                                 .columns = points->columns,
                                 .n_columns = sizeof point_columns / sizeof point_columns[0],
                                 .row = point_row,
                                 .n_rows = s->n,
                                 .data = s,
                                 .hidden = hidden_columns(s)};
}

// ---- series and answers ----

static const tide_column series_columns[] = {
    {"model", NULL, NAME, TIDE_AT(tide_sweep_series, model)},
    {"sizes", NULL, NAME, TIDE_AT(tide_sweep_series, sizes)},
    {"strategy", NULL, NAME, TIDE_AT(tide_sweep_series, strategy)},
    {"align_bytes", NULL, COUNT, TIDE_AT(tide_sweep_series, align_bytes)},
    {"from", NULL, COUNT, TIDE_AT(tide_sweep_series, from)},
    {"n", NULL, COUNT, TIDE_AT(tide_sweep_series, n)},
};

static const void *answer_row(const tide_table *t, size_t i, void *room) {
    tide_sweep_answer *a = room;
    *a = ((const tide_sweep *)t->data)->answers[i];
    if (a->none_fits) a->value = a->needs_bytes = UINT64_MAX;
    if (a->is_open) a->next_value = a->next_bytes = UINT64_MAX;
    return a;
}
static void answer_ran(const void *row, tide_cell *v) {
    const tide_sweep_answer *a = row;
    if (a->tried && !a->none_fits) tide_cell_count(v, a->ran);
}
static void answer_next_ran(const void *row, tide_cell *v) {
    const tide_sweep_answer *a = row;
    if (a->tried && !a->is_open && !a->next_is_untried) tide_cell_count(v, a->next_ran);
}

static const tide_column answer_columns[] = {
    {"series", NULL, COUNT, TIDE_AT(tide_sweep_answer, series)},
    {"budget_bytes", NULL, COUNT, TIDE_AT(tide_sweep_answer, budget_bytes)},
    {"none_fits", NULL, FLAG, TIDE_AT(tide_sweep_answer, none_fits)},
    {"is_open", NULL, FLAG, TIDE_AT(tide_sweep_answer, is_open)},
    {"value", NULL, COUNT, TIDE_AT(tide_sweep_answer, value)},
    {"needs_bytes", NULL, BYTES, TIDE_AT(tide_sweep_answer, needs_bytes)},
    {"next_value", NULL, COUNT, TIDE_AT(tide_sweep_answer, next_value)},
    {"next_bytes", NULL, BYTES, TIDE_AT(tide_sweep_answer, next_bytes)},
    {"ran", NULL, FLAG, .get = answer_ran},
    {"next_ran", NULL, FLAG, .get = answer_next_ran},
};

void tide_sweep_write_json(const tide_sweep *s, bool indent, tide_text *out) {
    tide_json_out j = {.out = out, .indent = indent};
    tide_sweep_points points;
    tide_sweep_points_of(s, &points);
    const tide_table series = {.name = "series",
                               TIDE_COLUMNS(series_columns),
                               .rows = s->series,
                               .row_bytes = sizeof *s->series,
                               .n_rows = s->n_series},
                     answers = {.name = "answers",
                                TIDE_COLUMNS(answer_columns),
                                .row = answer_row,
                                .n_rows = s->n_answers,
                                .data = s};
    tide_json_open(&j, NULL, '{');
    tide_json_text(&j, "schema", "tidemark.sweep");
    tide_json_u64(&j, "version", 1);
    tide_json_text(&j, "extent", is_swept(s) ? s->extent : "");
    tide_json_u64(&j, "n_ranks", s->n_ranks);
    tide_table_json(&points.table, false, &j);
    tide_table_json(&series, false, &j);
    tide_table_json(&answers, false, &j);
    tide_json_close(&j, '}');
}
