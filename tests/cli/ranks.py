# SPDX-License-Identifier: MIT
"""Ranks that a launcher starts, four by mpirun: all record into one trace, and each says which it was."""
import json
import shutil
import subprocess
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, until

LENET = SAMPLES / "lenet5.json"
N_RANKS = 4
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(N_RANKS)]


def why_not():
    if shutil.which("mpirun") is None:
        return "mpirun is not installed"
    p = subprocess.run([*MPIRUN, "true"], capture_output=True, text=True, timeout=300, check=False, env=environment({}))
    return None if p.returncode == 0 else f"mpirun starts nothing here: {p.stderr.strip()[-300:]}"


@unittest.skipIf(why_not(), why_not())
class Ranks(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def record(self, script, *options):
        """`script` in a shell per rank, with PROGRAM, MODEL and OUT, a file of that rank."""
        where = f'PROGRAM="{PROGRAM}" MODEL="{LENET}" OUT="{self.dir}/$OMPI_COMM_WORLD_RANK.json"'
        return self.ok("record", "-o", self.path, *options, "--", *MPIRUN, "sh", "-c", f"{where}; {script}")

    def test_each_rank_has_its_own_events(self):
        """Ranks that do different amounts of work at the same time: the file has of each what it counted itself."""
        for options in ([], ["--form", "chunks"], ["--form", "rows", "--ring-events", "64"]):
            with self.subTest(options=options):
                turns = "$((10 + 15 * OMPI_COMM_WORLD_RANK))"
                self.record(f'"$PROGRAM" run "$MODEL" --naive -n {turns} --json > "$OUT"', *options)
                facts = self.json("trace", self.path)
                self.assertEqual((facts["state"], facts["processes"], facts["lost"], facts["problems"], facts["leaks"]),
                                 ("complete", N_RANKS, 0, 0, 0))
                ranks = ask(self.path, "SELECT rank, how, lost FROM processes ORDER BY rank")
                self.assertEqual(ranks, [(rank, "closed", 0) for rank in range(N_RANKS)])
                self.ok("trace", self.path, "--check")
                self.ok("trace", self.path, "--expand")
                n_events = 0
                for rank in range(N_RANKS):
                    doc = json.loads((self.dir / f"{rank}.json").read_text())
                    self.assertEqual((doc["trace"], doc["recorder"]["state"]), (str(self.path), "attached"))
                    of_rank = f"(SELECT id FROM process WHERE rank = {rank})"
                    heard = ask(self.path, f"""SELECT count(*) FROM event JOIN thread ON thread.id = event.thread
                                WHERE process_id = {of_rank}""")
                    self.assertEqual(heard, [(doc["recorder"]["events"],)])
                    turns = ask(self.path, f"""SELECT count(*) FROM scopes JOIN thread ON thread.id = scopes.thread
                                WHERE scope_kind = 'run' AND enter AND process_id = {of_rank}""")
                    self.assertEqual(turns, [(10 + 15 * rank,)])
                    totals = ask(self.path, f"""SELECT kind, requested_bytes, allocations FROM totals
                                 WHERE process_id = {of_rank}""")
                    own = [(k["kind"], k["requested_bytes"], k["allocations"]) for k in doc["kinds"]]
                    self.assertEqual(sorted(totals), sorted(own))
                    n_events += doc["recorder"]["events"]
                self.assertEqual(facts["events"], n_events)

    def test_a_rank_that_is_killed(self):
        """kill -9 of one rank: mpirun ends the others, and what all had put in until then is there."""
        script = f'[ $OMPI_COMM_WORLD_RANK = 2 ] && echo $$ > "{self.dir}/pid"; ' \
                 f'exec "{PROGRAM}" run "{LENET}" --naive -n 100000000 > /dev/null'
        p = self.start("record", "-o", self.path, "--", *MPIRUN, "sh", "-c", script)
        until(lambda: p.poll() is not None or self.n_ranks_seen() == N_RANKS)
        self.assertIsNone(p.poll())
        subprocess.run(["kill", "-9", (self.dir / "pid").read_text().strip()], check=True)
        _, err = p.communicate(timeout=300)
        self.assertNotEqual(p.returncode, 0, err)
        facts = self.json("trace", self.path)
        self.assertEqual((facts["state"], facts["processes"], facts["lost"]), ("complete", N_RANKS, 0))
        self.assertEqual(facts["problems"], 0)
        ranks = dict(ask(self.path, "SELECT rank, how FROM processes"))
        self.assertEqual((sorted(ranks), ranks[2]), (list(range(N_RANKS)), "killed"))
        self.ok("trace", self.path, "--check")

    def n_ranks_seen(self):
        """Ranks of which something is committed."""
        try:
            return len(ask(self.path, "SELECT DISTINCT process_id FROM position WHERE position > 0"))
        except Exception:  # no such file, no such table, or busy: not yet
            return 0


if __name__ == "__main__":
    tidemark.main()
