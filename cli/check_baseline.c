// SPDX-License-Identifier: MIT
//
// What the cases of `tidemark check` are compared with: a baseline file, that file in another git revision, or a plan,
// a model or a trace that is measured instead; and updating the file. git is started directly, without a shell.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/check.h"
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"

static int open_memory(void) { return memfd_create("tidemark", MFD_CLOEXEC); }

static void name_of_fd(int fd, char *path, size_t path_bytes) { snprintf(path, path_bytes, "/proc/self/fd/%d", fd); }

/// A file in memory, with a path to open it by: "/proc/self/fd/N". The caller closes the descriptor.
static tide_status make_memory_file(const char *data, size_t len, int *fd, char *path, size_t path_bytes,
                                    tide_error *err) {
    *fd = open_memory();
    size_t done = 0;
    while (*fd >= 0 && done < len) {
        const ssize_t n = write(*fd, data + done, len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    if (*fd < 0 || done < len) {
        const tide_status st = TIDE_NO_MEMORY(err, "for a file of %zu bytes: %s", len, strerror(errno));
        if (*fd >= 0) close(*fd);
        return st;
    }
    name_of_fd(*fd, path, path_bytes);
    return TIDE_OK;
}

/// `argv` ends with NULL. @return the exit status of git, 128 and more when it was ended; -1 with errno: it could not
/// be started
static int run_git(const char *const *argv, size_t n_words, int out, int messages) {
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        errno = failed;
        return -1;
    }
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, messages, 2);
    // posix_spawn writes to none of its arguments.
    enum { MOST_WORDS = 8 };
    char *words[MOST_WORDS];
    TIDE_ASSERT(n_words <= MOST_WORDS);
    memcpy(words, argv, n_words * sizeof *words);
    if (failed == 0) failed = posix_spawnp(&pid, "git", &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failed == 0 && waitpid(pid, &status, 0) < 0) failed = errno;
    errno = failed;
    if (failed != 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The first line of git's message.
static void first_line(int fd, char *line, size_t line_bytes) {
    const ssize_t n = pread(fd, line, line_bytes - 1, 0);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
}

static tide_status read_of_git(const char *folder, const char *object, int out, int messages, tide_gate_baseline *base,
                               tide_error *err) {
    const char *const argv[] = {"git", "-C", folder, "show", "--end-of-options", object, NULL};
    const int code = run_git(argv, sizeof argv / sizeof argv[0], out, messages);
    if (code == -1) return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "cannot start git: %s", strerror(errno));
    if (code != 0) {
        char message[256];
        first_line(messages, message, sizeof message);
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "git has no baseline '%s'", object);
        tide_error_note(err, "git show ended with %d: %s", code, message[0] != '\0' ? message : "it said nothing");
        tide_error_hint(err, "fetch the revision (of a shallow clone), or commit a baseline there");
        return st;
    }
    char path[64];
    name_of_fd(out, path, sizeof path);
    const tide_status st = tide_gate_baseline_read(path, base, err);
    if (st != TIDE_OK) tide_error_where(err, "%s", object);
    return st;
}

/// "REF:./NAME" and the folder that NAME lies in.
static tide_status split_path(const char *path, const char *ref, char **folder, char **object, tide_error *err) {
    const char *slash = strrchr(path, '/');
    tide_text text = {0};
    tide_text_addf(&text, "%s:./%s", ref, slash != NULL ? slash + 1 : path);
    *object = text.data;
    *folder =
        slash == NULL ? tide_host_strdup(".") : tide_host_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!text.failed && *folder != NULL) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "for the name of '%s'", path);
}

/// The baseline at `path` in revision `ref`. TIDE_ERR_INCOMPARABLE with git's words if git cannot give it.
static tide_status baseline_of_ref(const char *path, const char *ref, tide_gate_baseline *out, tide_error *err) {
    *out = (tide_gate_baseline){0};
    char *folder = NULL, *object = NULL;
    tide_status st = split_path(path, ref, &folder, &object, err);
    const int text = open_memory(), messages = open_memory();
    if (st == TIDE_OK && (text < 0 || messages < 0)) st = TIDE_NO_MEMORY(err, "for what git says: %s", strerror(errno));
    if (st == TIDE_OK) st = read_of_git(folder, object, text, messages, out, err);
    if (st == TIDE_OK) { // its path is the git object
        tide_host_free(out->path);
        out->path = object;
        object = NULL;
    }
    if (text >= 0) close(text);
    if (messages >= 0) close(messages);
    tide_host_free(folder);
    tide_host_free(object);
    return st;
}

/// `git config user.name` as it is set for the folder of `path`. False: there is no git, or it has no name.
static bool git_user(const char *path, char *name, size_t name_bytes) {
    char *folder = NULL, *object = NULL;
    tide_error err = TIDE_ERROR_INIT;
    const int text = open_memory(), messages = open_memory();
    bool good = text >= 0 && messages >= 0 && split_path(path, "", &folder, &object, &err) == TIDE_OK;
    if (good) {
        const char *const argv[] = {"git", "-C", folder, "config", "user.name", NULL};
        good = run_git(argv, sizeof argv / sizeof argv[0], text, messages) == 0;
    }
    if (good) first_line(text, name, name_bytes);
    if (text >= 0) close(text);
    if (messages >= 0) close(messages);
    tide_host_free(folder);
    tide_host_free(object);
    return good && name[0] != '\0';
}

// ---- the baseline ----

/// The path of the baseline; NULL: none is given. *wanted false: no baseline shall be used.
static const char *path_of(const cli_check_options *o, const tide_gate_config *config, bool *wanted) {
    const char *path = tide_gate_config_baseline(config, wanted);
    if (o->no_baseline) *wanted = false;
    if (o->baseline == NULL) return path;
    *wanted = true;
    return o->baseline;
}

// ---- another file in its place ----

/// Whether the file is a baseline by its first key (docs/gate.md), valid or not. An empty file counts as a missing
/// baseline.
static bool is_baseline(const char *data, size_t len) {
    const char *const schema = "\"tidemark.baseline\"";
    return len == 0 || memmem(data, len < 4096 ? len : 4096, schema, strlen(schema)) != NULL;
}

/// Measures `path` like the only target, and under its key.
static tide_status measure_baseline(const char *path, const tide_gate_config *config, bool *scratch_apart,
                                    tide_gate_baseline *out, tide_error *err) {
    size_t n;
    const tide_gate_target *targets = tide_gate_config_targets(config, &n);
    if (n != 1)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE,
                         "'%s' is no baseline file, and only a single FILE can be held against a plan, model or trace",
                         path);
    TIDE_TRY(cli_check_measure_other(&targets[0], path, scratch_apart, &out->cases, err));
    out->is_partial = true;
    return TIDE_COPY_TEXT(&out->path, path, err, "for the name of '%s'", path);
}

/// A baseline file, or anything else that can be measured.
static tide_status read_any(const char *path, const tide_gate_config *config, cli_check_baseline *to, tide_error *err) {
    tide_gate_baseline *out = &to->base;
    char *data = NULL;
    size_t len = 0;
    tide_status st = tide_read_file(path, 0, &data, &len, err);
    if (st == TIDE_ERR_IO) return tide_gate_baseline_read(path, out, err); // which says how one is made
    if (st != TIDE_OK) return st;
    // Standard input cannot be read twice.
    int fd = -1;
    char in_memory[64];
    const char *from = path;
    if (strcmp(path, "-") == 0) {
        st = make_memory_file(data, len, &fd, in_memory, sizeof in_memory, err);
        from = in_memory;
    }
    const bool is_file = is_baseline(data, len);
    to->is_measured = !is_file;
    tide_host_free(data);
    bool scratch_apart = true;
    if (st == TIDE_OK)
        st = is_file ? tide_gate_baseline_read(from, out, err)
                     : measure_baseline(from, config, &scratch_apart, out, err);
    to->is_with_scratch = !scratch_apart;
    if (fd >= 0) close(fd);
    if (st != TIDE_OK || from == path) return st;
    tide_host_free(out->path);
    return TIDE_COPY_TEXT(&out->path, path, err, "for the name of '%s'", path);
}

// ---- loading ----

/// Whether both would be written as the same bytes.
static tide_status same_text(const tide_gate_baseline *a, const tide_gate_baseline *b, bool *same, tide_error *err) {
    tide_text x = {0}, y = {0};
    tide_status st = tide_gate_baseline_print(a, &x, err);
    if (st == TIDE_OK) st = tide_gate_baseline_print(b, &y, err);
    *same = st == TIDE_OK && x.len == y.len && memcmp(tide_text_str(&x), tide_text_str(&y), x.len) == 0;
    tide_text_deinit(&x);
    tide_text_deinit(&y);
    return st;
}

static tide_status load_of_ref(const char *path, const char *ref, cli_check_baseline *out, tide_error *err) {
    TIDE_TRY(baseline_of_ref(path, ref, &out->base, err));
    if (access(path, F_OK) != 0) return TIDE_OK; // removed from the tree: the older one counts
    TIDE_TRY(tide_gate_baseline_read(path, &out->tree, err));
    bool same = false;
    TIDE_TRY(same_text(&out->base, &out->tree, &same, err));
    out->has_tree = !same;
    return TIDE_OK;
}

static tide_status load(const cli_check_options *o, const tide_gate_config *config, cli_check_baseline *out,
                        tide_error *err) {
    const char *path = path_of(o, config, &out->is_wanted);
    if (!out->is_wanted && o->base_ref == NULL) return TIDE_OK;
    if (path == NULL) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "no baseline is named: there is nothing to compare with");
        tide_error_hint(err, "--baseline FILE (a plan of 'tidemark plan FILE -o plan.json' will do), or --no-baseline");
        return st;
    }
    out->is_wanted = true;
    if (o->base_ref != NULL) return load_of_ref(path, o->base_ref, out, err);
    // The configuration names a baseline file; what the command line names may be anything that can be measured.
    const bool is_any = o->baseline != NULL && tide_gate_config_path(config)[0] == '\0';
    return is_any ? read_any(path, config, out, err) : tide_gate_baseline_read(path, &out->base, err);
}

tide_status cli_check_baseline_load(const cli_check_options *o, const tide_gate_config *config, cli_check_baseline *out,
                                    tide_error *err) {
    *out = (cli_check_baseline){0};
    tide_status st = load(o, config, out, err);
    if (st != TIDE_OK) cli_check_baseline_deinit(out);
    // Any fault of the baseline means that no comparison took place.
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    if (err != NULL) err->status = TIDE_ERR_INCOMPARABLE;
    return TIDE_ERR_INCOMPARABLE;
}

void cli_check_baseline_deinit(cli_check_baseline *b) {
    tide_gate_baseline_deinit(&b->base);
    tide_gate_baseline_deinit(&b->tree);
    *b = (cli_check_baseline){0};
}

// ---- update ----

static bool is_given(const char *name) { return name != NULL && name[0] != '\0'; }

/// The name for the update's entry, as git would sign if it is used.
static const char *author(const cli_check_options *o, const char *path, char *buf, size_t buf_bytes) {
    const char *author = getenv("GIT_AUTHOR_NAME"), *user = getenv("USER");
    if (is_given(o->by)) return o->by;
    if (is_given(author)) return author;
    if (git_user(path, buf, buf_bytes)) return buf;
    return is_given(user) ? user : "unknown";
}

/// The baseline file, or an empty baseline if there is no file.
static tide_status read_or_begin(const char *path, tide_gate_baseline *b, tide_error *err) {
    *b = (tide_gate_baseline){0};
    struct stat st_of_path;
    if (stat(path, &st_of_path) == 0 && st_of_path.st_size > 0) {
        const tide_status st = tide_gate_baseline_read(path, b, err);
        if (st != TIDE_OK) tide_error_hint(err, "it is left alone: name another file, or take it away first");
        return st;
    }
    return TIDE_COPY_TEXT(&b->path, path, err, "for the name of '%s'", path);
}

static tide_status write_baseline(const char *path, const tide_gate_baseline *b, tide_error *err) {
    tide_text text = {0};
    tide_status st = tide_gate_baseline_print(b, &text, err);
    if (st == TIDE_OK) st = tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

// ---- what is accepted ----

/// "    planned_bytes: 95.25 KiB (97536) -> 113.50 KiB (116224), +18.25 KiB (+19.2 %)"; of an added or removed case
/// the one value.
static void print_figure(tide_gate_metric m, int kind, bool both, tide_gate_value old, tide_gate_value fresh) {
    char id[96], a[96], b[96], change[96];
    const tide_gate_unit unit = tide_gate_metric_get(m)->unit;
    printf("    %s: %s", tide_gate_metric_text(m, kind, id, sizeof id),
           tide_gate_value_text(unit, both || old.known ? old : fresh, a, sizeof a));
    if (both) printf(" -> %s", tide_gate_value_text(unit, fresh, b, sizeof b));
    if (old.known && fresh.known) printf(", %s", tide_gate_change_text(unit, old, fresh, change, sizeof change));
    putchar('\n');
}

static bool differs(tide_gate_unit unit, tide_gate_value a, tide_gate_value b) {
    return a.known != b.known || (unit == TIDE_GATE_SHARE ? a.real != b.real : a.u != b.u);
}

/// Prints the figures of one metric that differ; of an added or removed case only metrics that fail by default.
static size_t print_metric(const tide_gate_case *old, const tide_gate_case *fresh, tide_gate_metric m) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    const bool both = old != NULL && fresh != NULL;
    size_t n = 0;
    if (def->unit == TIDE_GATE_NS || (!both && (def->level != TIDE_GATE_FAIL || def->per_kind))) return 0;
    for (int kind = def->per_kind ? 0 : -1; kind < (def->per_kind ? TIDE_N_KINDS : 0); kind++) {
        const tide_gate_value a = old != NULL ? tide_gate_case_value(old, m, kind) : (tide_gate_value){0};
        const tide_gate_value b = fresh != NULL ? tide_gate_case_value(fresh, m, kind) : (tide_gate_value){0};
        if (!differs(def->unit, a, b) || (a.u == 0 && b.u == 0 && def->unit != TIDE_GATE_SHARE)) continue;
        print_figure(m, kind, both, a, b);
        n++;
    }
    return n;
}

static void print_case(const char *key, const tide_gate_case *old, const tide_gate_case *fresh) {
    char clean[4096];
    size_t n = 0;
    printf("  %s%s\n", cli_clean(key, clean, sizeof clean), old == NULL ? "  (new)" : fresh == NULL ? "  (gone)" : "");
    for (int m = 0; m < TIDE_GATE_N_METRICS; m++) n += print_metric(old, fresh, (tide_gate_metric)m);
    if (n == 0 && old != NULL && fresh != NULL)
        puts("    no figure differs: settings, operators or tensors do, or the machine");
}

/// The table of what is accepted: each case that changed, with its old and its new figures.
static void print_changes(const char *path, const tide_gate_cases *old, const tide_gate_baseline *b, bool changed) {
    char clean[4096], by[256];
    cli_clean(path, clean, sizeof clean);
    if (!changed) {
        printf("%s: %zu case%s, all as they are; left alone\n", clean, b->cases.n, b->cases.n == 1 ? "" : "s");
        return;
    }
    const tide_gate_update *last = &b->updates[b->n_updates - 1];
    printf("%s: %zu case%s, of which changed: %zu\n", clean, b->cases.n, b->cases.n == 1 ? "" : "s", last->n_changed);
    for (size_t i = 0; i < last->n_changed; i++)
        print_case(last->changed[i], tide_gate_cases_find(old, last->changed[i]),
                   tide_gate_cases_find(&b->cases, last->changed[i]));
    printf("%s %s: %s\n", last->date, cli_clean(last->by, by, sizeof by), cli_clean(last->reason, clean, sizeof clean));
}

int cli_check_baseline_update(const cli_check_options *o, const tide_gate_config *config,
                              const tide_gate_cases *cases) {
    bool wanted;
    const char *path = path_of(o, config, &wanted);
    tide_error err = TIDE_ERROR_INIT;
    char date[16];
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(date, sizeof date, "%Y-%m-%d", &utc) == 0) date[0] = '\0';
    char user[256];
    const tide_gate_update_info info = {.date = date, .by = author(o, path, user, sizeof user), .reason = o->reason};
    tide_gate_baseline b, old = {0};
    bool changed = false;
    tide_status st = read_or_begin(path, &b, &err);
    if (st == TIDE_OK) st = read_or_begin(path, &old, &err); // read twice, because an update replaces the cases of `b`
    if (st == TIDE_OK) st = tide_gate_baseline_update(&b, cases, &info, &changed, &err);
    const bool is_new = access(path, F_OK) != 0;
    if (st == TIDE_OK && (changed || is_new)) st = write_baseline(path, &b, &err);
    if (st == TIDE_OK) print_changes(path, &old.cases, &b, changed);
    tide_gate_baseline_deinit(&b);
    tide_gate_baseline_deinit(&old);
    if (st == TIDE_OK) return CLI_EXIT_OK;
    cli_print_error(&err);
    return cli_exit_code(st);
}

// ---- the command that does it ----

/// Options that are left out of that command, and those of them that take a value.
static const char *const dropped[] = {"json",        "verbose",         "annotations", "no-summary", "no-baseline",
                                      "write-json",  "markdown",        "junit",       "sarif",      "baseline",
                                      "baseline-of", "update-baseline", "reason",      "by",         "report"};
static const char *const dropped_with_value[] = {"write-json",  "markdown", "junit", "sarif", "baseline",
                                                 "baseline-of", "reason",   "by",    "report"};

/// Whether the word is one of these long options, perhaps shortened, as getopt_long takes it.
static bool is_one_of(const char *word, const char *const *names, size_t n) {
    if (strncmp(word, "--", 2) != 0 || word[2] == '\0') return false;
    const size_t len = strcspn(word + 2, "=");
    for (size_t i = 0; i < n; i++)
        if (strncmp(names[i], word + 2, len) == 0) return true;
    return false;
}

static void add_words(const cli_check_options *o, tide_text *out) {
    for (size_t i = 0; i < o->n_words; i++) {
        const char *word = o->words[i];
        if (strcmp(word, "-v") == 0) continue;
        if (is_one_of(word, dropped, sizeof dropped / sizeof dropped[0])) {
            const bool takes = is_one_of(word, dropped_with_value, sizeof dropped_with_value / sizeof(char *));
            if (takes && strchr(word, '=') == NULL) i++;
            continue;
        }
        tide_text_add(out, " ");
        if (word[0] == '-')
            tide_text_add(out, word); // an option
        else
            tide_gate_add_word(out, word);
    }
}

/// A file that is no valid baseline must be moved away first.
static void add_aside(const char *path, tide_text *out) {
    tide_gate_baseline b;
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size == 0 || !S_ISREG(info.st_mode)) return;
    const tide_status st = tide_gate_baseline_read(path, &b, NULL);
    if (st == TIDE_OK) tide_gate_baseline_deinit(&b);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return;
    tide_text_add(out, "mv ");
    tide_gate_add_word(out, path);
    tide_text_add(out, " ");
    tide_text aside = {0};
    tide_text_addf(&aside, "%s.old", path);
    tide_gate_add_word(out, tide_text_str(&aside));
    if (aside.failed) out->failed = true;
    tide_text_deinit(&aside);
    tide_text_add(out, "; ");
}

void cli_check_command(const cli_check_options *o, const tide_gate_config *config, const cli_check_baseline *b,
                       tide_text *out) {
    bool wanted;
    const char *named = tide_gate_config_baseline(config, &wanted);
    const char *path = o->baseline != NULL && strcmp(o->baseline, "-") != 0 ? o->baseline : named;
    if (b->is_measured) return; // a plan, a model or a trace is not updated by `check`
    if (path == NULL) path = "tidemark-baseline.json";
    add_aside(path, out);
    tide_text_add(out, "tidemark check");
    add_words(o, out);
    if (named == NULL || strcmp(path, named) != 0) {
        tide_text_add(out, " --baseline ");
        tide_gate_add_word(out, path);
    }
    tide_text_add(out, " --update-baseline --reason \"…\"");
}
