#!/usr/bin/env python3
"""Runs what the README tells people to run: every normdiff and jq command of its blocks, in a folder
that holds gpu.dump and npu.dump, and the commands of its pipelines.  None may be trouble (exit
status 2 or more), every file it writes must be there, and every option, report and file that the
text names must exist.

    readme.py TOOL ROOT
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
bad = []


def blocks(text):
    """(language, lines) of each fenced block."""
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S):
        yield language, body.splitlines()


def commands(text):
    for language, lines in blocks(text):
        for line in lines:
            if language == "yaml":
                found = re.search(r"\b(?:run|script): (normdiff .*|cat .*)", line)
                if found:
                    yield found.group(1)
            elif language == "sh" and re.match(r"(normdiff|jq) ", line):
                yield line


def run(command, folder, summary):
    tools = os.path.join(folder, ".tools")
    environment = {"PATH": tools + os.pathsep + os.environ["PATH"], "LC_ALL": "C.UTF-8",
                   "GITHUB_STEP_SUMMARY": summary}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        bad.append("%s\n    exit %d: %s" % (command, done.returncode, done.stderr.decode()))
    if command.startswith("jq ") and (not done.stdout.strip() or b"null" in done.stdout):
        bad.append("%s\n    prints nothing: %s" % (command, done.stdout.decode()))
    for name in re.findall(r"-o \w+=(\S+)", command):
        if not os.path.getsize(os.path.join(folder, name)) > 0:
            bad.append("%s\n    wrote no %s" % (command, name))


def names_exist(text):
    """Links lead to files and anchors, options to --help, reports to what --format takes."""
    for path in re.findall(r"\]\(((?!https?:)[^)#]+)", text):
        if not os.path.exists(os.path.join(ROOT, path)):
            bad.append("no such file: " + path)
    for path in re.findall(r"(?:sh|python3) ((?:tests|examples)/\S+?\.(?:sh|py))", text):
        if not os.path.exists(os.path.join(ROOT, path)):
            bad.append("no such script: " + path)
    usage = subprocess.run([TOOL, "--help"], stdout=subprocess.PIPE).stdout.decode()
    for line in text.splitlines():
        if "normdiff " in line and "cmake" not in line:
            for option in re.findall(r"(?<=[ `])--[a-z][a-z-]+", line):
                if option not in usage and option not in ("--keep_dtype", "--tool"):
                    bad.append("no such option: %s in %s" % (option, line))
    table = text[text.index("| report | for |"):]
    table = table[:table.index("\n\n")]
    reports = set(re.findall(r"^\| (`[^|]*) \|", table, re.M))
    reports = {name for cell in reports for name in re.findall(r"`([a-z-]+)`", cell)}
    known = re.search(r"report on standard output \(([^)]*)\)", re.sub(r"\s+", " ", usage)).group(1)
    if reports != set(known.split(", ")):
        bad.append("the table of reports has %s, the tool %s" % (sorted(reports), known))


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    listed = list(commands(text))
    if len(listed) < 15:
        bad.append("only %d commands were found" % len(listed))
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, ".tools"))
        os.symlink(TOOL, os.path.join(folder, ".tools", "normdiff"))
        for name in ("gpu.dump", "npu.dump"):
            shutil.copyfile(os.path.join(ROOT, "examples", "pairs", "eps", name), os.path.join(folder, name))
        for command in listed:
            if command.startswith("jq ") and shutil.which("jq") is None:
                continue
            run(command, folder, os.path.join(folder, "summary"))
        with open(os.path.join(folder, "quality.json"), encoding="utf-8") as file:
            if not json.load(file):
                bad.append("the pipeline's Code Quality names nothing")
    names_exist(text)
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
