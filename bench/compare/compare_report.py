# SPDX-License-Identifier: Apache-2.0
"""The table on the terminal, and the JSON of bench/schema.json."""

import datetime
import json
import os
import pathlib
import statistics

import goals
import harness


def duration(seconds):
    if seconds is None:
        return "-"
    microseconds = seconds * 1e6
    if microseconds >= 1e6:
        return "%.2f s" % seconds
    if microseconds >= 1e4:
        return "%.1f ms" % (microseconds * 1e-3)
    return "%.1f us" % microseconds if microseconds < 100 else "%.0f us" % microseconds


def percent(share):
    return "-" if share is None else "%.0f%%" % (100 * share)


def figure_of(result, name):
    """Seconds of a contender, by what the case asks."""
    row = result.rows.get(name, {"status": "absent"})
    if row["status"] != "ok":
        return None
    if "shapes" in result.case["tags"]:
        return row["cold_s"]
    if "compile" in result.case["tags"]:
        return row["start_s"]
    return result.median(name) if result.seconds.get(name) else None


class Table:
    """A line is printed as soon as its case is measured."""

    def __init__(self, peers, threads):
        self.threads = threads
        self.columns = ["fuse"] + list(peers)
        self.results, self.in_cache = [], {}

    def heading(self):
        cells = ["%10s" % name.replace("torch.", "").replace("onnxruntime", "onnxrt") for name in self.columns]
        print("%-40s %s %6s %6s %6s  %-4s %s" % ("case", " ".join(cells), "ratio", "copy", "A/A", "met", "goal"),
              flush=True)

    def add(self, result):
        self.results.append(result)
        case, found = result.case, result.found
        kernel = (case["builder"], case["dtype"])
        if "16MB" in case["tags"] and result.seconds.get("fuse"):
            self.in_cache[kernel] = sum(map(found["bytes"].get, ("read", "written"))) / result.median("fuse")
        result.goal, result.met = "", ""
        if result.rows.get("fuse", {}).get("status") == "ok":
            result.goal, result.met = goals.verdict(case, found, self.in_cache.get(kernel))
        cells = []
        for name in self.columns:
            seconds = figure_of(result, name)
            status = result.rows.get(name, {"status": "absent"})["status"]
            cells.append("%10s" % (duration(seconds) if seconds is not None else status))
        ratio = found.get("ratio")
        note = " (%d of %d rounds disturbed)" % (result.disturbed, result.rounds) if result.disturbed else ""
        print("%-40s %s %6s %6s %6s  %-4s %s%s" % (
            case["name"], " ".join(cells), "-" if ratio is None else "%.2f" % ratio, percent(found.get("share")),
            percent(found.get("spread")), result.met, result.goal, note), flush=True)
        for name, row in result.rows.items():
            if row["status"] in ("failed", "wrong"):
                print("  %s: %s: %s" % (name, row["status"], row["why"]), flush=True)
            if row["status"] == "ok" and "steady_s" in row:
                print("  %s: %s for the same lengths again" % (name, duration(row["steady_s"])), flush=True)
        for name, cores in result.cores.items():
            if statistics.median(cores) > 1.15 * self.threads:
                print("  %s kept %.1f cores busy, and has %d threads" % (
                    name, statistics.median(cores), self.threads), flush=True)

    def means(self):
        """(text, value, goal, met) of each geometric mean, over the cases that have a ratio."""
        def ratios(want):
            return [r.found["ratio"] for r in self.results if "ratio" in r.found and want(r.case)]

        def memory(case):
            return "memory" in case["tags"] and case["builder"] != "transpose"

        rows = [("memory-bound without dropout", ratios(lambda c: memory(c) and c["builder"] != "dropout"),
                 goals.MEMORY_MEAN), ("memory-bound with dropout", ratios(memory), None)]
        for size in ("1MB", "16MB", "256MB"):
            for dtype in ("f32", "bf16"):
                rows.append(("%s, %s, without dropout" % (size, dtype), ratios(
                    lambda c: memory(c) and size in c["tags"] and c["dtype"] == dtype and c["builder"] != "dropout"),
                             None))
        rows.append(("transposes", ratios(lambda c: c["builder"] == "transpose"), None))
        rows.append(("models", ratios(lambda c: "model" in c["tags"]), None))
        for text, values, goal in rows:
            mean = goals.geometric_mean(values)
            if mean is not None:
                yield text, len(values), mean, goal, "" if goal is None else "yes" if mean >= goal else "no"

    def footer(self):
        print("\nratio: the best peer's time over fuse's; copy: share of the better copy; A/A: fuse against fuse again")
        for text, count, mean, goal, met in self.means():
            aim = "" if goal is None else "  (goal %.1f: %s)" % (goal, met)
            print("geometric mean, %s, %d cases: %.2f%s" % (text, count, mean, aim))
        for result in self.results:
            lost = result.found.get("ratio", 1) < 1
            if lost:
                print("lost: %s to %s, which takes %.0f%% of the time" % (
                    result.case["name"], result.found["best"], 100 * result.found["ratio"]))


class JsonFile:
    """Written after each case, so that a kill loses only what was being measured."""

    def __init__(self, path, device, setting):
        self.path, self.device, self.setting, self.cases = path, device, setting, []
        self.load_before = harness.Results.load()

    def add(self, result):
        case = {name: result.case[name] for name in ("name", "builder", "dtype", "dims", "tags")}
        for name, row in result.rows.items():
            out = dict(case, by=name, status=row["status"], why=row["why"])
            if row["status"] == "ok":
                self.measured(out, result, name, row)
            self.cases.append(out)
        self.save()

    @staticmethod
    def measured(out, result, name, row):
        found = result.found
        if "start_s" in row and "compile" in result.case["tags"]:  # elsewhere PyTorch may have compiled it before
            out["compile_ms"] = row["start_s"] * 1e3
        if "cold_s" in row:
            out.update(cold_ms=row["cold_s"] * 1e3, steady_ms=row["steady_s"] * 1e3)
        if len(result.seconds.get(name, ())) > 1:
            out["device_us"] = harness.spread(result.seconds[name])
            out["disturbed_rounds"] = result.disturbed
        if row.get("how"):
            out["how"] = row["how"]
        if name != "fuse":
            return
        if "bytes" in found:
            out["bytes"] = found["bytes"]
        if "counts" in row:
            out["counts"] = row["counts"]
        if "error" in found:
            out["error"] = found["error"]
        if "share" in found:
            out["copy"] = {"kernel": found["stream_rate"], "memcpy": found["memcpy_rate"], "share": found["share"]}
        best = {key: found[key] for key in ("best", "ratio", "spread", "gemm_share") if key in found}
        out["beside"] = dict(best, goal=result.goal, met=result.met)

    def save(self):
        if not self.path:
            return
        failed = [{"name": row["name"] + " " + row["by"], "why": row["why"]} for row in self.cases
                  if row["status"] in ("failed", "wrong")]
        out = {"version": 2, "program": "compare.py", "date": datetime.date.today().isoformat(),
               "machine": {"cpu": harness.cpu_name(), "cores": os.cpu_count() or 1, "load_before": self.load_before,
                           "load_after": harness.Results.load()},
               "device": {"kind": "cpu", "name": self.device, "clock": "host clock", "l2_bytes": 0},
               "compare": self.setting, "rows": [], "cases": self.cases, "skipped": [], "failed": failed}
        harness.write_text(pathlib.Path(self.path), json.dumps(out, indent=1) + "\n")
