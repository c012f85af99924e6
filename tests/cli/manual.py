# SPDX-License-Identifier: MIT
"""Pages of the manual and completion: made by the program of its own table of commands and options, read by man, groff and
mandoc without a warning, and typed into a real bash, zsh and fish (those that are not installed are skipped, and said)."""
import functools
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, environment, run, share

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"]


@functools.cache
def commands():
    """Those that the list of commands has."""
    return re.findall(r"(?m)^  (\w+) +\w", run("--help").stdout.split("\n\n")[2])


@functools.cache
def help_of(command):
    return run(command, "--help").stdout


def needs(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)} is not installed")


class Pages(Case):
    @classmethod
    def setUpClass(cls):
        cls.share = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.share, True)
        assert run("help", "--write", cls.share / "share").returncode == 0
        folder = cls.share / "share/man/man1"
        cls.pages = {name: (folder / f"tidemark{'-' * bool(name)}{name}.1").read_text() for name in ["", *commands()]}

    def test_every_command_has_a_page(self):
        self.assertGreater(len(self.pages), 18)
        self.assertNotIn("collect", self.pages)
        for name, page in self.pages.items():
            with self.subTest(page=name):
                sections = re.findall(r'(?m)^\.SH "?([A-Z ]+?)"?$', page)
                self.assertLessEqual(set(SECTIONS), set(sections))
                self.assertEqual(len(sections), len(set(sections)))
                self.assertIn(f".TH TIDEMARK{chr(92) + '-' + name.upper() if name else ''} 1 ", page)
                self.assertEqual("EXAMPLES" in sections, name not in ("", "devices", "allocators", "operators") or
                                 f"tidemark {name} " in (tidemark.SOURCE / "docs/everyday.md").read_text() and name != "")
        self.assertIn(r".BR tidemark\-plan (1)", self.pages[""])
        self.assertIn(r"\fB[\fR  \fB:previous\-change\fR", self.pages["tui"])  # the view's own table of keys

    def test_every_option_of_the_help_is_in_the_page(self):
        for name in commands():
            plain = re.sub(r"\\f[BIR]", "", self.pages[name]).replace("\\-", "-")
            options = set(re.findall(r"(?<![\w-])--?\w[\w-]*", help_of(name)))
            self.assertEqual([o for o in sorted(options) if o not in plain], [], name)

    def test_everyday_lines_are_the_examples(self):
        line = "tidemark plan model.onnx --budget 64MiB"
        self.assertIn(line, (tidemark.SOURCE / "docs/everyday.md").read_text())
        self.assertIn(line.replace("-", "\\-"), self.pages["plan"])

    def quiet(self, *command):
        """Reads every page; a word on stderr or stdout is a warning."""
        for name, page in self.pages.items():
            (self.dir / f"tidemark-{name}.1").write_text(page)
        p = subprocess.run([*command, *sorted(path.name for path in self.dir.iterdir())], capture_output=True, text=True,
                           env=environment({"LC_ALL": "C.UTF-8"}), cwd=self.dir, timeout=60)
        said = [line for line in (p.stderr + p.stdout).splitlines() if "missing date" not in line]
        self.assertEqual(said, [])

    @needs("groff")
    def test_groff_warns_of_nothing(self):
        self.quiet("groff", "-man", "-ww", "-Tutf8", "-z")

    @needs("mandoc")
    def test_mandoc_finds_nothing(self):
        self.quiet("mandoc", "-T", "lint", "-W", "warning")

    @needs("man", "groff")
    def test_man_shows_the_page(self):
        path = self.dir / "tidemark-plan.1"
        path.write_text(self.pages["plan"])
        p = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, timeout=60,
                           env=environment({"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat", "TERM": "dumb"}))
        if "minimized" in p.stdout + p.stderr:
            self.skipTest("this system has had its manual taken out")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        text = " ".join(p.stdout.split())
        for words in ("tidemark plan [OPTION...] FILE", "--allow-recompute P compute tensors twice where",
                      "tidemark plan model.onnx --budget 64MiB will it fit?", "TIDEMARK-PLAN(1)"):
            self.assertIn(words, text)

    def test_help_says_what_is_wrong(self):
        self.assertEqual(self.ok("help").stdout, self.ok("--help").stdout)
        self.assertEqual(self.ok("help", "plan").stdout, self.ok("plan", "--help").stdout)
        self.assertEqual(self.ok("--help", "plan").stdout, self.ok("plan", "--help").stdout)
        self.refused(2, "help", "plam", says=["did you mean 'plan'?"])
        self.refused(2, "help", "plan", "run", says=["one COMMAND at most"])
        self.refused(2, "help", "--format", "html", says=["text, man, bash, zsh, fish"])
        self.refused(2, "help", "--format", "man", "collect", says=["has no page"])
        self.refused(2, "help", "--format", "bash", "plan", says=["leave COMMAND out"])
        self.refused(2, "help", "--write", self.dir, "plan", says=["--write writes everything"])
        self.refused(2, "help", "-o", self.dir / "x", says=["--format"])
        self.refused(2, "help", "--formt", says=["did you mean --format?"])

    def test_write_puts_all_where_it_is_looked_for(self):
        share = self.dir / "a" / "share"
        self.ok("help", "--write", share)
        found = {str(p.relative_to(share)): p.read_text() for p in share.rglob("*") if p.is_file()}
        self.assertEqual(self.ok("help", "--format", "man").stdout, self.pages[""])
        wanted = {"man/man1/tidemark.1": self.pages[""],
                  **{f"man/man1/tidemark-{name}.1": page for name, page in self.pages.items() if name},
                  "bash-completion/completions/tidemark": self.ok("help", "--format", "bash").stdout,
                  "zsh/site-functions/_tidemark": self.ok("help", "--format", "zsh").stdout,
                  "fish/vendor_completions.d/tidemark.fish": self.ok("help", "--format", "fish").stdout}
        self.assertEqual(found, wanted)
        self.ok("help", "--write", share)  # again: the same
        self.ok("help", "--format", "man", "plan", "-o", self.dir / "plan.1")
        self.assertEqual((self.dir / "plan.1").read_text(), self.pages["plan"])
        built = pathlib.Path(PROGRAM).parent / "share"  # what was made when the program was built, and is installed
        if built.is_dir():
            self.assertEqual({str(p.relative_to(built)): p.read_text() for p in built.rglob("*") if p.is_file()}, wanted)
        (self.dir / "file").write_text("mine")
        self.refused(8, "help", "--write", self.dir / "file", says=["cannot make the folder", "file"])
        self.refused(2, "help", "--write", "", says=["is empty"])
        self.assertEqual((self.dir / "file").read_text(), "mine")


class Values(Case):
    """What completion proposes is what the program takes: its own words about a wrong value name the same."""

    def setUp(self):
        super().setUp()
        self.trace = self.dir / "trace.db"
        self.ok("run", SAMPLES / "lenet5.json", "-n", 1, "-o", self.trace, "--recorder", "thread")

    def proposed(self):
        """{(command, option): words}, of the script for fish."""
        script = self.ok("help", "--format", "fish").stdout
        rows = re.findall(r"(?m)^complete -c tidemark -n '__tidemark_is (\w+)'.* -l ([\w-]+).* -a '(?:\(__tidemark_list )?([^']*?)\)?' -d",
                          script)
        return {(command, option): words.split() for command, option, words in rows if not words.startswith("(")}

    def told(self, command, option):
        """What the program says of a value that is none: [words that it lists], or None when it lists none."""
        value = f"--{option}=zzqx"
        p = run(command, value, self.trace if command == "replay" else SAMPLES / "lenet5.json", *(["--json"] if option == "pane" else []),
                *(["-o", self.dir / "x.db"] if command in ("merge", "import", "record") else []))
        self.assertIn(p.returncode, (2, 3), f"{command} {value}\n{p.stderr}")
        self.assertIn("zzqx", p.stderr, f"{command} {value}")
        found = re.search(r"(?:is none of|allocators:|strategies are|is neither) ([^\n;]+)", p.stderr)
        return re.split(r", | and | or | nor ", found[1]) if found else None

    def test_words_are_those_that_the_program_lists(self):
        asked = self.proposed()
        self.assertGreater(len(asked), 50)
        listed = 0
        # Moments, devices and the like: their commands list them in other words, or elsewhere.
        for (command, option), words in share(asked.items(), 6):
            if option in ("at", "and", "domain", "device", "of", "run", "keys", "kind"):
                continue
            with self.subTest(command=command, option=option):
                told = self.told(command, option)
                known = set(told or [])
                if option == "strategy" and command == "replay":
                    self.assertEqual(words, asked["plan", "strategy"])
                elif option == "allocator" and command == "replay":
                    self.assertLessEqual(known, set(words))
                    self.assertIn("pytorch", words)
                else:
                    self.assertEqual(set(words), known if option != "view" else {w for w in known if not w.isdigit()})
                listed += 1
        self.assertGreater(listed, 5)

    def test_other_words_are_taken(self):
        asked = self.proposed()
        lenet = SAMPLES / "lenet5.json"
        for words, command in ((asked["replay", "kind"], ["replay", lenet, "--kind"]), (asked["run", "device"], ["run", lenet, "--device"]),
                               (asked["allocators", "device"][:2], ["allocators", "--device"]),
                               (asked["replay", "of"], ["replay", lenet, "--of"])):
            self.assertTrue(words)
            for word in words:
                self.assertNotIn(f"'{word}' is", run(*command, word).stderr)
        self.ok("tui", "--keys=" + asked["tui", "keys"][0])

    def test_every_option_of_every_command_is_proposed(self):
        script = self.ok("help", "--format", "fish").stdout
        for name in commands():
            options = set(re.findall(r"(?m)^  (?:-\w, )?--([\w-]+)", help_of(name)))
            proposed = set(re.findall(rf"(?m)^complete -c tidemark -n '__tidemark_is {name}'.* -l ([\w-]+)", script))
            self.assertEqual(options - proposed, set(), name)
        self.assertNotIn("test-mode", script)
        self.assertNotIn("-a collect ", script)


class Terminal:
    """A shell that is typed into."""

    def __init__(self, test, argv, env):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(test.dir)
            os.execvpe(argv[0], argv, env)
        self.test = test

    def close(self):
        os.close(self.terminal)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def type(self, keys, *wanted):
        """What is shown after the keys, once all that is wanted is there."""
        os.write(self.terminal, keys.encode())
        shown, deadline = "", time.monotonic() + 20
        while not all(word in shown for word in wanted):
            if time.monotonic() > deadline:
                self.test.fail(f"{keys!r}: {[w for w in wanted if w not in shown]} never came:\n{shown}")
            if select.select([self.terminal], [], [], 0.1)[0]:
                shown += re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\x1b[=>]|\r|\x07", "", os.read(self.terminal, 65536).decode(errors="replace"))
                shown = re.sub(r"[^\x08]\x08", "", shown)
        return shown


# What is typed before the tab key, and how the line then goes on.
TYPED = [("tidemark pl", "an"),
         ("tidemark plan --budg", "et"),
         ("tidemark plan --strategy greedy_by_c", "onflicts"),
         ("tidemark export --to chr", "ome-trace"),
         ("tidemark run --allocator cpu_caching:sizes=p", "ow2"),
         ("tidemark compare --strategy sim:ar", "ena"),
         ("tidemark compare --strategy=sim:ar", "ena"),
         ("tidemark run --fill=po", "ison"),
         ("tidemark tui --view stac", "ks"),
         ("tidemark replay --kind KV", "Cache"),
         ("tidemark sweep --strategy search,linear_", "scan"),
         ("tidemark help exp", "ort"),
         ("tidemark report my_mod", "el.onnx"),
         ("tidemark run --input-dir my_fol", "der"),
         ("tidemark demo my_", "folder"),
         ("tidemark record -o x.db -- tidemark_test_pro", "gram")]


def last(line):
    """The last word of a line, or the value of its option: what a shell proposes is that."""
    return re.split(r"[ =]", line)[-1]


class Shells(Case):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        for name in ("tidemark", "tidemark_test_program"):
            (self.dir / "bin" / name).symlink_to(PROGRAM)
        (self.dir / "my_model.onnx").write_text("")
        (self.dir / "my_folder").mkdir()
        self.ok("help", "--write", self.dir / "share")
        self.env = environment({"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "HOME": str(self.dir), "TERM": "xterm",
                                "INPUTRC": "/dev/null", "XDG_CONFIG_HOME": str(self.dir), "XDG_DATA_HOME": str(self.dir / "share"),
                                "HISTFILE": "/dev/null"})

    def type_all(self, shell, clear, is_plain):
        self.addCleanup(shell.close)
        for before, more in TYPED:
            # The whole line is there, however it was drawn.
            shell.type(before + "\t", before + more if is_plain else last(before + more))
            shell.type(clear + " echo cle''ared\r", "cleared")

    @needs("bash")
    def test_bash(self):
        shell = Terminal(self, ["bash", "--norc", "--noprofile", "-i"], self.env)
        shell.type("bind 'set enable-bracketed-paste off'; bind 'set page-completions off'; PS1='$ '\r"
                   f" . {self.dir}/share/bash-completion/completions/tidemark; echo rea''dy\r", "ready")
        self.type_all(shell, "\x15", True)
        # Several that fit are listed; options of other commands are not among them.
        shown = shell.type("tidemark check --\t\t", "--baseline-of", "--sarif", "--update-baseline")
        self.assertNotIn("--leak-check", shown)
        shell.type("\x15tidemark \t\t", "operators", "sweep", "--version")

    @needs("zsh")
    def test_zsh_reads_the_script(self):
        p = subprocess.run(["zsh", "-f", "-n", self.dir / "share/zsh/site-functions/_tidemark"], capture_output=True, text=True,
                           timeout=60)
        self.assertEqual((p.returncode, p.stderr), (0, ""))

    @needs("zsh")
    @unittest.skipUnless(os.environ.get("TIDE_SOAK"), "zsh's completion takes two seconds of the processor to begin: make soak")
    def test_zsh(self):
        shell = Terminal(self, ["zsh", "-f", "-i"], self.env)
        shell.type(f"PS1='$ '; fpath=({self.dir}/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -D -u; "
                   "unsetopt zle_bracketed_paste; echo rea''dy\r", "ready\n")
        self.type_all(shell, "\x15", False)
        shell.type("tidemark check --\t\t", "--baseline-of", "hold against this instead of", "--sarif")

    @needs("fish")
    def test_fish(self):
        """fish's own engine, asked without a terminal: `complete -C`."""
        asks = "\n".join(f"echo '== {i}'; complete -C '{before}'" for i, (before, _) in enumerate(TYPED))
        p = subprocess.run(["fish", "--no-config", "-c", f"source {self.dir}/share/fish/vendor_completions.d/tidemark.fish\n{asks}"],
                           cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        answers = re.split(r"== \d+\n", p.stdout)[1:]
        self.assertEqual(len(answers), len(TYPED))
        for (before, more), answer in zip(TYPED, answers):
            self.assertIn(last(before + more), answer, before)
        self.assertIn("plan\tPlan the memory of a model, graph or lifetimes file", answers[0])
        self.assertNotIn("my_model.onnx", answers[5])


if __name__ == "__main__":
    tidemark.main()
