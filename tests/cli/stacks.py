# SPDX-License-Identifier: MIT
"""tidemark record --stacks: what the trace says of who asked, held to the byte against a program that knows its own tree of
calls (tests/preload/calls.c), compiled in each way in which a caller is found."""
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import unittest

import tidemark
from tidemark import Case, ask, run, until

BUILT = pathlib.Path(os.environ.get("TIDE_PRELOAD_DIR", "build/test/tests/preload"))
PROGRAMS = [BUILT / f"calls_{name}" for name in ("omit", "keep", "plain", "other")]
OMIT = PROGRAMS[0]
ONE, TWO = BUILT / "grab_one.so", BUILT / "grab_two.so"
HAS_STACKS = OMIT.exists() and os.environ.get("TIDE_HAS_STACKS") == "1"
HAS_SYMBOLS = os.environ.get("TIDE_HAS_SYMBOLS") == "1"
tidemark.CLEAN["TIDEMARK_PRELOAD"] = None # the library that is beside the program


@unittest.skipUnless(HAS_STACKS, "call stacks want x86-64, glibc 2.35 and a build without sanitizers")
class Stacks(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def record(self, *command, code=0, depth=32, options=(), **kw):
        done = run("record", "--force", "-o", self.path, "--stacks", str(depth), *options, "--", *command, **kw)
        self.assertEqual(done.returncode, code, f"{command}\nstdout: {done.stdout[-1000:]}\nstderr: {done.stderr[-2000:]}")
        return done

    def told(self, *command, **kw):
        """By function what the program says that it took: [its own bytes, with all that it called]."""
        lines = self.record(*command, **kw).stdout.split("\n")
        return {name: [int(own), int(with_callees)] for name, own, with_callees in map(str.split, filter(None, lines))}

    def groups(self, by="function", at="end"):
        found = self.json("trace", self.path, "--whole", "--at", at, "--by", by, "--json")["groups"]
        return {g["key"]: [g["requested_bytes"], g["with_callees_bytes"]] for g in found}

    def is_as_told(self, told):
        self.assertGreater(len(told), 0)
        found = self.groups()
        self.assertEqual({name: found.get(name) for name in told}, told)
        # Every allocation has its stack, and no free.
        self.assertEqual(ask(self.path, "SELECT DISTINCT op = 3, scope_id IS NULL FROM event WHERE op IN (1, 3) AND (op = 3) <> (scope_id IS NULL)"), [])
        self.ok("trace", self.path, "--check")

    def counts(self, process=1):
        """Events without a stack, and with a part of one."""
        value, = ask(self.path, "SELECT value FROM meta WHERE key = ?", f"stacks.{process}")[0]
        return [int(word.partition("=")[2]) for word in value.split()]

    def parts(self):
        """Names that stand in place of a call."""
        return {name for name, in ask(self.path, "SELECT DISTINCT n.text FROM scope s JOIN name n ON n.id = s.name_id WHERE n.text GLOB '[[]*'")}


@unittest.skipUnless(HAS_SYMBOLS, "libdw is not installed: functions have no names")
class Told(Stacks):
    def test_a_tree_of_calls_in_each_way_of_compiling(self):
        for program in PROGRAMS:
            told = self.told(program, "tree")
            self.assertEqual(set(told), {"leaf", "middle", "twice", "down", "near_inner", "near_outer", "with_near", "wide"})
            self.is_as_told(told)
            self.assertEqual((self.counts(), self.parts()), ([0, 0], set()), program)

    def test_a_program_without_a_list_of_addresses(self):
        """As clang makes them: which unit an address is in is found by the units themselves."""
        program = self.dir / "calls_omit"
        subprocess.run(["objcopy", "--remove-section", ".debug_aranges", OMIT, program], check=True)
        self.is_as_told(self.told(program, "tree"))
        self.assertTrue(ask(self.path, "SELECT 1 FROM name WHERE text GLOB 'near_inner @ *calls.c:*'"))

    def test_lines_files_and_libraries(self):
        self.record(OMIT, "tree")
        source = str(pathlib.Path(__file__).parents[1] / "preload/calls.c")
        self.assertEqual(self.groups("file")[source], self.groups("library")["calls_omit"])
        self.assertEqual(self.groups("module")["calls_omit"][0], self.groups("library")["calls_omit"][0])
        lines = pathlib.Path(source).read_text().split("\n")
        for name, inside in (("leaf", "TAKE(n);"), ("near_inner", "TAKE(n);"), ("with_near", "TAKE(3);"), ("down", "TAKE(777);")):
            texts = [text for text, in ask(self.path, "SELECT DISTINCT text FROM name WHERE text GLOB ?", f"{name} @ {source}:*")]
            found = {lines[int(text.rpartition(":")[2].split()[0]) - 1].strip() for text in texts}
            self.assertIn(inside, found, name)

    @unittest.skipUnless(shutil.which("addr2line"), "binutils is not installed")
    def test_names_are_those_that_another_reader_finds(self):
        """Function, file and line of each address, and what it was inlined into, by addr2line."""
        for program in PROGRAMS:
            self.record(program, "tree", options=["--no-symbols"])
            raw = {id: int(text.rpartition("+0x")[2], 16) for id, text in ask(self.path, "SELECT s.id, n.text FROM scope s JOIN name n ON "
                   "n.id = s.name_id WHERE n.text GLOB ?", program.name + "+0x*")}
            old = {id for id, in ask(self.path, "SELECT id FROM scope")}
            self.ok("trace", self.path, "--symbols")
            scopes = {id: (parent, text) for id, parent, text in
                      ask(self.path, "SELECT s.id, s.parent_id, n.text FROM scope s JOIN name n ON n.id = s.name_id")}
            self.assertGreater(len(raw), 20)
            said = subprocess.run(["addr2line", "-aife", program, *map(hex, raw.values())], capture_output=True, text=True, check=True).stdout
            answers = dict(zip(raw, (one.split("\n")[1:] for one in re.split(r"(?m)^0x", said)[1:])))
            for id in raw:
                address, said = raw[id], answers[id]
                wanted = [f"{name} @ {os.path.normpath(place.split(' ')[0])} [{program.name}]" for name, place in zip(said[::2], said[1::2])]
                found = [scopes[id][1]]
                while scopes[id][0] is not None and scopes[id][0] not in old:
                    id = scopes[id][0]
                    found.append(scopes[id][1])
                if "??" not in said[1]: # _start has a symbol alone
                    self.assertEqual(found, wanted, hex(address))

    def test_inlined_functions_are_frames_between_their_callers(self):
        self.record(OMIT, "tree")
        rows = ask(self.path, """WITH RECURSIVE up(id, way) AS (
            SELECT s.parent_id, n.text FROM scope s JOIN name n ON n.id = s.name_id WHERE n.text GLOB 'near_inner @*'
            UNION ALL SELECT s.parent_id, way || ' < ' || n.text FROM up JOIN scope s ON s.id = up.id JOIN name n ON n.id = s.name_id)
            SELECT way FROM up WHERE id IS NULL""")
        self.assertGreater(len(rows), 0)
        for way, in rows:
            self.assertEqual([call.split()[0] for call in way.split(" < ")][:5], ["near_inner", "near_outer", "with_near", "tree", "main"])

    def test_other_stacks_than_that_of_the_program(self):
        """A signal handler on a stack of its own, threads with little of it, a context that was made."""
        for program in PROGRAMS:
            for command in (["signals"], ["threads", "100"], ["other"]):
                self.is_as_told(self.told(program, *command))
                # The C library does not say that nothing called what makecontext begins.
                wanted = ([0, 8], {"[cut]"}) if command == ["other"] else ([0, 0], set())
                self.assertEqual((self.counts(), self.parts()), wanted, (program, command))

    def test_libraries_that_come_and_go_beside_threads(self):
        self.is_as_told(self.told(OMIT, "loading", ONE))
        self.assertEqual(self.counts(), [0, 0])

    def test_a_library_in_the_place_of_another(self):
        for program in PROGRAMS[:2]:
            said = self.record(program, "libraries", ONE, TWO, ONE, TWO, TWO, ONE).stdout.split()
            self.assertEqual(said[0], "same")
            self.assertGreater(int(said[1]), 0, "the loader gave no address twice: nothing was tried")
            found = self.groups()
            # Each takes 1,000 and 2,000 bytes in turn: one.so 1,000 1,000 2,000, two.so 2,000 2,000 1,000.
            self.assertEqual({name: found[name] for name in ("grab_one", "grab_two", "grab")},
                             {"grab_one": [4000, 4000], "grab_two": [5000, 5000], "grab": [0, 9000]})

    def test_code_that_is_made_while_it_runs(self):
        """It lies in no file. What called it is found by its frame pointer, where it has one."""
        told = self.told(OMIT, "made")
        self.is_as_told(told)
        found = self.groups()
        self.assertEqual(found["[unknown]"], [0, told["call_back"][1]])
        self.assertGreaterEqual(found["main"][1], told["call_back"][1])
        self.assertEqual(self.counts(), [0, 0])
        for how in ("broken", "wild", "astray"):
            told = self.told(OMIT, how)
            self.is_as_told(told)
            found = self.groups()
            self.assertEqual((found["[unknown]"], found["[cut]"]), ([0, told["call_back"][1]], [0, told["call_back"][1]]))
            self.assertLess(found["main"][1], told["call_back"][1])
            self.assertEqual(self.counts(), [0, 2])
            self.assertEqual(ask(self.path, "SELECT DISTINCT p.text FROM scope s JOIN name n ON n.id = s.name_id JOIN scope o ON o.id = s.parent_id "
                                 "JOIN name p ON p.id = o.name_id WHERE n.text = '[unknown]'"), [("[cut]",)], how)

    def test_more_calls_than_were_asked_for(self):
        for depth in (1, 5, 64):
            told = self.told(OMIT, "deep", "100", depth=depth)
            self.is_as_told(told)
            self.assertGreaterEqual(self.groups()["[deeper]"][1], 777)
            self.record(OMIT, "deep", "100", depth=depth, options=["--no-symbols"])
            longest, = ask(self.path, """WITH RECURSIVE down(id, n) AS (SELECT id, 1 FROM scope WHERE parent_id IS NULL
                UNION ALL SELECT s.id, n + 1 FROM down JOIN scope s ON s.parent_id = down.id) SELECT max(n) FROM down""")[0]
            self.assertEqual(longest, depth + 1)

    def test_what_is_freed_at_once_and_what_never(self):
        told = self.told(OMIT, "temporary")
        self.assertEqual(told, {"at_once": [3 * 500 * 501 // 2] * 2})
        for form in ("rows", "chunks"):
            self.record(OMIT, "temporary", options=["--form", form])
            self.assertEqual(self.groups(at="temporary")["at_once"], told["at_once"], form)
        self.assertNotIn("at_once", self.groups(at="leaked"))
        self.assertEqual(self.groups(at="leaked"), self.groups(at="end"))

    def test_operator_new_is_not_who_asked(self):
        self.record(BUILT / "preload_operators")
        # What the C++ library takes before main, and before there is a feed.
        early = ask(self.path, "SELECT DISTINCT scope_id IS NULL FROM event WHERE op = 1 AND requested_bytes = 72704")
        self.assertIn(early, ([(0,)], []))
        found = self.groups(at="temporary")
        operators = [name for name in found if name.startswith("operator new")]
        self.assertGreater(len(operators), 0)
        for name in operators:
            self.assertEqual(found[name][0], 0)
            self.assertGreater(found[name][1], 0)

    def test_a_child_of_fork(self):
        tree = self.told(OMIT, "tree")
        child = self.told(OMIT, "fork")
        both = {name: [a + b for a, b in zip(tree[name], child.get(name, [0, 0]))] for name in tree}
        self.is_as_told(both)
        self.assertEqual((self.counts(1), self.counts(2)), ([0, 0], [0, 0]))

    def test_a_process_that_is_killed(self):
        ready = self.dir / "ready"
        p = self.start("record", "--force", "-o", self.path, "--stacks", "16", "--", "sh", "-c",
                       f"{OMIT.resolve()} tree; echo $$ > {ready}; kill -9 $$")
        until(ready.exists)
        self.assertEqual(p.wait(), 137)
        self.assertEqual(self.groups(at="leaked")["down"], [777, 777])

    def test_a_collector_that_is_killed(self):
        """The drain that goes on reads the log of the feed again, and calls files by the names that they have."""
        go, ready = self.dir / "go", self.dir / "ready"
        script = f"{OMIT.resolve()} tree; : > {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {OMIT.resolve()} tree"
        p = self.start("record", "--force", "-o", self.path, "--stacks", "16", "--", "sh", "-c", script)
        until(ready.exists)
        p.send_signal(signal.SIGKILL)
        p.wait()
        go.touch()
        until(lambda: not subprocess.run(["pgrep", "-f", str(go)], capture_output=True, text=True).stdout)
        self.ok("trace", self.path, "--symbols")
        self.assertEqual(self.groups(at="leaked")["down"][0] % 777, 0)
        self.assertGreaterEqual(self.groups(at="leaked")["down"][0], 777)

    def test_names_that_are_found_later(self):
        told = self.told(OMIT, "tree", options=["--no-symbols"])
        self.assertFalse(set(told) & set(self.groups()))
        self.assertTrue(any(name.startswith("calls_omit+0x") for name in self.groups()))
        said = self.json("trace", self.path, "--symbols", "--json")
        self.assertEqual((said["refused"], said["named"]), (0, said["frames"]))
        self.is_as_told(told)
        self.assertEqual(self.json("trace", self.path, "--symbols", "--json")["frames"], 0)

    def test_traces_that_are_made_of_such_traces(self):
        told = self.told(OMIT, "tree")
        first, second = self.dir / "first.db", self.dir / "second.db"
        for options in (["--form", "chunks"], ["--form", "rows"]):
            self.record(OMIT, "tree", options=options)
            self.is_as_told(told)
            self.path.rename(first)
            shutil.copy(first, second)
            self.ok("merge", first, second, "-o", self.path, "--force")
            self.is_as_told({name: [2 * own, 2 * with_callees] for name, (own, with_callees) in told.items()})
            self.path.unlink()
            self.ok("trace", first, "--recover", "-o", self.path, "--force")
            self.is_as_told(told)


class Without(Stacks):
    """Without names, or without all of them."""

    def test_a_stripped_program_has_no_names(self):
        told = self.told(OMIT, "tree")
        stripped = self.dir / "stripped"
        shutil.copy(OMIT, stripped)
        subprocess.run(["strip", "--strip-all", stripped], check=True)
        self.assertEqual(self.told(stripped, "tree"), told)
        found = self.groups()
        self.assertFalse(set(found) & (set(told) | {"main", "tree"}))
        own = sum(own for name, (own, _) in found.items() if name.startswith("stripped+0x"))
        self.assertEqual(own, sum(own for own, _ in told.values()))
        library = self.groups("library")["stripped"]
        self.assertEqual(library[0], own)

    @unittest.skipUnless(HAS_SYMBOLS, "libdw is not installed")
    def test_a_stripped_library_has_those_that_it_exports(self):
        """A function without a name is not called by that of its neighbour."""
        library = self.dir / "grab.so"
        shutil.copy(ONE, library)
        subprocess.run(["strip", "--strip-all", library], check=True)
        self.record(OMIT, "libraries", library)
        found = self.groups()
        self.assertEqual(found["grab"], [0, 1000])
        inner, = [name for name in found if name.startswith("grab.so+0x")]
        self.assertEqual(found[inner], [1000, 1000])

    @unittest.skipUnless(HAS_SYMBOLS, "libdw is not installed")
    def test_a_trace_whose_frames_lie_in_themselves(self):
        self.record(OMIT, "tree")
        with sqlite3.connect(self.path) as db:
            rows = [id for id, in db.execute("SELECT id FROM scope ORDER BY id")]
            later = [id for id, parent in db.execute("SELECT id, parent_id FROM scope") if (parent or 0) > id]
            self.assertGreater(len(later), 0)
            for a, b in ((rows[3], rows[-1]), (rows[-1], rows[3]), (rows[5], rows[5]), (rows[7], 1 << 30)):
                db.execute("UPDATE scope SET parent_id = ? WHERE id = ?", (b, a))
        db.close()
        for command in (["--at", "end", "--by", "function"], ["--at", "end", "--by", "stack"]):
            self.ok("trace", self.path, *command, timeout=60)
        self.ok("trace", self.path, "--recover", "-o", self.dir / "r.db")
        self.ok("export", self.path, "--to", "pytorch", "-o", self.dir / "p.pickle")

    @unittest.skipUnless(HAS_SYMBOLS, "libdw is not installed")
    def test_a_library_that_is_another_one_now(self):
        library = self.dir / "grab.so"
        for change, why in ((lambda: shutil.copy(TWO, library), "it is another file now than the one that ran"),
                            (library.unlink, "it is not there any more"),
                            (lambda: library.write_text("no library"), "")):
            library.unlink(missing_ok=True)
            shutil.copy(ONE, library)
            self.record(OMIT, "libraries", library, options=["--no-symbols"])
            library.unlink()
            shutil.copy(ONE, library)
            change()
            said = self.ok("trace", self.path, "--symbols")
            self.assertIn("functions of 1 file have no names", said.stderr)
            self.assertIn(why, said.stderr)
            self.assertIn(why, ask(self.path, "SELECT value FROM meta WHERE key = 'symbols.grab.so'")[0][0])
            names = set(self.groups())
            self.assertFalse(names & {"grab", "grab_one", "grab_two"})
            self.assertTrue(any(name.startswith("grab.so+0x") for name in names))
            self.assertIn("main", names)
        library.unlink()
        shutil.copy(ONE, library)
        self.ok("trace", self.path, "--symbols")
        self.assertIn("grab_one", self.groups())
        self.assertEqual(ask(self.path, "SELECT count(*) FROM meta WHERE key GLOB 'symbols.*'"), [(0,)])

    def test_two_files_of_one_name(self):
        for name, library in (("a", ONE), ("b", TWO)):
            (self.dir / name).mkdir()
            shutil.copy(library, self.dir / name / "grab.so")
        self.record(OMIT, "libraries", self.dir / "a/grab.so", self.dir / "b/grab.so")
        self.assertLessEqual({"grab.so", "grab.so#2"}, set(self.groups("library")))

    def test_no_plug_in(self):
        said = self.record(OMIT, "tree", env={"TIDEMARK_SYMBOLS": str(self.dir / "none.so")}).stderr
        self.assertIn("call stacks have no names", said)
        self.assertTrue(any(name.startswith("calls_omit+0x") for name in self.groups()))
        self.refused(3, "trace", self.path, "--symbols", env={"TIDEMARK_SYMBOLS": str(self.dir / "none.so")}, says=["no names"])

    def test_nothing_of_the_programs_is_taken(self):
        """A library that counts is loaded behind ours: with stacks it counts what it counts without."""
        sums = []
        for options in ([], ["--stacks", "32"], ["--stacks", "64"]):
            said = self.dir / "shadow.txt"
            said.unlink(missing_ok=True)
            done = run("record", "--force", "-o", self.path, *options, "--", OMIT, "threads", "20",
                       env={"LD_PRELOAD": str((BUILT / "preload_shadow.so").resolve()), "SHADOW_FILE": str(said)})
            self.assertEqual(done.returncode, 0, done.stderr)
            sums.append(said.read_text().split()[1:5])
        self.assertEqual(sums[0], sums[1])
        self.assertEqual(sums[0], sums[2])

    def test_a_process_without_room_for_stacks(self):
        """A limit on addresses leaves no room for the table of stacks: every event is there, and those without a stack are counted."""
        tree = self.record(OMIT, "tree").stdout
        said = self.record("sh", "-c", f"ulimit -v 16000; exec {OMIT.resolve()} tree")
        self.assertEqual(said.stdout, tree)
        without, = ask(self.path, "SELECT count(*) FROM event WHERE op = 1 AND scope_id IS NULL AND block_id >> 48 = 1")[0]
        self.assertGreater(without, 1000)
        self.assertEqual(self.counts(2), [without, 0])
        self.assertIn(f"{without} blocks are without their call stack", said.stderr)

    def test_no_stacks_where_none_were_asked_for(self):
        run("record", "--force", "-o", self.path, "--", OMIT, "tree", env={"TIDEMARK_STACKS": "16"})
        self.assertEqual(ask(self.path, "SELECT count(*) FROM scope"), [(0,)])
        self.assertEqual(list(self.groups()), ["(no stack)"])


class Refused(Case):
    def test_what_cannot_be(self):
        path = self.dir / "t.db"
        for words, says in ((["--stacks", "0"], "between 1 and 64"), (["--stacks", "65"], "between 1 and 64"), (["--stacks", "x"], "x"),
                            (["--stacks", "8", "--malloc", "off"], "--malloc off"), (["--no-symbols"], "--stacks")):
            self.refused(2, "record", "-o", path, *words, "--", "true", says=[says])
            self.assertFalse(path.exists())
        static = BUILT / "preload_static"
        if HAS_STACKS and static.exists():
            self.refused(3, "record", "-o", path, "--stacks", "8", "--", static, says=["--stacks", "static program"])
        self.refused(3, "record", "-o", path, "--stacks", "8", "--", "true", env={"TIDEMARK_PRELOAD": str(self.dir / "none.so")},
                     says=["--stacks"])
        self.assertFalse(path.exists())


if __name__ == "__main__":
    tidemark.main()
