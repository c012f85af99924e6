// SPDX-License-Identifier: MIT
//
// What the pages of the manual say of each command beside its help. See manual.h.
#include <string.h>

#include "cli/manual.h"

static const cli_about abouts[] = {
    {"",
     "tidemark plans the memory of a tensor program before it runs, runs it for real under instrumented allocators, "
     "and "
     "shows where every byte went: in the terminal, in reports, and as a gate in CI.\n\n"
     "A FILE is found by its content, never by its name: an ONNX model, graph text, a list of lifetimes (CSV or JSON), "
     "a "
     "TensorFlow Lite model, an ExecuTorch program, a plan of another compiler, a plan or a trace of tidemark, or a "
     "recording of another tool (a memory snapshot of PyTorch, an export of Nsight Systems, heaptrack, memray, RMM); "
     "`-` is "
     "standard input. `tidemark demo` shows the main job on a network that is built in.",
     "demo plan run compare record tui report check"},
    {"plan",
     "Finds out how long each tensor of a model must be kept, gives each a place in one buffer, verifies the plan, and "
     "says "
     "how large it is beside the lower bound, which no plan can undercut. With `--budget` it says whether the process "
     "that "
     "runs the model would fit, and if not, what makes the peak and which change would help; with `--all` it compares "
     "every strategy. The same input gives the same plan on every machine.\n\n"
     "A list of lifetimes, a model of TensorFlow Lite or a plan of another compiler is planned the same way, beside "
     "the plan "
     "that is in the file.",
     "run compare sweep export tui"},
    {"run",
     "Runs a model by its plan, every byte of it through allocators that are measured, and prints by kind of memory "
     "what "
     "was asked for, the peak, what was reserved and how many allocations there were. `-o` records every block into a "
     "trace. Runs repeat; after the first one a planned run allocates nothing.",
     "plan compare trace tui replay"},
    {"compare",
     "Runs a model twice, naive (every tensor allocated when it is made and freed after its last use) and planned (one "
     "buffer), and compares peaks, times and outputs. What the plan predicted must be what was measured, to the byte, "
     "and "
     "the outputs must be the same bit for bit; otherwise the exit code is 1.",
     "run plan report"},
    {"record",
     "Starts a command and records the memory of every process below it that can be recorded into one trace, on one "
     "clock. "
     "Recording does not change what the command does: when the disk is full or the trace cannot be written, one line "
     "says "
     "so and the command goes on.",
     "trace tui merge run"},
    {"import",
     "Reads what another tool has recorded and writes it as a trace, so that every command that looks at traces can be "
     "used "
     "on it. What the file does not say is not made up, and what could not be read is counted and printed.",
     "trace tui report export replay"},
    {"merge",
     "Makes one trace of several, of ranks or of hosts, on one clock. In views and reports each file's processes stand "
     "in a "
     "lane of their own, and `tidemark trace --lanes` says which of them differs from the others.",
     "record trace report"},
    {"trace",
     "Says what a trace holds: of whom it is, what was lost, the peak, bytes by kind of memory; with `--at` who held "
     "the "
     "memory at a moment, with `--and` or `--compare` what changed between two. In place of a plan's buffer stand the "
     "tensors that lie in it.",
     "tui report diff record"},
    {"replay",
     "Asks other allocators for the blocks of a trace, in the order of the trace, and compares what each would have "
     "reserved, what it wasted and how long it took: would it fit, and which settings would lower the peak? With "
     "`--strategy` it also says what the best placement needs.",
     "run trace allocators"},
    {"tui",
     "Shows where memory goes over time, on a screen of cells: a curve with the peak, the lifetimes below it, a map of "
     "addresses, who is alive at the cursor and what would lower the peak. Inside, `?` shows every key and `:` takes "
     "every "
     "command by its name. Without a terminal `--once` prints one frame as text, `--linear` answers in lines, and "
     "`--pane` "
     "gives what one pane shows as data.",
     "report trace diff"},
    {"report",
     "Writes what is known of a trace, a plan or a model into one file that others can open. The page (.html) loads "
     "nothing "
     "from anywhere, works offline, and answers questions by a click: who is alive at a moment, what lies where, would "
     "it "
     "fit. The other forms are for programs (.csv, .json), for comments (.md), for documents (.svg) and for mail "
     "(.txt).",
     "tui diff trace"},
    {"diff",
     "Compares two traces, plans or models, or two moments of one, and says which operators and tensors made the "
     "difference.",
     "check trace report"},
    {"check",
     "The gate: measures what `tidemark.toml` lists, holds it against the committed baseline, and fails when a figure "
     "got "
     "worse by more than a rule allows, with the operators and tensors that caused it. Bytes are the same on every run "
     "and are held exactly; times are shown and never judged.",
     "diff plan"},
    {"sweep",
     "Plans a model at many sizes, under several strategies and alignments, and finds the largest size with which the "
     "process that runs it fits a budget. With `--run` the answer is tried out within that budget.",
     "plan run"},
    {"export",
     "Writes the lifetimes of a model, a plan or a trace in the forms that other programs read: lists for other "
     "planners, C "
     "headers for firmware, timelines for Perfetto, snapshots for PyTorch's viewer.",
     "import report plan"},
    {"demo",
     "Does the main job on a network that is built into the program: plans it, runs it naive and planned, records "
     "both, "
     "compares them, writes a report, and opens the terminal view (q leaves it). Each command is printed before it is "
     "run, "
     "as you would type it. Nothing is overwritten and nothing is fetched from a network.",
     "plan compare report tui"},
    {"help",
     "Prints the options of one command, or the list of all commands. The same table is written as a page of the "
     "manual, "
     "and as a script with which a shell completes commands, options and their values. Installed, they are found by "
     "man "
     "and by the shells without being asked for; a program that was copied somewhere writes them where they belong "
     "with "
     "`--write`.",
     "demo"},
    {"allocators",
     "Lists which allocator serves which kind of memory, by which rule it rounds, and which allocators `--allocator` "
     "can "
     "name.",
     "replay run devices"},
    {"devices", "Lists the devices that this machine and this build have, and of each that cannot be used why not.",
     "allocators record"},
    {"operators",
     "Lists the operators that can be run, by domain, versions of the operator set and types, with what else ONNX "
     "allows "
     "and is refused.",
     "run plan"},
};

const cli_about *cli_about_find(const char *command) {
    for (size_t i = 0; i < sizeof abouts / sizeof abouts[0]; i++)
        if (strcmp(abouts[i].command, command) == 0) return &abouts[i];
    return NULL;
}

const cli_about_name cli_about_variables[] = {
    {"TIDEMARK_LOG", NULL, "set: notes are printed too, and all warnings; `debug`: more of them"},
    {"OMP_NUM_THREADS", "plan run compare check sweep tui report diff export",
     "threads of each kernel, without `--intra-threads`"},
    {"TMPDIR", "run import demo",
     "where temporary files lie, and the folder of a demo that names none (default: /tmp)"},
    {"NO_COLOR", "tui demo", "set and not empty: no colours"},
    {"COLORTERM", "tui demo",
     "`truecolor` or `24bit`: colours by their value, whatever terminfo knows of the terminal"},
    {"TERM", "tui demo", "empty or `dumb`: there is no screen to draw on"},
    {"LC_ALL, LC_CTYPE, LANG", "tui demo", "block elements where the encoding is UTF-8, ASCII elsewhere"},
    {"XDG_STATE_HOME, HOME", "tui demo",
     "where view, filters and marks of each FILE are kept: below tidemark or .local/state/tidemark"},
    {"TIDEMARK_COLLECT, TIDEMARK_RING_EVENTS, TIDEMARK_ON_FULL, TIDEMARK_MAX_WAIT", "record run compare",
     "set by `tidemark record` for what it starts: the trace that is recorded into, and how"},
    {"TIDEMARK_CUPTI, TIDEMARK_CUPTI_PLUGIN", "record",
     "the libcupti to take, and the recorder of CUDA memory in place of the installed one"},
    {"TIDEMARK_CUDA_PLUGIN", "devices allocators replay", "the plug-in for CUDA devices in place of the installed one"},
    {"TIDEMARK_MPI", "sweep", "the plug-in for several processes in place of the installed one"},
    {"GITHUB_STEP_SUMMARY", "check", "Markdown is appended to this file"},
    {"GIT_AUTHOR_NAME, USER", "check", "who updates the baseline, without `--by`"},
    {NULL, NULL, NULL},
};

const cli_about_name cli_about_files[] = {
    {"tidemark.toml, tidemark.json", "check", "what is measured, and what may not get worse"},
    {"tidemark-baseline.json", "check", "what it cost when it was last accepted; committed beside the configuration"},
    {"TRACE", "run compare record import merge", "a trace, one SQLite file, which `sqlite3` opens too"},
    {"TRACE.feed-PID-N", "run compare record",
     "beside a trace that is being recorded: rings of events, taken in at its end, or by the next command that opens "
     "it"},
    {NULL, NULL, NULL},
};
