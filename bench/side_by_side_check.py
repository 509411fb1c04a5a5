"""Tests what side_by_side does besides running programs, on made-up numbers: `side_by_side --self-check`."""

import random
import sys
import xml.etree.ElementTree

import cpu_report
import harness
import published_step

BASELINE, ADDITIVE = "dot|softmax|none|sqrt_d|bias|0.1", "additive|softmax|none|sqrt_d|bias|0.1"
SVG = "{http://www.w3.org/2000/svg}"


def made_up(ratios, noise=0.01, rounds=5, copies=1):
    """A measurement whose true ratios are known: mechanism -> competitor -> seconds, the base first and at 1."""
    source = random.Random(7)
    mechanisms = list(ratios)
    data = {"settings": {"rounds": rounds, "steps": 5, "warm_up": 2, "threads": 1, "copies": copies, "batch": 32,
                         "context": 128, "vocabulary": 10000, "semantics": "published", "mechanisms": mechanisms,
                         "tokens": "made up"},
            "machine": {"processor": "made-up processor", "cores": 2, "kernel": "none", "c_library": "none"},
            "date": "2026-01-01", "command": "bench/side_by_side", "tunables": "x=1",
            "versions": {"ours": {"torch": "0"}}, "left_out": [], "rounds": []}

    def result(seconds, ours):
        def steps():
            return [seconds * (1.0 + noise * source.random()) for _ in range(5)]

        cpu = [steps() for _ in range(copies)]
        return {"cpu_seconds": cpu if copies > 1 else cpu[0], "wall_seconds": cpu if copies > 1 else cpu[0],
                "loss": [[9.2] * 7] * copies if copies > 1 else [9.2] * 7, "peak_rss_bytes": 5e8, "peak_bytes": None,
                "page_faults": 500 * copies, "flop_per_step": 4e10 if ours else None}

    for mechanism in mechanisms:
        for _ in range(rounds):
            runs = [{"competitor": competitor, "again": False, "result": result(ratio, competitor != "published")}
                    for competitor, ratio in ratios[mechanism].items()]
            runs.append({"competitor": runs[0]["competitor"], "again": True, "result": result(1.0, False)})
            data["rounds"].append({"mechanism": mechanism, "attempt": 1, "kept": True, "why": "", "load_before": [0.1] * 3,
                                   "load_after": [0.2] * 3, "gemm_gflops": 80.0, "multiply_add_gflops": 100.0, "runs": runs})
    return data


def check_statistics():
    truth = {"published": 1.0, "published-tuned": 0.7, "reference-torch": 1.0, "exact": 0.5}
    for copies in (1, 2):
        data = made_up({BASELINE: truth}, copies=copies)
        summary, = cpu_report.summarise(data)
        assert summary["base"] == "published" and summary["rounds"] == 5
        assert 0.0 < summary["same_spread"] < 0.01
        rows = {row["competitor"]: row for row in summary["rows"]}
        assert list(rows) == list(truth)
        for competitor, row in rows.items():
            assert abs(row["ratio"] / truth[competitor] - 1.0) < 0.01, row
            low, high = row["interval"]
            assert low <= row["ratio"] <= high and high - low < 0.02, row
            assert row["unclear"] == (competitor == "reference-torch"), row
            assert row["faults_per_step"] == 100, row
        # 40 GFLOP in half a second at a peak of 100 GFLOP/s
        assert abs(rows["exact"]["peak_fraction"] - 0.8) < 0.01, rows["exact"]
    assert harness.bootstrap_interval([0.5]) is None
    assert harness.bootstrap_interval([0.5] * 5) == (0.5, 0.5)
    low, high = harness.bootstrap_interval([1.0, 2.0, 3.0, 4.0, 100.0])
    assert 1.0 <= low < 3.0 < high <= 100.0
    assert abs(harness.departure(0.8) - 0.25) < 1e-12 and abs(harness.departure(1.25) - 0.25) < 1e-12


def check_estimates():
    """The median of rounds, the fastest step, and no claim inside the A/A spread even where the interval is narrow."""
    assert cpu_report.best_step([3.0, 1.0, 2.0]) == 1.0
    assert cpu_report.best_step([[3.0, 1.0], [5.0, 2.0]]) == 1.5
    data = made_up({BASELINE: {"published": 1.0, "exact": 0.9}}, noise=0.0)
    summary, = cpu_report.summarise(data)
    assert not summary["rows"][1]["unclear"]
    data["rounds"][2]["runs"][-1]["result"]["cpu_seconds"] = [1.2] * 5
    summary, = cpu_report.summarise(data)
    assert abs(summary["same_spread"] - 0.2) < 1e-12 and summary["rows"][1]["unclear"]
    for entry, seconds in zip(data["rounds"], (0.1, 0.5, 0.6, 0.7, 40.0)):
        entry["runs"][1]["result"]["cpu_seconds"] = [seconds] * 5
    summary, = cpu_report.summarise(data)
    assert summary["rows"][1]["ratio"] == 0.6 and summary["rows"][1]["unclear"]  # the interval holds 1


def check_discarded():
    data = made_up({BASELINE: {"reference-torch": 1.0, "exact": 0.5}})
    data["rounds"][0].update(kept=False, why="exact at wall/CPU 1.30", runs=data["rounds"][0]["runs"][:1])
    summary, = cpu_report.summarise(data)
    assert summary["rounds"] == 4 and summary["base"] == "reference-torch"
    text = cpu_report.markdown(data, [summary])
    assert "1 discarded" in text and "1 of `dot" in text and "kept 4" in text
    result = {"cpu_seconds": [1.0, 1.0], "wall_seconds": [1.0, 1.2]}
    assert abs(cpu_report.wall_per_cpu(result) - 1.1) < 1e-12


def check_losses():
    data = made_up({BASELINE: {"published": 1.0, "exact": 0.5}})
    assert not cpu_report.different_losses(cpu_report.summarise(data))
    for wrong in (8.0, float("nan")):
        for entry in data["rounds"]:
            entry["runs"][1]["result"]["loss"] = [wrong] * 7
        summaries = cpu_report.summarise(data)
        complaint, = cpu_report.different_losses(summaries)
        assert complaint.startswith("exact on " + BASELINE)
        assert complaint in cpu_report.markdown(data, summaries).replace("\\|", "|")


def check_table():
    data = made_up({BASELINE: {"published": 1.0, "exact": 0.5}, ADDITIVE: {"published": 1.0, "reference-torch": 1.0}})
    data["left_out"] = [{"competitor": "fast", "mechanism": ADDITIVE, "why": "no bf16"}]
    lines = cpu_report.markdown(data, cpu_report.summarise(data)).splitlines()
    rows = [line.replace("\\|", "") for line in lines if line.startswith("| ") and line.count(" | ") > 5]
    assert len(rows) == 5 and len({row.count("|") for row in rows}) == 1, rows
    assert any("exact | 0.50" in row for row in rows) and any("1.00" in row and "(no claim)" in row for row in rows), rows
    assert any(line.startswith("| left out | fast on additive") and "no bf16" in line for line in lines)


def check_picture():
    truth = {"published": 1.0, "exact": 0.5, "fast": 2.5}
    data = made_up({BASELINE: truth, ADDITIVE: truth})
    root = xml.etree.ElementTree.fromstring(cpu_report.picture(data, cpu_report.summarise(data)))
    width = float(root.get("width"))
    for competitor, ratio in truth.items():
        bars = [bar for bar in root.iter(SVG + "rect") if bar.get("class") == competitor]
        base = next(bar for bar in root.iter(SVG + "rect") if bar.get("class") == "published")
        assert len(bars) == 2
        for bar in bars:
            assert abs(float(bar.get("width")) / float(base.get("width")) - ratio) < 0.02 * ratio
            assert float(bar.get("x")) + float(bar.get("width")) < width
    labels = [text.text for text in root.iter(SVG + "text")]
    assert BASELINE in labels and ADDITIVE in labels and labels.count("exact") == 2
    assert all(0.0 <= float(text.get("x")) <= width for text in root.iter(SVG + "text"))


def check_mechanisms():
    gene = published_step.published_gene("silu_dot|topk_quarter|normed_highway|sequence_mean|no_bias|0.25")
    assert gene == {"similarity": "multiplicative", "normalization": "sparsemax", "gating": "highway",
                    "temperature_mode": "adaptive", "use_bias": False, "attention_dropout": 0.25}
    for wrong, error, part in (("dot|softmax", ValueError, "six parts"),
                               ("dot|softmax|none|sqrt_d|yes|0.1", ValueError, "'yes'"),
                               ("dot|softmax|none|sqrt_d|bias|1", ValueError, "[0, 1)"),
                               ("dot|sparsemax|none|sqrt_d|bias|0.1", KeyError, "topk_quarter")):
        try:
            published_step.published_gene(wrong)
        except error as caught:
            assert part in str(caught), caught
        else:
            raise AssertionError(f"'{wrong}' was accepted")


def run():
    """0 if every check holds; the first that does not raises."""
    checks = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
    for check in checks:
        check()
    print(f"side_by_side: {len(checks)} checks passed", file=sys.stderr)
    return 0
