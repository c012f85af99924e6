# SPDX-License-Identifier: MIT
"""The clock of a recording on machines whose kernel takes its time from a hypervisor. Simulated: in a mount namespace of its
own the kernel names another clock source than it has; the processor's counter is the real one."""
import os
import shutil
import subprocess
import time
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, environment

SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
MODEL = SAMPLES / "densenet_block.json"


def simulates():
    """Why not; None: it can."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "a mount namespace needs root and unshare"
    if not os.path.exists(SOURCE):
        return "this kernel names no clock source"
    p = subprocess.run(["unshare", "-m", "mount", "--bind", "/dev/null", SOURCE], capture_output=True, text=True)
    if p.returncode != 0:
        return "cannot mount here: " + p.stderr.strip()
    with open("/proc/cpuinfo") as f:
        return None if "constant_tsc" in f.read() else "this processor has no counter that runs at one rate"


REASON = simulates()


@unittest.skipIf(REASON is not None, REASON or "")
class Clock(Case):
    def record(self, clock, env=None):
        """What the command sees of TIDEMARK_TICKS, and whether it may run on the same processors as before."""
        (self.dir / "clock").write_text(clock + "\n")
        command = (f'echo "ticks=$TIDEMARK_TICKS"; grep Cpus_allowed: /proc/self/status; "{PROGRAM}" run "{MODEL}" >/dev/null; '
                   f'sleep 0.2; "{PROGRAM}" run "{MODEL}" >/dev/null')
        script = f'mount --bind "{self.dir}/clock" {SOURCE} && exec "{PROGRAM}" record -o "{self.dir}/t.db" --quiet -- sh -c "$0"'
        begin = time.monotonic_ns()
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, command], capture_output=True, text=True, env=environment(env))
        end = time.monotonic_ns()
        self.assertEqual(p.returncode, 0, p.stderr)
        self.check_times(begin, end)
        ticks, cpus = p.stdout.splitlines()
        with open("/proc/self/status") as f:
            self.assertIn(cpus, f.read())
        return ticks.removeprefix("ticks=")

    def check_times(self, begin, end):
        """Times of events lie where another clock saw them: after their process began, the second run's 0.2 s later."""
        rows = ask(self.dir / "t.db", "SELECT p.begin_ns, min(e.t_ns), max(e.t_ns) FROM process p JOIN event e "
                   "ON e.block_id >> 48 = p.id - 1 GROUP BY p.id ORDER BY p.id")
        self.assertEqual(len(rows), 2)
        for begun, first, last in rows:
            self.assertLessEqual(begin, begun)
            self.assertLess(begun, first)
            self.assertLess(first, last)
            self.assertLessEqual(last, end)
        self.assertGreaterEqual(rows[1][1] - rows[0][2], 200_000_000)

    def test_hypervisors(self):
        """Cores that count alike (this machine's do): the counter is used."""
        for clock in ("kvm-clock", "xen"):
            self.assertEqual(self.record(clock), "1", clock)

    def test_others(self):
        """A kernel that has dropped the counter has found it wrong; one that trusts it needs no check."""
        for clock in ("hpet", ""):
            self.assertEqual(self.record(clock), "", clock)

    def test_refused(self):
        self.assertEqual(self.record("kvm-clock", {"TIDE_NO_TICKS": "1"}), "1")


if __name__ == "__main__":
    tidemark.main()
