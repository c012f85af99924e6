# SPDX-License-Identifier: MIT
"""What a recorded process tells of itself (its row, runs with their plans, facts) reaches the trace through its feed: no
database is opened in it while a collector drains, and whoever is killed, at any moment, nothing of it is lost or doubled.
Usage: register.py VICTIM TIDEMARK [KILLS [SEED]]"""
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

FIELDS = ("pid", "is_open", "begun", "facts", "events", "ended", "is_closed")
N_TENSORS = 300
faults = []


def check(good, what):
    if not good:
        faults.append(what)
    return good


def ledger(path):
    data = path.read_bytes() if path.exists() else b""
    return dict(zip(FIELDS, struct.unpack("<7Q", data))) if len(data) == 56 else dict.fromkeys(FIELDS, 0)


def hold_against(trace, ledgers, what, complete):
    """Each process of a ledger is in the trace once, with all its runs and facts, whole, and at most one more each."""
    db = sqlite3.connect(trace)
    state = dict(db.execute("SELECT key, value FROM meta"))
    check(state.get("state") == "complete", f"{what}: the trace is {state.get('state')}, {state.get('reason')}")
    check(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{what}: the file is damaged")
    check(db.execute("SELECT count(*) FROM problem").fetchone() == (0,), f"{what}: {db.execute('SELECT * FROM problem').fetchall()[:3]}")
    for l in ledgers:
        rows = db.execute("SELECT id, how FROM process WHERE pid = ?", (l["pid"],)).fetchall()
        if not check(len(rows) == 1 or (not l["is_open"] and not rows), f"{what}: {len(rows)} rows of process {l}") or not rows:
            continue
        runs = db.execute("SELECT id, model, end_ns IS NOT NULL FROM run WHERE process_id = ? ORDER BY id", (rows[0][0],)).fetchall()
        check([m for _, m, _ in runs] == [str(k + 1) for k in range(len(runs))], f"{what}: runs {[m for _, m, _ in runs]}")
        check(l["begun"] <= len(runs) <= l["begun"] + 1, f"{what}: {len(runs)} runs in the trace, {l['begun']} told of")
        for i, model, ended in runs:
            n = db.execute("SELECT count(*), count(DISTINCT name), sum(offset_bytes) FROM plan_tensor WHERE run_id = ?", (i,)).fetchone()
            check(n == (N_TENSORS, N_TENSORS, 64 * N_TENSORS * (N_TENSORS - 1) // 2), f"{what}: the plan of run {model} has {n}")
            check(ended or int(model) > l["ended"], f"{what}: run {model} has no end")
        fact = int(state.get(f"fact.{l['pid']}", "0"))
        check(l["facts"] <= fact <= l["facts"] + 3, f"{what}: the fact is {fact}, {l['facts']} told of")
        (n,) = db.execute("SELECT count(*) FROM event JOIN thread t ON t.id = event.thread WHERE t.process_id = ? AND op IN (1, 3)",
                          (rows[0][0],)).fetchone()
        check(l["events"] <= n <= l["events"] + 2, f"{what}: {n} events in the trace, {l['events']} told of")
        check(not complete or (l["is_closed"] and len(runs) == l["begun"] and fact == l["facts"]), f"{what}: {l} did not come to its end")
    db.close()


class Case:
    def __init__(self, folder, victim, tidemark):
        self.folder, self.victim, self.tidemark = folder, victim, tidemark
        self.trace = folder / "t.db"

    def ledgers(self):
        return [ledger(path) for path in sorted(self.folder.glob("ledger*"))]

    def start(self, way, n_runs, env=None):
        """One program with a collector of its own, or three in the collector of `tidemark record`."""
        own = [str(self.victim), str(self.folder / "ledger1"), str(n_runs), str(self.trace), str(self.tidemark)]
        three = " & ".join(f"{self.victim} {self.folder}/ledger{i} {n_runs}" for i in (1, 2, 3)) + " & wait"
        command = own if way == "own" else [str(self.tidemark), "record", "--quiet", "-o", str(self.trace), "--", "sh", "-c", three]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(env or {})},
                                start_new_session=True)

    def collector(self, started, way):
        if way != "own":
            return started.pid
        try:
            children = pathlib.Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def wait_for_victims(self):
        """Those of the shell go on when it has gone."""
        for _ in range(3000):
            pids = [l["pid"] for l in self.ledgers() if l["pid"]]
            if not any(pathlib.Path(f"/proc/{p}/exe").exists() and self.victim.name in os.path.realpath(f"/proc/{p}/exe") for p in pids):
                return
            time.sleep(0.01)
        check(False, "a program does not come to its end")


def kill(pid):
    try:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def one_kill(case, way, who, wait_s):
    started = case.start(way, 1 << 40 if who != "collector" else 40)
    time.sleep(wait_s)
    collector = case.collector(started, way)
    if who in ("collector", "both"):
        kill(collector)
    if who in ("program", "both"):
        for pid in [l["pid"] for l in case.ledgers() if l["pid"]] or ([started.pid] if way == "own" else []):
            kill(pid)
        if way != "own":
            os.killpg(started.pid, signal.SIGTERM)  # the shell, before it starts the next one
            time.sleep(0.02)
            for l in case.ledgers():
                kill(l["pid"] or None)
    started.communicate()
    case.wait_for_victims()
    for _ in range(3000):
        if not (case.trace.exists() and who == "program" and case.trace.with_name("t.db.drain").exists()):
            break
        time.sleep(0.01)  # the collector is at its end
    if not case.trace.exists():
        return check(not any(l["is_open"] for l in case.ledgers()), f"{way}, {who}: there is no trace")
    opened = subprocess.run([case.tidemark, "trace", case.trace], capture_output=True, text=True, check=False)
    if not check(opened.returncode == 0, f"{way}, {who}: {opened.stderr}"):
        return False
    left = [p.name for p in case.folder.iterdir() if p.name.startswith("t.db.feed") and not p.name.endswith(".new")]
    check(not left, f"{way}, {who}: {left} stay")
    hold_against(case.trace, case.ledgers(), f"{way}, {who} killed after {wait_s * 1000:.0f} ms", who == "collector" and way == "own")
    return True


def no_database(case, way):
    """Told by the program's own maps, and by the system."""
    started = case.start(way, 5, {"TIDE_NO_DATABASE": "1"})
    _, words = started.communicate()
    check(started.returncode == 0, f"{way}: {words}")
    hold_against(case.trace, case.ledgers(), f"{way}, to the end", True)
    if shutil.which("strace") is None:
        return print("skipped: there is no strace")
    for path in case.folder.iterdir():
        path.unlink()
    log = case.folder / "log"
    command = [case.victim, case.folder / "ledger1", "5"]
    done = subprocess.run([case.tidemark, "record", "--quiet", "-o", case.trace, "--", "strace", "-f", "-e", "trace=open,openat,creat",
                           "-o", log, *command], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "ptrace" in done.stderr.lower():
        return print("skipped: strace may not trace here")
    check(done.returncode == 0, f"under strace: {done.stderr}")
    opened = re.findall(r'"([^"]+)"', log.read_text())
    check(any(".feed-" in name for name in opened), "strace saw no feed")
    wrong = [name for name in opened if "sqlite" in name or "tidemark-trace" in name or re.search(r"\.db(-wal|-shm|-journal)?$", name)]
    return check(not wrong, f"a program that records opens {wrong}")


def main():
    victim, tidemark = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 200 if os.environ.get("TIDE_SOAK") else 2
    longest = 0.4 if len(sys.argv) > 3 or os.environ.get("TIDE_SOAK") else 0.15
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    rng = random.Random(seed)
    n = 0
    for way in ("own", "record"):
        with tempfile.TemporaryDirectory() as folder:
            no_database(Case(pathlib.Path(folder), victim, tidemark), way)
        for who in ("program", "collector", "both"):
            for _ in range(kills):
                with tempfile.TemporaryDirectory() as folder:
                    one_kill(Case(pathlib.Path(folder), victim, tidemark), way, who, rng.random() ** 2 * longest)
                n += 1
    for fault in faults[:30]:
        print(fault)
    print(f"{n} kills, seed {seed}, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
