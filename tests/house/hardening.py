# SPDX-License-Identifier: MIT
#
# The built program as readelf sees it: position independent, its table of foreign functions closed after the start, a
# guard on the stack, checked copies. usage: hardening.py PROGRAM BUILD_TYPE SANITIZERS
import re
import subprocess
import sys

program, build_type, sanitizers = (sys.argv[1:] + ["", ""])[:3]


def readelf(*options):
    done = subprocess.run(["readelf", "-W", *options, program], capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=True)
    return done.stdout


def main():
    if sanitizers or build_type not in ("Release", "RelWithDebInfo", "MinSizeRel"):
        print(f"skipped: hardening is for Release builds (this one: {build_type or 'no type'}, "
              f"sanitizers: {sanitizers or 'none'})")
        return 77
    dynamic, symbols = readelf("-d"), readelf("--dyn-syms")
    wanted = {
        "the program is position independent (type DYN, flag PIE)":
            "DYN" in re.search(r"Type:\s+(.*)", readelf("-h"))[1] and re.search(r"FLAGS_1.*\bPIE\b", dynamic),
        "relocations are read-only after the start (GNU_RELRO)": "GNU_RELRO" in readelf("-l"),
        "all symbols are bound at the start (BIND_NOW)": re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic),
        "the stack is guarded (__stack_chk_fail)": "__stack_chk_fail" in symbols,
        "copies are checked (__memcpy_chk, __snprintf_chk, __vsnprintf_chk, …)":
            len(set(re.findall(r"\b(__\w+_chk)\b", symbols))) >= 3,
        "the stack is not executable": not re.search(r"GNU_STACK.*RWE", readelf("-l")),
    }
    missing = [what for what, found in wanted.items() if not found]
    for what in missing:
        print(f"FAILED: not so in {program}: {what}")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} checks")
    return 1 if missing else 0


sys.exit(main())
