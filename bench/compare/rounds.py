# SPDX-License-Identifier: Apache-2.0
"""One case by all contenders, in rounds: each is asked once a round, and both copies stand in every round."""

import pathlib
import shutil
import statistics

import goals
import verify
from contenders import Bystanders, Failed

SAMPLE_S = 0.02     # of one contender in one round, where its run is shorter
COPY_S = 0.01
MOST_OTHERS = 0.10  # of the CPU time of a round
CHECKED = 2000000   # elements that the reference evaluates


class Measured:
    """What is known of one case: rows by contender, seconds of each round, and figures of all."""

    def __init__(self, case):
        self.case, self.rows, self.seconds = case, {}, {}
        self.disturbed, self.rounds, self.others = 0, 0, []
        self.found, self.cores = {}, {}

    def fail(self, name, status, why):
        self.rows[name] = {"status": status, "why": why}

    def ok(self):
        return [name for name, row in self.rows.items() if row["status"] == "ok"]

    def median(self, name):
        return statistics.median(self.seconds[name])

    def times(self):
        return {name: self.median(name) for name in self.ok() if self.seconds.get(name)}


def skipped(case, contenders, why):
    result = Measured(case)
    for contender in contenders:
        result.fail(contender.name, "skipped", why)
    return result


class Harness:
    def __init__(self, contenders, missing, folder, rounds, say):
        self.contenders = {each.name: each for each in contenders}
        self.missing, self.folder, self.rounds, self.say = missing, pathlib.Path(folder), rounds, say

    def ask(self, result, name, what, **request):
        """The answer of a contender; None where it fails, and then it has a row that says so."""
        self.say("%s: %s" % (name, what))
        try:
            answer = self.contenders[name].ask(what, **request)
        except Failed as failure:
            result.fail(name, failure.status, str(failure))
            return None
        result.rows.setdefault(name, {"status": "ok", "why": ""})
        return answer

    def case(self, case):
        result = Measured(case)
        for name, why in self.missing.items():
            result.fail(name, "missing", why)
        data = self.folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        try:
            self.fill(case, result, data)
        finally:
            for contender in self.contenders.values():
                if contender.process.poll() is None:
                    contender.ask("drop")
            shutil.rmtree(data, ignore_errors=True)
        return result

    def fill(self, case, result, data):
        fuse = self.contenders["fuse"]
        shapes = "shapes" in case["tags"]
        lengths = [16 + 8 * ((7 * i) % 50) for i in range(50)]  # 50 lengths, 16 to 408, in no order
        given = dict(case, dims=[max(lengths) if d == 0 else d for d in case["dims"]])
        inputs = fuse.ask("data", case=given, dir=str(data))["inputs"]
        if shapes:
            self.several_lengths(case, result, inputs, lengths)
            return
        answers = {}
        for name in self.contenders:
            answer = self.ask(result, name, "load", case=case, inputs=inputs, out=str(data / ("out." + name)))
            if answer:
                answers[name] = answer
        if "fuse" not in answers:
            return
        result.found["bytes"] = answers["fuse"]["bytes"]
        self.verify(case, result, inputs, answers)
        for name in result.ok():
            result.rows[name].update(start_s=answers[name]["start_s"], how=answers[name].get("how", ""))
        result.rows.get("fuse", {}).update(counts=answers["fuse"]["counts"])
        if "fuse" in result.ok() and "compile" not in case["tags"]:
            self.play(case, result)
        self.conclude(case, result)

    def verify(self, case, result, inputs, answers):
        ours = answers["fuse"]["outputs"]
        y = next(entry["file"] for entry in ours if entry["name"] == "y")
        self.say("comparing the results")
        if not ("compile" in case["tags"] or case["builder"] == "dropout"):
            checked = self.contenders["fuse"].ask("check", file=y, elements=CHECKED)
            result.found["error"] = {"over_bound": checked["over_bound"], "checked": checked["checked"]}
            if not checked["ok"]:
                result.fail("fuse", "wrong", checked["why"])
        for name, answer in answers.items():
            if name == "fuse" or result.rows[name]["status"] != "ok":
                continue
            if name == "fuse.again":
                same = verify.same_bits(ours, answer["outputs"])
                why = "" if same else "two processes of fuse computed different bits"
            else:
                why = verify.disagreement(name, case, inputs, ours, answer["outputs"])
            if why:
                result.fail(name, "wrong", why)

    def play(self, case, result):
        runs = {}
        for name in result.ok():
            once = self.ask(result, name, "run", runs=1, warm=1)
            some = once and max(1, min(200, int(SAMPLE_S / 4 / max(once["seconds"], 1e-7))))
            several = once and self.ask(result, name, "run", runs=some)
            if several:
                runs[name] = max(1, min(20000, int(SAMPLE_S * some / max(several["seconds"], 1e-7))))
                result.seconds[name] = []
        names = list(runs)
        if "fuse" not in names:
            return
        bytes_moved = result.found["bytes"]["read"] + result.found["bytes"]["written"]
        copied = max(bytes_moved, 1 << 16)
        copies = max(1, int(COPY_S / (copied / 50e9))) if "memory" in case["tags"] else 0
        bystanders = Bystanders(list(self.contenders.values()))
        kept = {how: [] for how in ("memcpy", "stream")}
        gemms, attempts = [], 0
        while result.rounds < self.rounds:
            attempts += 1
            last_tries = attempts - result.rounds > self.rounds  # as many again are tried at most
            self.say("round %d of %d" % (result.rounds + 1, self.rounds))
            bystanders.start()
            taken = {}
            for how in kept if copies else ():
                taken[how] = self.contenders["fuse"].ask("copy", how=how, bytes=copied, runs=copies)["seconds"]
            for at in range(len(names)):
                name = names[(at + attempts) % len(names)]
                warm = 1 if runs[name] > 1 else 0
                answer = self.contenders[name].ask("run", runs=runs[name], warm=warm)
                self.contenders[name].settle()
                taken[name] = answer["seconds"] / runs[name]
                result.cores.setdefault(name, []).append(answer["cpu_seconds"] / max(answer["seconds"], 1e-9))
            if "model" in case["tags"]:
                gemms.append(self.contenders["fuse"].ask("gemms")["seconds"])
            others = bystanders.share()
            if others > MOST_OTHERS and not last_tries:
                continue
            result.disturbed += others > MOST_OTHERS
            result.others.append(others)
            result.rounds += 1
            for name in names:
                result.seconds[name].append(taken[name])
            for how in kept if copies else ():
                kept[how].append(taken[how])
        if copies:
            better = [min(pair) for pair in zip(kept["memcpy"], kept["stream"])]
            result.found.update(
                memcpy_rate=copied / statistics.median(kept["memcpy"]),
                stream_rate=copied / statistics.median(kept["stream"]), copy_rate=copied / statistics.median(better),
                share=statistics.median(c / s for c, s in zip(better, result.seconds["fuse"])) * bytes_moved / copied)
        if gemms and min(gemms) > 0:
            result.found.update(gemms_s=statistics.median(gemms),
                                gemm_share=statistics.median(gemms) / result.median("fuse"))

    def several_lengths(self, case, result, inputs, lengths):
        """One answer of each: a second would be no cold start."""
        for name in self.contenders:
            answer = self.ask(result, name, "shapes", case=case, inputs=inputs, lengths=lengths)
            if answer:
                result.rows[name].update(cold_s=answer["cold_s"], steady_s=answer["steady_s"])
        cold = {name: result.rows[name]["cold_s"] for name in result.ok()}
        if "fuse" in cold:
            result.found["cold_ratios"] = {n: t / cold["fuse"] for n, t in cold.items() if n != "fuse"}
            steady = {name: result.rows[name]["steady_s"] for name in cold}
            self.beside(result, steady)

    def conclude(self, case, result):
        if "compile" in case["tags"]:
            started = {name: result.rows[name]["start_s"] for name in result.ok()}
            result.found["fuse_s"] = started.get("fuse", float("inf"))
            if "fuse" in started and "torch.compile" in started:
                result.found["compile_ratio"] = started["torch.compile"] / started["fuse"]
            compilers = {n: t for n, t in started.items() if n not in ("torch.eager", "numpy")}
            self.beside(result, compilers)
        else:
            self.beside(result, result.times())

    @staticmethod
    def beside(result, times):
        best = goals.best_peer(times)
        if "fuse" in times and best:
            result.found.update(best=best[0], best_s=best[1], ratio=best[1] / times["fuse"])
        if "fuse" in times and "fuse.again" in times:
            result.found["spread"] = abs(times["fuse.again"] / times["fuse"] - 1)
