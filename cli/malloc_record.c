// SPDX-License-Identifier: MIT
//
// The malloc of foreign programs under `tidemark record`. See malloc_record.h.
#include "cli/malloc_record.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/host_alloc.h"
#include "core/base/module.h"
#include "core/base/text.h"
#include "profiler/query.h"

#define PRELOAD_ENV "LD_PRELOAD"

static const tide_module library = {.file = "libtidemark-preload.so", .variable = "TIDEMARK_PRELOAD"};

// ---- what kind of program it is ----

enum { MAX_HEADERS = 256, MAX_LINE = 256 };

/// The loader takes no library from the environment into a program that gets rights by being started.
static const char *gains_rights(int fd, const struct stat *info) {
    if ((info->st_mode & S_ISUID) != 0 && info->st_uid != getuid())
        return "it runs as another user (setuid), so the loader puts no library into it";
    if ((info->st_mode & S_ISGID) != 0 && info->st_gid != getgid())
        return "it runs as another group (setgid), so the loader puts no library into it";
    if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return "it gets capabilities by its file, so the loader puts no library into it";
    return NULL;
}

/// Of an ELF file; NULL: nothing is against it, or it cannot be read.
static const char *fault_of_elf(int fd, const unsigned char *ident) {
    if (ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return "it is of another word size than tidemark";
#if __SIZEOF_POINTER__ == 8
    typedef Elf64_Ehdr elf_header;
    typedef Elf64_Phdr program_header;
#else
    typedef Elf32_Ehdr elf_header;
    typedef Elf32_Phdr program_header;
#endif
    elf_header h, mine;
    if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h) return NULL;
    const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const bool has_mine = self >= 0 && pread(self, &mine, sizeof mine, 0) == (ssize_t)sizeof mine;
    if (self >= 0) close(self);
    if (has_mine && h.e_machine != mine.e_machine) return "it is of another processor than tidemark";
    if (h.e_phentsize != sizeof(program_header) || h.e_phnum > MAX_HEADERS) return NULL;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        program_header p;
        const off_t at = (off_t)(h.e_phoff + i * sizeof p);
        if (pread(fd, &p, sizeof p, at) != (ssize_t)sizeof p) return NULL;
        if (p.p_type == PT_INTERP) return NULL;
    }
    return "it is a static program, into which no loader puts a library";
}

/// The program that runs a script, from its first line. False: it is no script.
static bool interpreter_of(int fd, char out[MAX_LINE]) {
    char line[MAX_LINE];
    const ssize_t n = pread(fd, line, sizeof line - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!') return false;
    line[n] = '\0';
    const char *at = line + 2 + strspn(line + 2, " \t");
    snprintf(out, MAX_LINE, "%.*s", (int)strcspn(at, " \t\r\n"), at);
    return out[0] != '\0';
}

/// Why the malloc of this program cannot be recorded; NULL: it can, as far as can be told.
static const char *fault_of(const char *file) {
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat info;
    unsigned char ident[EI_NIDENT];
    if (fd < 0) return NULL;
    const char *fault = fstat(fd, &info) == 0 ? gains_rights(fd, &info) : NULL;
    char interpreter[MAX_LINE];
    if (fault == NULL && pread(fd, ident, sizeof ident, 0) == (ssize_t)sizeof ident) {
        if (memcmp(ident, ELFMAG, SELFMAG) == 0)
            fault = fault_of_elf(fd, ident);
        else if (interpreter_of(fd, interpreter) && strcmp(interpreter, file) != 0) {
            close(fd);
            return fault_of(interpreter);
        }
    }
    close(fd);
    return fault;
}

// ---- before the command ----

static tide_status find_library(char *path, size_t bytes, tide_error *err) {
    TIDE_TRY(cli_library_path(&library, path, bytes, err));
    if (strpbrk(path, ": ") != NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s': the loader takes no path with a colon or a blank in it", path);
    return TIDE_OK;
}

/// Ours, and behind it what the user has there.
static bool set_preload(const char *path) {
    const char *users = getenv(PRELOAD_ENV);
    if (users == NULL || users[0] == '\0') return setenv(PRELOAD_ENV, path, 1) == 0;
    const size_t n = strlen(path);
    if (strncmp(users, path, n) == 0 && (users[n] == '\0' || users[n] == ':' || users[n] == ' ')) return true;
    tide_text both = {0};
    tide_text_addf(&both, "%s:%s", path, users);
    const bool is_set = !both.failed && setenv(PRELOAD_ENV, both.data, 1) == 0;
    tide_text_deinit(&both);
    return is_set;
}

/// By this a program knows that it is tidemark, which records itself.
static bool set_self(void) {
    struct stat info;
    char text[64];
    if (stat("/proc/self/exe", &info) != 0) return true;
    snprintf(text, sizeof text, "%llx:%llx", (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    return setenv(TIDE_SELF_ENV, text, 1) == 0;
}

/// What the option that makes it an error is called.
static const char *name_of(cli_when mode, unsigned stacks) {
    return mode == CLI_WHEN_ON ? "--malloc on" : stacks > 0 ? "--stacks" : "--torch";
}

static tide_status set_stacks(unsigned stacks, tide_error *err) {
    char text[16];
    snprintf(text, sizeof text, "%u", stacks);
    if (stacks > 0 && !TIDE_HAS_STACKS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "--stacks: this tidemark is built without it: it wants x86-64 and glibc 2.35 or later");
    const bool is_set = (stacks > 0 ? setenv(TIDE_STACKS_ENV, text, 1) : unsetenv(TIDE_STACKS_ENV)) == 0;
    return is_set ? TIDE_OK : TIDE_NO_MEMORY(err, "for the command's environment");
}

tide_status cli_malloc_prepare(cli_when mode, unsigned stacks, bool torch, const char *file, tide_error *err) {
    char path[4096], clean[512];
    // Where a recording around this one has put the library into the environment, it must not record into our trace.
    if (setenv(TIDE_MALLOC_ENV, "off", 1) != 0) return TIDE_NO_MEMORY(err, "for the command's environment");
    TIDE_TRY(set_stacks(stacks, err));
    if (mode == CLI_WHEN_OFF) return TIDE_OK;
    const bool must = mode == CLI_WHEN_ON || stacks > 0 || torch;
    tide_error why = TIDE_ERROR_INIT;
    if (find_library(path, sizeof path, &why) != TIDE_OK) {
        if (!must) return TIDE_OK;
        tide_error_prefix(&why, "%s", name_of(mode, stacks));
        if (err != NULL) *err = why;
        return why.status;
    }
    const char *fault = fault_of(file);
    if (fault != NULL && must)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s: '%s' cannot be recorded: %s", name_of(mode, stacks),
                         cli_clean(file, clean, sizeof clean), fault);
    // What it starts may be another matter.
    if (fault != NULL)
        fprintf(stderr, "note: malloc of '%s' is not recorded: %s\n", cli_clean(file, clean, sizeof clean), fault);
    const bool is_set =
        set_preload(path) && set_self() && setenv(TIDE_MALLOC_ENV, mode == CLI_WHEN_ON ? "on" : "auto", 1) == 0;
    return is_set ? TIDE_OK : TIDE_NO_MEMORY(err, "for the command's environment");
}

void cli_malloc_name_command(void) {
    char text[24];
    snprintf(text, sizeof text, "%ld", (long)getpid());
    setenv(TIDE_COMMAND_ENV, text, 1);
}

// ---- after it ----

/// The number behind "name=" in the line; 0: not there.
static int64_t number_in(const char *line, const char *name) {
    const char *at = strstr(line, name);
    return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
}

typedef struct summary {
    uint64_t n_off;
    int64_t unknown, twice;
    int64_t no_stack, cut_stack;
    char off[512]; ///< why the first of those was not recorded
} summary;

static void take_line(const char *line, summary *s) {
    if (strncmp(line, "off ", 4) == 0) {
        if (s->n_off++ == 0) cli_clean(line + 4, s->off, sizeof s->off);
        return;
    }
    s->unknown += number_in(line, "unknown=");
    s->twice += number_in(line, "twice=");
    s->no_stack += number_in(line, "lost=");
    s->cut_stack += number_in(line, "cut=");
}

tide_status cli_malloc_print(tide_trace *t, tide_error *err) {
    tide_text text = {0};
    summary s = {0};
    tide_status st = tide_trace_meta_lines(t, "malloc.", &text, err);
    if (st == TIDE_OK) st = tide_trace_meta_lines(t, "by_address.", &text, err);
    if (st == TIDE_OK) st = tide_trace_meta_lines(t, "stacks.", &text, err);
    char *rest = st == TIDE_OK ? text.data : NULL;
    while (rest != NULL && *rest != '\0') {
        char *end = strchr(rest, '\n');
        if (end != NULL) *end = '\0';
        take_line(rest, &s);
        rest = end != NULL ? end + 1 : NULL;
    }
    tide_text_deinit(&text);
    if (s.n_off > 0)
        fprintf(stderr, "note: malloc of %" PRIu64 " process%s was not recorded: %s\n", s.n_off,
                s.n_off == 1 ? "" : "es", s.off);
    if (s.unknown > 0)
        fprintf(stderr,
                "note: %" PRId64 " frees were of blocks that are not in the trace: from before a fork, or of none\n",
                s.unknown);
    if (s.twice > 0)
        fprintf(stderr,
                "note: %" PRId64 " blocks were given out at addresses that were in use: they were freed unseen\n",
                s.twice);
    if (s.no_stack > 0)
        fprintf(stderr, "note: %" PRId64 " blocks are without their call stack: there was no room for more stacks\n",
                s.no_stack);
    if (s.cut_stack > 0)
        fprintf(stderr, "note: %" PRId64 " blocks have a part of their call stack: further out no caller was found\n",
                s.cut_stack);
    return st;
}
