# SPDX-License-Identifier: MIT
"""Devices: what is missing is named exactly, each text by really producing what it says; and what the CUDA plug-in is as a
file: which libraries it needs, what it exports, which targets its kernels are for. The driver here is the simulated one
(tests/cuda/driver) or the toolkit's stub; no GPU is wanted."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, environment, run

PLUGIN = os.environ.get("TIDE_CUDA_PLUGIN", "")  # the module of this build
SIMULATION = os.environ.get("TIDE_SIM_DRIVER", "")  # the folder of the simulated libcuda.so.1
STUBS = os.environ.get("TIDE_CUDA_STUBS", "")  # the toolkit's own folder with libcuda.so
IMAGE = os.environ.get("TIDE_CUDA_IMAGE", "")  # the kernels as nvcc made them
OTHER_ABI = os.environ.get("TIDE_OTHER_ABI", "")  # a module for another version of tidemark
SANITIZED = bool(os.environ.get("TIDE_SANITIZERS"))
LENET = SAMPLES / "lenet5.json"

has_plugin = unittest.skipUnless(PLUGIN, "built without the CUDA toolkit: there is no CUDA plug-in")


def has_driver():
    """Whether this machine has a driver of its own, which would be found where a test wants none."""
    p = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False)
    return "libcuda.so.1" in p.stdout


class Devices(Case):
    def cuda(self, **env):
        """The row of cuda:0. A reason is in the text, too, and a run is refused with it; never is one made on the CPU."""
        rows = self.json("devices", env=env)["devices"]
        self.assertEqual(rows[0]["device"], "cpu")
        self.assertTrue(rows[0]["available"])
        row = rows[1]
        self.assertEqual((row["device"], row["available"]), ("cuda:0", row["reason"] is None))
        p = run("run", "--device", "cuda:0", LENET, "-n", "1", env=env)
        self.assertEqual((p.returncode, p.stdout), (3, ""), p.stderr)
        if row["available"]:
            self.assertIn("error: operators do not run on cuda:0 yet", p.stderr)
            return row
        self.assertIn(row["reason"], self.ok("devices", env=env).stdout)
        self.assertTrue(row["reason"].startswith("device cuda:0 is not available: "), row["reason"])
        self.assertTrue(row["reason"].startswith(p.stderr.split("\n")[0].removeprefix("error: ")), p.stderr)
        self.assertEqual([row[key] for key in ("name", "driver", "total_bytes", "map_step_bytes", "pool")], [None] * 5)
        return row

    def missing(self, *says, **env):
        reason = self.cuda(**env)["reason"]
        self.assertIsNotNone(reason)
        for text in says:
            self.assertIn(text, reason)

    # ---- the file ----

    @unittest.skipIf(PLUGIN, "this build has the plug-in")
    def test_built_without_cuda(self):
        self.missing("built without CUDA: there is no libtidemark-cuda.so")

    def test_a_given_file_that_is_none(self):
        text = self.dir / "text.so"
        text.write_text("no module\n")
        self.missing(f"{self.dir}/none.so is not there, where $TIDEMARK_CUDA_PLUGIN says",
                     TIDEMARK_CUDA_PLUGIN=str(self.dir / "none.so"))
        self.missing(f"{text} cannot be opened: ", "file too short", TIDEMARK_CUDA_PLUGIN=str(text))
        self.missing("a path with a folder in it is wanted", TIDEMARK_CUDA_PLUGIN="libm.so.6")
        self.missing(" is no plug-in of tidemark: it has no tidemark_device_plugin", TIDEMARK_CUDA_PLUGIN=os.environ["TIDE_FAST_CLOCK"])
        self.missing("is of another version of tidemark: its ABI is 42, the program's 1", TIDEMARK_CUDA_PLUGIN=OTHER_ABI)

    @has_plugin
    def test_where_it_is_looked_for(self):
        """Beside the program, in ../lib/tidemark; where the variable says and then nowhere else; never in the current folder,
        nor on the library path."""
        (self.dir / "bin").mkdir()
        program = self.dir / "bin" / "tidemark"
        shutil.copy(PROGRAM, program)
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        shutil.copy(OTHER_ABI, elsewhere / "libtidemark-cuda.so")

        def reason(**env):
            p = subprocess.run([program, "devices", "--json"], capture_output=True, text=True, cwd=elsewhere, check=True,
                               env=environment({"LD_LIBRARY_PATH": f"{SIMULATION}:{elsewhere}", **env}))
            return json.loads(p.stdout)["devices"][1]["reason"]
        self.assertIn("libtidemark-cuda.so is not there: it was looked for beside the program", reason())
        lib = self.dir / "lib" / "tidemark" / "libtidemark-cuda.so"
        lib.parent.mkdir(parents=True)
        shutil.copy(PLUGIN, lib)
        self.assertIsNone(reason())
        shutil.copy(OTHER_ABI, self.dir / "bin" / "libtidemark-cuda.so")
        self.assertIn("another version", reason())
        self.assertIsNone(reason(TIDEMARK_CUDA_PLUGIN=str(lib)))
        self.assertIn("is not there, where", reason(TIDEMARK_CUDA_PLUGIN=str(self.dir / "none.so")))

    # ---- the driver ----

    @has_plugin
    def test_no_driver(self):
        if has_driver():
            self.skipTest("this machine has an NVIDIA driver")
        self.missing("there is no NVIDIA driver (libcuda.so.1): libcuda.so.1: cannot open shared object file")

    @has_plugin
    def test_the_stub_in_the_drivers_place(self):
        stub = pathlib.Path(STUBS) / "libcuda.so"
        self.assertTrue(stub.exists(), stub)
        (self.dir / "libcuda.so.1").symlink_to(stub)
        self.missing("libcuda.so.1 is the stub of the CUDA toolkit and no driver", f"{self.dir}/libcuda.so.1",
                     LD_LIBRARY_PATH=str(self.dir))

    @has_plugin
    def test_a_library_that_is_no_driver(self):
        (self.dir / "libcuda.so.1").symlink_to(os.environ["TIDE_FAST_CLOCK"])
        self.missing("the NVIDIA driver is too old for CUDA 13: it has no cuGetProcAddress_v2", LD_LIBRARY_PATH=str(self.dir))

    @has_plugin
    def test_a_driver_that_cannot_serve(self):
        for says, simulated in (
                ("the NVIDIA driver is too old for CUDA 13: it serves CUDA 12.4", {"TIDESIM_VERSION": "12040"}),
                ("the NVIDIA driver finds no device", {"TIDESIM_DEVICES": "0"}),
                ("the NVIDIA driver finds no device: CUDA_VISIBLE_DEVICES is '-1'",
                 {"TIDESIM_FAIL": "1:100:cuInit", "CUDA_VISIBLE_DEVICES": "-1"}),
                ("does not start: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802): ", {"TIDESIM_FAIL": "1:802:cuInit"}),
                ("does not start: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): ", {"TIDESIM_FAIL": "1:803:cuInit"}),
                ("does not start: cuInit: CUDA_ERROR_UNKNOWN (999): ", {"TIDESIM_FAIL": "1:999:cuInit"}),
                ("cuda:0: cuDeviceTotalMem: CUDA_ERROR_LAUNCH_FAILED (719): ", {"TIDESIM_FAIL": "1:719:cuDeviceTotalMem"})):
            with self.subTest(says=says):
                self.missing(says, LD_LIBRARY_PATH=SIMULATION, **simulated)
        hints = self.ok("devices", env={"LD_LIBRARY_PATH": SIMULATION, "TIDESIM_FAIL": "1:802:cuInit"}).stdout
        self.assertIn("hint: on machines with NVSwitch the fabric manager must run", hints)

    @has_plugin
    def test_devices_that_are_there(self):
        env = {"LD_LIBRARY_PATH": SIMULATION, "TIDESIM_DEVICES": "3", "TIDESIM_BYTES": str(3 << 30)}
        rows = self.json("devices", env=env)["devices"]
        self.assertEqual([row["device"] for row in rows], ["cpu", "cuda:0", "cuda:1", "cuda:2"])
        for row in rows[1:]:
            self.assertEqual((row["available"], row["driver"], row["total_bytes"], row["map_step_bytes"], row["pool"]),
                             (True, "CUDA 13.0", 3 << 30, 2 << 20, True))
            self.assertIn(f"{row['device']:8} available  {row['name']}, 3.00 GiB, driver: CUDA 13.0, maps memory by 2.00 MiB, has a pool",
                          self.ok("devices", env=env).stdout)
        self.assertTrue(self.cuda(**env)["available"])
        self.refused(3, "run", "--device", "cuda:7", LENET, env=env, says=["there are 3 cuda devices; number 7 was asked for"])
        # What there is was asked without a context, which would take some hundred megabytes of a device.
        log = self.dir / "calls"
        self.ok("devices", env={**env, "TIDESIM_LOG": str(log)})
        calls = log.read_text()
        self.assertIn("cuDeviceTotalMem", calls)
        self.assertNotIn("cuDevicePrimaryCtxRetain", calls)

    # ---- the module ----

    @has_plugin
    @unittest.skipIf(SANITIZED, "sanitizers bring libraries and names of their own")
    def test_it_needs_no_library_and_exports_one_name(self):
        dynamic = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
        needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
        self.assertTrue(needed and all(n.startswith(("libc.so.", "ld-linux", "libm.so.")) for n in needed), needed)
        self.assertNotIn("RUNPATH", dynamic)
        names = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
        self.assertEqual([line.split()[2] for line in names.splitlines()], ["tidemark_device_plugin"])
        program = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
        for library in ("libcuda", "libcudart", "libcupti"):
            self.assertNotIn(library, program)

    @has_plugin
    def test_its_kernels_are_for_every_target(self):
        """The layout of a fat binary is not documented; this is what nvcc 13.0 writes: a head, then entries, each with its sort
        (1 PTX, 2 machine code) and its target."""
        data = pathlib.Path(IMAGE).read_bytes()
        magic, version, head, size = struct.unpack_from("<IHHQ", data)
        if (magic, version, head) != (0xBA55ED50, 1, 16):
            self.skipTest("another version of nvcc, whose files look different")
        targets, at = [], head
        while at < head + size:
            sort, _, own_head, n_bytes = struct.unpack_from("<HHIQ", data, at)
            targets.append((sort, struct.unpack_from("<I", data, at + 28)[0]))
            at += own_head + n_bytes
        self.assertEqual(sorted(targets), [(1, 90), *((2, arch) for arch in (75, 80, 86, 89, 90, 100, 120))])
        self.assertIn(data, pathlib.Path(PLUGIN).read_bytes())


if __name__ == "__main__":
    tidemark.main()
