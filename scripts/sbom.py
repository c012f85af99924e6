#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A list of what the built programs and libraries consist of and need, as SPDX 2.3 in JSON: tidemark itself, and each Debian
package with a shared library that one of them is linked with or opens. Usage: sbom.py VERSION FILE... > tidemark.spdx.json"""
import datetime
import json
import os
import re
import subprocess
import sys

OPENED = ["libdnnl.so.2"]  # by name, when a kernel wants it (core/ops/dnnl_guard.h)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(file):
    """The libraries that the file is linked with, as it calls them."""
    return set(re.findall(r"\(NEEDED\).*\[(.+?)\]", output("readelf", "-d", file)))


def paths():
    """Where the loader finds each library."""
    return dict(re.findall(r"^\t(\S+) .*=> (.+)$", output("/sbin/ldconfig", "-p"), re.M)[::-1])


def packages_of(paths):
    """{path: (name, version, home)} of the Debian packages that own the files; a file of none is left out."""
    known = {}
    for path in paths: # a package may have the file under /lib, which is a link to /usr/lib now
        real = os.path.realpath(path)
        known.update({name: path for name in (path, real, real.removeprefix("/usr"))})
    lines = subprocess.run(["dpkg-query", "-S", *known], capture_output=True, text=True, check=False).stdout.splitlines()
    owners = {known[file]: package.split(",")[0] for package, file in (line.split(": ", 1) for line in lines) if file in known}
    if not owners:
        return {}
    facts = output("dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\t${Version}\t${Homepage}\n", *set(owners.values()))
    by_name = {one.split("\t")[0].split(":")[0]: one.split("\t")[1:] for one in facts.splitlines()}
    return {path: (*by_name[package.split(":")[0]][:2], by_name[package.split(":")[0]][2] or "NOASSERTION")
            for path, package in owners.items()}


def spdx_package(name, version, home, license_text="NOASSERTION"):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": home, "filesAnalyzed": False, "licenseConcluded": license_text,
            "licenseDeclared": license_text, "copyrightText": "NOASSERTION"}


def main():
    version, files = sys.argv[1], sys.argv[2:]
    libraries = {one for one in set().union(OPENED, *map(needed, files)) if not one.startswith("libtidemark")}
    where = {library: path for library, path in paths().items() if library in libraries}
    owners = packages_of(where.values())
    unknown = sorted(library for library in libraries if where.get(library) not in owners)
    if unknown:
        sys.exit(f"sbom.py: no package has {', '.join(unknown)}")
    packages = {name: spdx_package(name, *more) for name, *more in sorted(set(owners.values()))}
    own = spdx_package("tidemark", version, "NOASSERTION", "MIT")
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())),
                                           datetime.timezone.utc)
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], "DEPENDS_ON", p["SPDXID"]) for p in packages.values()]
    print(json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                      "name": f"tidemark-{version}", "documentNamespace": f"https://spdx.invalid/tidemark-{version}",
                      "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: scripts/sbom.py"]},
                      "packages": [own, *packages.values()],
                      "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b}
                                        for a, how, b in relations]}, indent=1))


if __name__ == "__main__":
    main()
