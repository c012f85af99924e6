# SPDX-License-Identifier: MIT
"""Where the bytes of a device are: `trace`, its view and its page say what a ledger of this file adds up from the events."""
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

from tidemark import Case, run

DEVICE_TRACE = os.environ.get("TIDE_DEVICE_TRACE", "build/test/tests/cli/device_trace")
MIB = 1 << 20
ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, USAGE = 1, 3, 4, 5, 9


def is_driver(allocator):
    return allocator == "module" or (allocator[:2] == "cu" and allocator[2:3].isupper())


class Ledger:
    """Events of table `event`, one by one; no SQL but that."""

    def __init__(self, path):
        db = sqlite3.connect(path)
        self.events = db.execute("""
            SELECT e.id, e.t_ns, e.op, d.name, coalesce(a.text, ''), coalesce(n.text, ''), e.requested_bytes, e.reserved_bytes
            FROM event e JOIN device d ON d.id = e.device LEFT JOIN name a ON a.id = e.allocator_id
            LEFT JOIN name n ON n.id = e.tag_id ORDER BY e.id""").fetchall()
        self.view = db.execute("""SELECT event_id, device, used_bytes, total_bytes, allocators_bytes, outside_bytes,
            unexplained_bytes, off_bytes, free_bytes FROM device_memory ORDER BY event_id""").fetchall()
        db.close()
        self.tells = {(device, allocator) for _, _, op, device, allocator, _, _, _ in self.events if op == SEGMENT_ALLOC}

    def states(self, device):
        """(event, time, allocators, outside, sample or None) after each event of a device."""
        segments, blocks = {}, {}
        for event, t, op, of, allocator, _, requested, reserved in self.events:
            if of != device:
                continue
            if op in (SEGMENT_ALLOC, SEGMENT_FREE):
                segments[allocator] = segments.get(allocator, 0) + (reserved if op == SEGMENT_ALLOC else -reserved)
            elif op in (ALLOC, FREE):
                blocks[allocator] = blocks.get(allocator, 0) + (reserved if op == ALLOC else -reserved)
            ours = theirs = 0
            for a in segments.keys() | blocks.keys():
                if is_driver(a):
                    theirs += max(segments.get(a, 0), blocks.get(a, 0))
                else:
                    ours += segments.get(a, 0) if (device, a) in self.tells else blocks.get(a, 0)
            yield event, t, ours, theirs, (requested, reserved) if op == USAGE else None

    def peak(self, device):
        """The first event after which most is in use, with its figures."""
        best, rest, total = None, None, None
        for event, t, ours, theirs, sample in self.states(device):
            if sample:
                rest, total = sample[0] - ours - theirs, sample[1]
            off = min(max(-(rest or 0), 0), ours + theirs)
            used = ours + theirs + max(rest or 0, 0) - off
            if best is None or used > best[1]:
                best = (event, used, ours, theirs, rest, total, off)
        return best


class Devices(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(pathlib.Path(self.folder.name) / "d.db")

    def tearDown(self):
        self.folder.cleanup()

    def record(self, what):
        subprocess.run([DEVICE_TRACE, str(what), self.path], check=True)
        return Ledger(self.path)

    def facts(self):
        return json.loads(run("trace", self.path, "--json").stdout)["devices"]

    def test_view_in_a_plain_shell(self):
        ledger, n_off = self.record(5), 0
        want = []
        for device in ("cuda:0", "cuda:1"):
            for event, _, ours, theirs, sample in ledger.states(device):
                if sample:
                    used, total = sample
                    rest = used - ours - theirs
                    n_off += rest < 0
                    want.append((event, device, used, total, ours, theirs, max(rest, 0), max(-rest, 0), total - used))
        self.assertEqual(ledger.view, sorted(want))
        self.assertGreater(n_off, 0)
        self.assertGreater(len(want), 50)

    def test_trace_says_the_peak(self):
        for seed in (7, 8):
            ledger = self.record(seed)
            devices = self.facts()
            self.assertEqual([d["device"] for d in devices], ["cuda:0", "cuda:1"])
            for d in devices:
                event, used, ours, theirs, rest, total, off = ledger.peak(d["device"])
                self.assertEqual((d["event"], d["allocators_bytes"], d["outside_bytes"]), (event, ours, theirs))
                if rest is None:
                    self.assertEqual((d["used_bytes"], d["unexplained_bytes"], d["total_bytes"]), (None, None, None))
                else:
                    self.assertEqual((d["used_bytes"], d["unexplained_bytes"], d["off_bytes"], d["total_bytes"]),
                                     (used, max(rest, 0), off, total))
                self.assertEqual(sum(p["bytes"] for p in d["allocators"]), ours)
                self.assertEqual(sum(p["bytes"] for p in d["functions"]), theirs)
                self.assertEqual(sum(p["bytes"] for p in d["libraries"]), theirs)

    def test_a_program_in_words(self):
        self.record("program")
        text = run("trace", self.path).stdout
        self.assertRegex(text, r"device cuda:0: used 663\.00 MiB of 79\.18 GiB at the peak, 16 ms from the begin")
        self.assertRegex(text, r"allocators   37\.00 MiB \(cuda_caching 32\.00 MiB, device 5\.00 MiB\)")
        self.assertRegex(text, r"outside      96\.13 MiB \(libcublas\.so\.13 64\.13 MiB, libcudnn\.so\.9 20\.00 MiB, "
                               r"kept by the driver's pools 12\.00 MiB, libtorch_cuda\.so 9\.00 KiB\)")
        self.assertRegex(text, r"unexplained  529\.87 MiB\n  free         78\.53 GiB")

    def test_report_and_pane(self):
        ledger = self.record("program")
        event, used, ours, theirs, rest, total, _ = ledger.peak("cuda:0")
        want = [used, total, ours, theirs, max(rest, 0), 0, total - used]
        keys = ["used_bytes", "total_bytes", "allocators_bytes", "outside_bytes", "unexplained_bytes", "off_bytes", "free_bytes"]
        report = str(pathlib.Path(self.folder.name) / "r.json")
        self.assertEqual(run("report", self.path, "-o", report).returncode, 0)
        side = json.loads(pathlib.Path(report).read_text())["sides"][0]
        self.assertEqual([side["devices"][0][k] for k in keys], want)
        parts = {(p["of"], p["name"]): p["bytes"] for p in side["device_parts"]}
        self.assertEqual(parts["outside, by library", "libcublas.so.13"], 64 * MIB + 131072 + 1024)
        pane = run("tui", self.path, "--command", f"goto #{event}", "--pane", "pools", "--json")
        self.assertEqual([json.loads(pane.stdout)["devices"][0][k] for k in keys], want)
        frame = run("tui", self.path, "--command", f"goto #{event}", "--view", 4, "--once", "--size", "160x45").stdout
        self.assertIn("cuda:0: 663.00 MiB of 79.18 GiB in use: allocators 37.00 MiB, outside 96.13 MiB "
                      "(libcublas.so.13 64.13 MiB), unexplained 529.87 MiB, free 78.53 GiB", frame)
        html = str(pathlib.Path(self.folder.name) / "r.html")
        self.assertEqual(run("report", self.path, "-o", html).returncode, 0)
        page = pathlib.Path(html).read_text()
        section = page[page.index('<section class="devices">'):].split("</section>")[0]
        for area in ("k0", "k1", "k3", "region"):
            self.assertIn(f'<path class="{area}"', section)
        self.assertIn("663.00 MiB of 79.18 GiB", section)

    def test_no_device_no_section(self):
        trace = str(pathlib.Path(self.folder.name) / "cpu.db")
        subprocess.run([os.environ.get("TIDE_SUMS_TRACE", "build/test/tests/cli/sums_trace"), "kind", trace], check=True)
        html = str(pathlib.Path(self.folder.name) / "r.html")
        self.assertEqual(run("report", trace, "-o", html).returncode, 0)
        self.assertNotIn('class="devices"', pathlib.Path(html).read_text())
        self.assertEqual(json.loads(run("trace", trace, "--json").stdout)["devices"], [])
        self.assertNotIn("\ndevice ", run("trace", trace).stdout)

    def test_never_asked_is_not_0(self):
        self.record("blind")
        d, = self.facts()
        self.assertEqual((d["samples"], d["used_bytes"], d["unexplained_bytes"], d["free_bytes"]), (0, None, None, None))
        self.assertEqual(d["allocators_bytes"], 37 * MIB)
        text = run("trace", self.path).stdout
        self.assertIn("unexplained  not known: no sample of the device", text)


if __name__ == "__main__":
    unittest.main()
