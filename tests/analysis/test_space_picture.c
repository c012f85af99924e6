// SPDX-License-Identifier: MIT
//
// The picture of memory: cell by cell what a plain painting of the plan says, fine and coarse; the places of blocks.
#include "analysis/space.h"

#include "tests/analysis/allocator_fixture.h"

enum { ROW_BYTES = 64, N_STEPS = 32, MAX_ROWS = 4096, NO_ROOT = UINT32_MAX };

// ---- painting a plan ----

typedef struct painting {
    uint32_t root[N_STEPS][MAX_ROWS]; // the root that holds the row, or NO_ROOT
    size_t n_rows;
} painting;
static painting paint;

static void paint_plan(const tide_memory_plan *plan) {
    tide_error err = TIDE_ERROR_INIT;
    tide_occupied *list;
    size_t n;
    assert_tide_ok(tide_lifetimes_occupied(&plan->lifetimes, &list, &n, &err), &err);
    assert_int_equal(plan->n_buffers, 1);
    paint.n_rows = plan->bytes / ROW_BYTES;
    assert_true(paint.n_rows <= MAX_ROWS && plan->bytes % ROW_BYTES == 0);
    for (int64_t t = 0; t < N_STEPS; t++) {
        for (size_t r = 0; r < paint.n_rows; r++) paint.root[t][r] = NO_ROOT;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t lo = plan->offsets[list[i].root] + list[i].lo_bytes;
        const uint64_t hi = plan->offsets[list[i].root] + list[i].hi_bytes;
        assert_true(lo % ROW_BYTES == 0 && hi % ROW_BYTES == 0);
        for (int64_t t = list[i].begin_step; t < list[i].end_step; t++) {
            for (uint64_t r = lo / ROW_BYTES; r < hi / ROW_BYTES; r++) paint.root[t][r] = list[i].root;
        }
    }
    tide_host_free(list);
}

static bool is_taken_above(int64_t t, size_t row) {
    for (size_t r = row + 1; r < paint.n_rows; r++) {
        if (paint.root[t][r] != NO_ROOT) return true;
    }
    return false;
}

/// The item is the painted root, or lies in it and is alive while the root is not.
static void check_owner(const tide_memory_plan *plan, const tide_items *items, uint32_t item, uint32_t root,
                        int64_t t) {
    const tide_lifetimes *lt = &plan->lifetimes;
    const uint32_t tensor = (uint32_t)tide_items_id(items, item);
    assert_int_equal(tide_lifetimes_root(lt, tensor, NULL), root);
    if (tensor == root) return;
    assert_true(lt->items[tensor].begin_step <= t && t < lt->items[tensor].end_step);
    assert_false(lt->items[root].begin_step <= t && t < lt->items[root].end_step);
}

static void every_cell_of_a_plan(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    size_t n_holes = 0, n_aliases = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        tide_memory_plan *plan = random_plan(seed, 60, N_STEPS);
        tide_subject *s = subject_of_plan(plan);
        const tide_items *items = load_items(s);
        tide_space sp;
        assert_tide_ok(tide_space_make(s, &sp, &err), &err);
        assert_int_equal(sp.n, 1);
        assert_string_equal(sp.regions[0].label, "Workspace on cpu");
        assert_int_equal(sp.bytes, plan->bytes);
        assert_int_equal(sp.regions[0].bound_bytes, plan->lower_bound_bytes);
        assert_true(sp.has_holes);
        paint_plan(plan);
        tide_space_cell *cells = tide_host_calloc(N_STEPS * paint.n_rows, sizeof *cells);
        assert_tide_ok(tide_space_cells(&sp, items, 0, N_STEPS, 0, sp.bytes, N_STEPS, paint.n_rows, cells, &err), &err);
        for (int64_t t = 0; t < N_STEPS; t++) {
            for (size_t r = 0; r < paint.n_rows; r++) {
                const tide_space_cell *c = &cells[r * N_STEPS + (size_t)t];
                const uint32_t root = paint.root[t][r];
                if (root != NO_ROOT) {
                    assert_true(c->item < items->n);
                    check_owner(plan, items, c->item, root, t);
                    n_aliases += tide_items_id(items, c->item) != root;
                } else {
                    assert_int_equal(c->item, is_taken_above(t, r) ? TIDE_SPACE_HOLE : TIDE_SPACE_FREE);
                    n_holes += c->item == TIDE_SPACE_HOLE;
                }
            }
        }
        tide_host_free(cells);
        tide_space_deinit(&sp);
        tide_subject_destroy(s);
    }
    assert_true(n_holes > 0 && n_aliases > 0);
}

// ---- coarse: four steps and four rows a cell ----

enum { COARSE = 4 };

typedef struct shares {
    uint32_t who[COARSE * COARSE];
    int of[COARSE * COARSE]; // fine cells, of 16
    size_t n;
    int best, hole;
} shares;

/// Fine cells of a coarse one by root, and those that are holes below something in a higher row of cells.
static shares count_shares(size_t column, size_t row) {
    shares sh = {0};
    int above = 0, taken = 0;
    for (int64_t t = (int64_t)column * COARSE; t < (int64_t)(column + 1) * COARSE; t++) {
        if (is_taken_above(t, (row + 1) * COARSE - 1)) above += COARSE;
        for (size_t r = row * COARSE; r < (row + 1) * COARSE; r++) {
            const uint32_t who = paint.root[t][r];
            if (who == NO_ROOT) continue;
            taken++;
            size_t i = 0;
            while (i < sh.n && sh.who[i] != who) i++;
            if (i == sh.n) sh.who[sh.n++] = who;
            if (++sh.of[i] > sh.best) sh.best = sh.of[i];
        }
    }
    sh.hole = above > taken ? above - taken : 0;
    return sh;
}

static int share_of_root(const shares *sh, uint32_t root) {
    for (size_t i = 0; i < sh->n; i++) {
        if (sh->who[i] == root) return sh->of[i];
    }
    return 0;
}

static void a_coarse_picture(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    size_t n_shared = 0, n_holes_over_items = 0;
    for (uint64_t seed = 11; seed <= 16; seed++) {
        // No aliases and no gaps: each root is one item, so that shares are those of items.
        tide_memory_plan *plan = random_plan(seed, 60, N_STEPS), *plain;
        const tide_strategy *strategy;
        for (size_t i = 0; i < plan->lifetimes.n; i++) {
            plan->lifetimes.items[i].alias = TIDE_ALIAS_NONE;
            tide_host_free(plan->lifetimes.items[i].gaps);
            plan->lifetimes.items[i].gaps = NULL;
            plan->lifetimes.items[i].n_gaps = 0;
        }
        assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
        assert_tide_ok(tide_plan_make(&plan->lifetimes, strategy, NULL, &plain, &err), &err);
        tide_memory_plan_destroy(plan);
        tide_subject *s = subject_of_plan(plain);
        const tide_items *items = load_items(s);
        tide_space sp;
        assert_tide_ok(tide_space_make(s, &sp, &err), &err);
        paint_plan(plain);
        const size_t n_rows = paint.n_rows / COARSE, n_columns = N_STEPS / COARSE;
        tide_space_cell *cells = tide_host_calloc(n_columns * n_rows, sizeof *cells);
        const uint64_t hi = n_rows * COARSE * ROW_BYTES; // whole cells
        assert_tide_ok(tide_space_cells(&sp, items, 0, N_STEPS, 0, hi, n_columns, n_rows, cells, &err), &err);
        for (size_t c = 0; c < n_columns; c++) {
            for (size_t r = 0; r < n_rows; r++) {
                const tide_space_cell *cell = &cells[r * n_columns + c];
                const shares sh = count_shares(c, r);
                if (sh.best > 0 ? sh.hole > sh.best : 2 * sh.hole >= COARSE * COARSE) {
                    assert_int_equal(cell->item, TIDE_SPACE_HOLE);
                    n_holes_over_items += sh.best > 0;
                } else if (sh.best > 0) {
                    assert_true(cell->item < items->n);
                    assert_int_equal(share_of_root(&sh, (uint32_t)tide_items_id(items, cell->item)), sh.best);
                    assert_int_equal(cell->is_shared, sh.n > 1);
                    n_shared += cell->is_shared;
                } else {
                    assert_int_equal(cell->item, TIDE_SPACE_FREE);
                }
            }
        }
        tide_host_free(cells);
        tide_space_deinit(&sp);
        tide_subject_destroy(s);
    }
    assert_true(n_shared > 0 && n_holes_over_items > 0);
}

// ---- places ----

static uint32_t item_named(const tide_items *items, const char *name) {
    for (uint32_t i = 0; i < items->n; i++) {
        if (strcmp(tide_items_site(items, i)->name, name) == 0) return i;
    }
    fail_msg("no item '%s'", name);
    return TIDE_NO_ITEM;
}

static void expect_neighbours(const tide_space *sp, const tide_items *items, const char *name, int64_t t,
                              const char *below, uint64_t gap_below, const char *above, uint64_t gap_above) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t b, a;
    uint64_t gap_b, gap_a;
    const uint32_t item = item_named(items, name);
    assert_tide_ok(tide_space_neighbours(sp, items, item, t, &b, &gap_b, &a, &gap_a, &err), &err);
    assert_int_equal(b, below != NULL ? item_named(items, below) : TIDE_NO_ITEM);
    assert_int_equal(a, above != NULL ? item_named(items, above) : TIDE_NO_ITEM);
    assert_int_equal(gap_b, gap_below);
    assert_int_equal(gap_a, gap_above);
}

/// The demo plan: a [0, 1024) all the time, b [1024, 1536) in steps 1 and 2, c [1536, 2304) from 2 on.
static void neighbours_in_the_demo(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_plan(demo_plan_make());
    const tide_items *items = load_items(s);
    tide_space sp;
    assert_tide_ok(tide_space_make(s, &sp, &err), &err);
    expect_neighbours(&sp, items, "a", 0, NULL, 0, "conv.scratch", 0);
    expect_neighbours(&sp, items, "b", 2, "a", 0, "c", 0);
    expect_neighbours(&sp, items, "c", 3, NULL, 512, NULL, 256); // b is gone, and so is the scratch above
    uint64_t lo, hi;
    assert_true(tide_space_of_item(&sp, items, item_named(items, "c"), &lo, &hi));
    assert_int_equal(lo, 1536);
    assert_int_equal(hi, 1536 + 768);
    assert_false(tide_space_of_item(&sp, items, item_named(items, "w"), &lo, &hi));
    assert_int_equal(tide_space_region_at(&sp, 2559), 0);
    assert_true(tide_space_region_at(&sp, 2560) == SIZE_MAX);
    tide_space_deinit(&sp);
    tide_subject_destroy(s);
}

/// The buffer of a colouring plan is cut into its pools, and each tensor lies in the one that the plan gave it.
static void pools_of_a_colouring_plan(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *colour = NULL;
    assert_tide_ok(tide_strategy_find("greedy_color", &colour, &err), &err);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        tide_memory_plan *offsets = random_plan(seed, 60, N_STEPS), *plan = NULL;
        assert_tide_ok(tide_plan_make(&offsets->lifetimes, colour, NULL, &plan, &err), &err);
        tide_memory_plan_destroy(offsets);
        tide_subject *s = subject_of_plan(plan);
        const tide_items *items = load_items(s);
        tide_space sp;
        assert_tide_ok(tide_space_make(s, &sp, &err), &err);
        assert_int_equal(sp.n, 1);
        const tide_region *r = &sp.regions[0];
        assert_int_equal(r->n_pools, plan->n_pools);
        uint64_t end = 0;
        for (size_t i = 0; i < r->n_pools; i++) {
            assert_int_equal(r->pools[i].offset_bytes, end); // end to end
            end += r->pools[i].bytes;
        }
        assert_int_equal(end, r->bytes);
        size_t n = 0;
        for (uint32_t i = 0; i < items->n; i++) {
            const size_t tensor = (size_t)tide_planned_tensor(tide_items_id(items, i));
            uint64_t lo, hi;
            if (plan->pools[tensor] < 0 || !tide_space_of_item(&sp, items, i, &lo, &hi)) continue;
            const tide_region_pool *p = &r->pools[plan->pools[tensor]];
            assert_int_equal(p->number, plan->pools[tensor]);
            assert_true(lo >= p->offset_bytes && hi <= p->offset_bytes + p->bytes);
            n++;
        }
        assert_true(n > 20);
        tide_space_deinit(&sp);
        tide_subject_destroy(s);
    }
}

/// A planned run of a trace: the plan's buffer, with its tensors at the times when their steps ran.
static void tensors_of_a_planned_run(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    tmp_dir_make(&dir);
    demo_record(dir.file, 0);
    tide_subject *s = subject_of_trace(dir.file, 2);
    const tide_items *items = load_items(s);
    tide_space sp;
    assert_tide_ok(tide_space_make(s, &sp, &err), &err);
    assert_string_equal(sp.regions[0].label, "Workspace on cpu");
    assert_int_equal(sp.regions[0].bytes, DEMO_BYTES);
    assert_true(sp.n > 1 && sp.regions[1].is_guessed); // the blocks beside the buffer
    // Rows of 256 bytes; steps ran at 2100, 2150, 2200, 2250 and 40 ns each: columns of 10 ns.
    tide_space_cell cells[10][20];
    assert_tide_ok(tide_space_cells(&sp, items, 2100, 2300, 0, DEMO_BYTES, 20, 10, &cells[0][0], &err), &err);
    const uint32_t a = item_named(items, "a"), b = item_named(items, "b"), c = item_named(items, "c");
    const uint32_t scratch = item_named(items, "conv.scratch");
    for (int column = 0; column < 19; column++) assert_int_equal(cells[0][column].item, a); // to 2290
    assert_int_equal(cells[4][3].item, scratch);
    assert_int_equal(cells[4][4].item, scratch); // until the next step begins
    assert_int_equal(cells[4][5].item, b);
    assert_int_equal(cells[4][13].item, b);
    assert_int_equal(cells[4][15].item, TIDE_SPACE_HOLE); // c lies above it
    assert_int_equal(cells[6][10].item, c);
    assert_int_equal(cells[6][9].item, TIDE_SPACE_FREE);
    assert_int_equal(cells[0][19].item, TIDE_SPACE_FREE);
    // a block that lies in the stretch of addresses, and nothing where it is not known
    uint64_t lo, hi;
    assert_true(tide_space_of_item(&sp, items, item_named(items, "x"), &lo, &hi));
    assert_int_equal(hi - lo, 1024);
    tide_space_cell one;
    assert_tide_ok(tide_space_cells(&sp, items, 2300, 2400, lo, hi, 1, 1, &one, &err), &err);
    assert_int_equal(one.item, item_named(items, "x"));
    assert_tide_ok(tide_space_cells(&sp, items, 2300, 2400, hi, hi + 1024, 1, 1, &one, &err), &err);
    assert_int_equal(one.item, TIDE_SPACE_OUTSIDE);
    tide_space_cell five[5]; // x, three rows that are unused as far as is known, w above them
    assert_tide_ok(tide_space_cells(&sp, items, 2300, 2400, lo, lo + 5 * 1024, 1, 5, five, &err), &err);
    for (int r = 1; r < 4; r++) assert_int_equal(five[r].item, TIDE_SPACE_OUTSIDE);
    assert_int_equal(five[4].item, item_named(items, "w"));
    tide_space_deinit(&sp);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

// ---- segments ----

/// Every block of a real trace lies where its address is, in a segment that was there.
static void blocks_lie_in_their_segments(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    working w;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_at_random(&w, 5, 300);
    work_close(&w);
    tide_subject *s = subject_of_trace(dir.file, 0);
    const tide_items *items = load_items(s);
    tide_space sp;
    assert_tide_ok(tide_space_make(s, &sp, &err), &err);
    size_t n_segments = 0, n_in_segments = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < sp.n; i++) {
        assert_int_equal(sp.regions[i].at, at);
        at += sp.regions[i].bytes;
        n_segments += !sp.regions[i].is_guessed;
        assert_true(sp.regions[i].begin < sp.regions[i].end);
    }
    assert_int_equal(at, sp.bytes);
    assert_true(n_segments > 1);
    for (uint32_t i = 0; i < items->n; i++) {
        const tide_item_shape *shape = tide_items_shape(items, i);
        uint64_t lo, hi;
        assert_true(tide_space_of_item(&sp, items, i, &lo, &hi));
        const tide_region *r = &sp.regions[tide_space_region_at(&sp, lo)];
        assert_int_equal(r->base + (lo - r->at), items->place[i]);
        assert_int_equal(hi - lo, shape->reserved_bytes);
        assert_true(hi <= r->at + r->bytes);
        // stream_caching tells what it took, the plain one does not
        assert_int_equal(!r->is_guessed, strcmp(shape->allocator, "stream_caching") == 0);
        n_in_segments += !r->is_guessed;
        if (tide_items_begin(items, i) + 1 >= tide_items_end(items, i)) continue;
        // zoomed in on itself the item is all there is
        tide_space_cell cell;
        assert_tide_ok(tide_space_cells(&sp, items, tide_items_begin(items, i), tide_items_end(items, i), lo, hi, 1, 1,
                                        &cell, &err),
                       &err);
        assert_int_equal(cell.item, i);
        assert_false(cell.is_shared);
    }
    assert_true(n_in_segments > 50);
    tide_space_deinit(&sp);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// One moment alone tells the same as the column of that moment.
static void one_moment(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    working w;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_at_random(&w, 6, 200);
    work_close(&w);
    tide_subject *s = subject_of_trace(dir.file, 0);
    const tide_items *items = load_items(s);
    tide_space all, now;
    assert_tide_ok(tide_space_make(s, &all, &err), &err);
    const int64_t t = tide_subject_get_facts(s)->peak.t;
    tide_live_items live;
    assert_tide_ok(tide_subject_live(s, (tide_moment){t, 0}, &live, &err), &err);
    assert_tide_ok(tide_space_of_live(s, &live, NULL, &now, &err), &err);
    assert_true(live.n > 3);
    for (size_t i = 0; i < live.n; i++) {
        uint64_t lo, hi, lo_all, hi_all;
        const uint32_t item = live.items[i].item;
        assert_true(tide_space_of_item(&now, items, item, &lo, &hi));
        assert_true(tide_space_of_item(&all, items, item, &lo_all, &hi_all));
        const tide_region *r = &now.regions[tide_space_region_at(&now, lo)];
        const tide_region *r_all = &all.regions[tide_space_region_at(&all, lo_all)];
        assert_int_equal(r->base + (lo - r->at), r_all->base + (lo_all - r_all->at));
        assert_int_equal(r->is_guessed, r_all->is_guessed);
        assert_int_equal(hi - lo, hi_all - lo_all);
        tide_space_cell cell;
        assert_tide_ok(tide_space_cells(&now, items, t, t + 1, lo, hi, 1, 1, &cell, &err), &err);
        assert_int_equal(cell.item, item);
    }
    tide_live_items_deinit(&live);
    tide_space_deinit(&all);
    tide_space_deinit(&now);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

static void what_cannot_be_drawn(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {.model = tide_host_strdup("empty"), .n_steps = 1};
    tide_memory_plan *plan;
    assert_tide_ok(tide_plan_make(&lt, tide_strategy_default(), NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    tide_subject *s = subject_of_plan(plan);
    tide_space sp;
    assert_tide_status(tide_space_make(s, &sp, &err), TIDE_ERR_INVALID); // items are not loaded
    load_items(s);
    assert_tide_status(tide_space_make(s, &sp, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "place");
    tide_subject_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_cell_of_a_plan),         tide_unit_test(a_coarse_picture),
        tide_unit_test(neighbours_in_the_demo),       tide_unit_test(tensors_of_a_planned_run),
        tide_unit_test(blocks_lie_in_their_segments), tide_unit_test(one_moment),
        tide_unit_test(what_cannot_be_drawn),         tide_unit_test(pools_of_a_colouring_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
