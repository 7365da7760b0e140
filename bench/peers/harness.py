# SPDX-License-Identifier: Apache-2.0
"""What the peer scripts share: the cases of bench/cases.json, data, and rows of bench/schema.json."""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = 25
MOST_CHECKED = 1 << 24  # elements
UNCHECKED = {"over_bound": None, "checked": "nothing: too large for a check in double precision"}


def all_cases(path):
    listed = json.loads(pathlib.Path(path).read_text())
    for family in listed["families"]:
        for dtype in family["dtypes"]:
            for dims in family["dims"]:
                name = "{}.{}.{}".format(family["builder"], dtype, "x".join(map(str, dims)))
                selected = [] if "smoke" in family["tags"] else [
                    tag for tag, names in listed["selections"].items() if name in names]
                yield {"name": name, "builder": family["builder"], "dtype": dtype, "dims": dims,
                       "tags": family["tags"] + selected}


def cpu_cases(path):
    """The cases of the cpu device beside its peers, which bench/compare measures."""
    for family in json.loads(pathlib.Path(path).read_text())["cpu_families"]:
        for builder in family["builders"]:
            for dtype in family["dtypes"]:
                for dims in family["dims"]:
                    name = "{}.{}.{}".format(builder, dtype, "x".join(map(str, dims)))
                    yield {"name": name, "builder": builder, "dtype": dtype, "dims": dims, "tags": family["tags"]}


def filter_parts(text):
    """An empty part would fit every case, so that a variable of a script that is not set would run everything."""
    parts = text.split(",")
    if not all(parts):
        raise argparse.ArgumentTypeError("'%s' has an empty part" % text)
    return parts


def arguments(program, peers):
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                        help="cpu tries the script itself, on the smoke cases")
    parser.add_argument("--filter", type=filter_parts, default=[], metavar="TEXT",
                        help="parts of names and tags, by comma; all have to fit")
    parser.add_argument("--json", help="write the results there")
    parser.add_argument("--cases", default=str(HERE.parent / "cases.json"))
    parser.add_argument("--peers", default=",".join(peers), help="which of them, by comma [%(default)s]")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    for peer in options.peers:
        if peer not in peers:
            parser.error("there is no peer '%s'; there are %s" % (peer, ", ".join(peers)))
    return options


def wanted_cases(options):
    """As fuse_bench --filter: parts by comma, all of which fit: a case's whole name, a tag, or a part of names."""
    cases = list(all_cases(options.cases))
    names = {case["name"] for case in cases}
    smoke = options.device == "cpu" or "smoke" in options.filter

    def fits(case, part):
        if part in names:
            return case["name"] == part
        return part in case["tags"] or part in case["name"]

    return [case for case in cases
            if ("smoke" in case["tags"]) == smoke and all(fits(case, part) for part in options.filter)]


def spread(seconds):
    """Of the samples, in microseconds."""
    q1, median, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
    return {"median": median * 1e6, "q1": q1 * 1e6, "q3": q3 * 1e6, "min": min(seconds) * 1e6,
            "max": max(seconds) * 1e6, "n": len(seconds)}


def sets_past_l2(bytes_of_a_set, l2_bytes):
    """As fuse_bench: more than twice the L2 cache is touched before a set comes back."""
    return max(1, min(2 * l2_bytes // max(bytes_of_a_set, 1) + 1, 256))


def error_row(error, usual, ulp):
    """Bound: 4 times what op by op evaluation errs by, or 4 ulps of the largest value."""
    return {"over_bound": float(error) / (4 * max(float(usual), float(ulp), 5e-324)), "checked": "all"}


def verdict(error):
    """(status, why) of a row."""
    bad = error["over_bound"] is not None and not error["over_bound"] <= 1
    return ("wrong", "error above its bound") if bad else ("ok", "")


def host_samples(run, wait, sets):
    """For a device without events: whole runs by the host's clock."""
    samples = []
    for i in range(7):
        start = time.perf_counter()
        wait(run(i % sets))
        samples.append(time.perf_counter() - start)
    return samples


class Results:
    def __init__(self, program, options):
        self.program, self.options = program, options
        self.cases = []
        self.load_before = self.load()
        self.device = {"kind": "none", "name": "none", "clock": "none", "l2_bytes": 0}
        self.wanted = wanted_cases(options)
        if self.wanted:
            self.save()

    @staticmethod
    def load():
        try:
            return "{:.2f} {:.2f} {:.2f}".format(*os.getloadavg())
        except OSError:
            return ""

    def add(self, case, by, status="ok", why="", **measured):
        row = dict(case, by=by, status=status, why=why, **measured)
        self.cases.append(row)
        time_us = "{:.2f} us".format(row["device_us"]["median"]) if "device_us" in row else why
        print("{:<44} {:<20} {:<8} {}".format(case["name"], by, status, time_us), flush=True)
        self.save()

    def add_all(self, by, status, why):
        """A peer that cannot run: every case says so."""
        for case in self.wanted:
            self.add(case, by, status, why)

    def finish(self):
        """The exit status: 1 where something failed."""
        if not self.cases:
            print("no case's name contains '{}', and none for this device has that tag".format(",".join(self.options.filter)),
                  file=sys.stderr)
            return 2
        return 1 if self.failed() else 0

    def failed(self):
        return [row for row in self.cases if row["status"] in ("failed", "wrong")]

    def save(self):
        """Writes what is known so far: a kill at a time limit loses what was being measured and nothing else."""
        if not self.options.json:
            return
        out = {"version": 2, "program": self.program, "date": datetime.date.today().isoformat(),
               "machine": {"cpu": cpu_name(), "cores": os.cpu_count() or 1, "load_before": self.load_before,
                           "load_after": self.load()},
               "device": self.device, "rows": [], "cases": self.cases, "skipped": [],
               "failed": [{"name": row["name"] + " " + row["by"], "why": row["why"]} for row in self.failed()]}
        write_text(pathlib.Path(self.options.json), json.dumps(out, indent=1) + "\n")


def write_text(path, text):
    """As fuse_bench: a reader and a kill at any time find the old text or the new one, whole."""
    if path.exists() and not path.is_file():
        path.write_text(text)  # such as /dev/stdout
        return
    beside = path.resolve().with_name(path.name + ".part")
    beside.write_text(text)
    os.replace(beside, path.resolve())


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(": ", 1)[1]
    except OSError:
        pass
    return "unknown"


def inputs_of(case):
    """(name, dtype, shape, is a parameter) of each input, as bench/cases/case_graphs.cpp declares them."""
    builder, dtype, dims = case["builder"], case["dtype"], case["dims"]
    if builder == "elementwise":
        return [("x", dtype, dims[:1], False), ("b", dtype, dims[:1], False)]
    if builder == "matmul_bias_gelu":
        m, n, k = dims
        return [("a", dtype, [m, k], False), ("b", dtype, [k, n], True), ("bias", dtype, [n], True)]
    if builder == "transformer":
        return transformer_inputs(dtype, dims)
    given = [("x", dtype, dims[:2], False)]
    columns = dims[1]
    if builder == "layer_norm":
        given += [("gamma", "f32", [columns], True), ("beta", "f32", [columns], True)]
    elif builder == "rms_norm":
        given += [("gamma", "f32", [columns], True)]
    elif builder == "bias_gelu":
        given += [("bias", dtype, [columns], True)]
    elif builder == "residual_layer_norm":
        for i in range(dims[2]):
            given += [("r%d" % i, dtype, dims[:2], False), ("%d.gamma" % i, "f32", [columns], True),
                      ("%d.beta" % i, "f32", [columns], True)]
    return given


def transformer_inputs(dtype, dims):
    batch, length, hidden, _, layers = dims
    given = [("x", dtype, [batch, length, hidden], False)]
    for i in range(layers):
        for norm in ("norm1", "norm2"):
            given += [("%d.%s.gamma" % (i, norm), "f32", [hidden], True),
                      ("%d.%s.beta" % (i, norm), "f32", [hidden], True)]
        for name, rows, columns in (("qkv", hidden, 3 * hidden), ("out", hidden, hidden),
                                    ("up", hidden, 4 * hidden), ("down", 4 * hidden, hidden)):
            given += [("%d.%s.weight" % (i, name), dtype, [rows, columns], True),
                      ("%d.%s.bias" % (i, name), dtype, [columns], True)]
    return given


def data_range(name, parameter):
    """The uniform range of an input's values, as bench/cases/case_data.cpp has it."""
    if name.endswith("gamma"):
        return 0.5, 1.5
    return (-0.05, 0.05) if parameter else (-2.0, 2.0)
