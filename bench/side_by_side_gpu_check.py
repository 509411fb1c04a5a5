"""Tests what side_by_side_gpu does besides running programs, on made-up numbers: `side_by_side_gpu --self-check`."""

import importlib.machinery
import importlib.util
import os
import random
import sys
import types
import xml.etree.ElementTree

import gpu_report

SVG = "{http://www.w3.org/2000/svg}"
MIXED = "dot|softmax|none|sqrt_d|bias|0.1,additive|softmax|none|sqrt_d|bias|0.1"
MODELS = {"vmap8": 8, "ours-array8": 8}


def made_up(groups, noise=0.01, rounds=5):
    """A measurement whose true times are known: (mechanism, precision) -> competitor -> milliseconds per model-step."""
    source = random.Random(7)

    def sample(competitor, milliseconds):
        steps = 200 * MODELS.get(competitor, 1)
        return {"seconds": 1e-3 * milliseconds * steps * (1.0 + noise * source.random()), "model_steps": steps, "loss": 9.1}

    return {
        "date": "2026-01-01", "command": "bench/side_by_side_gpu", "device_state": [], "left_out": [], "not_reached": [],
        "machine": {"processor": "made-up processor", "cores": 2, "kernel": "none", "c_library": "none"},
        "peaks": {"device": "made-up device", "gemm_fp32": 5e13, "gemm_tf32": None, "gemm_bf16": 7e14,
                  "copy_bytes_per_second": 4e12},
        "versions": {"PyTorch": {"torch": "0"}}, "gate": {"words": "equal", "worst": {}}, "seconds": 500.0,
        "settings": {"batch": 32, "context": 128, "vocabulary": 10000, "warm_up": 20, "steps": 200, "rounds": rounds,
                     "minutes": 9.0, "mixed": MIXED.split(","), "tokens": "made up"},
        "groups": [{"mechanism": mechanism, "precision": precision, "flop_per_step": 4e10,
                    "prepared": {competitor: {"prepare_seconds": 3.0, "peak_bytes": 1e9} for competitor in times},
                    "rounds": [{"samples": {competitor: sample(competitor, ms) for competitor, ms in times.items()},
                                "again": sample("loop", times["loop"])} for _ in range(rounds)]}
                   for (mechanism, precision), times in groups.items()]}


TRUTH = {"loop": 3.0, "eager": 3.0, "graph": 1.0, "vmap8": 0.5, "ours-graph": 0.6, "ours-array8": 0.15}


def check_statistics():
    summary, = gpu_report.summarise(made_up({(gpu_report.BASELINE, "fp32"): TRUTH}))
    rows = {row["competitor"]: row for row in summary["rows"]}
    assert set(rows) == set(TRUTH) and 0.0 < summary["same_spread"] < 0.011
    for competitor, row in rows.items():
        assert abs(1e3 * row["seconds"] / TRUTH[competitor] - 1.0) < 0.011, row
        assert abs(row["ratio"] / (TRUTH[competitor] / 3.0) - 1.0) < 0.011, row
        low, high = row["interval"]
        assert low <= row["ratio"] <= high and high - low < 0.02, row
        assert row["unclear"] == (competitor == "eager"), row
    # 40 GFLOP in 0.6 ms at a peak of 50 TFLOP/s; 4096 tokens in that time
    assert abs(rows["ours-graph"]["peak_fraction"] - 4e10 / 0.6e-3 / 5e13) < 0.03, rows["ours-graph"]
    assert abs(rows["ours-graph"]["tokens_per_second"] / (4096 / 0.6e-3) - 1.0) < 0.011


def check_left_out():
    """A competitor that failed in a later round is not in the table, and every reason is."""
    data = made_up({(gpu_report.BASELINE, "fp32"): TRUTH})
    del data["groups"][0]["rounds"][3]["samples"]["graph"]
    data["left_out"] = [{"competitor": competitor, "mechanism": MIXED, "precision": "fp32", "why": "out of | memory"}
                        for competitor in ("graph", "compiled")]
    data["not_reached"] = [{"mechanism": MIXED, "precision": "bf16"}]
    summaries = gpu_report.summarise(data)
    assert all(row["competitor"] != "graph" for row in summaries[0]["rows"])
    text = gpu_report.markdown(data, summaries)
    assert ("| left out | out of \\| memory: CUDA graph (2 mixed mechanisms, fp32), "
            "torch.compile, max-autotune (2 mixed mechanisms, fp32) |" in text), text
    assert "| not reached in time | 2 mixed mechanisms, bf16 |" in text


def check_losses():
    data = made_up({(gpu_report.BASELINE, "fp32"): TRUTH})
    assert not gpu_report.different_losses(gpu_report.summarise(data))
    for wrong in (8.0, float("nan")):
        data["groups"][0]["rounds"][0]["samples"]["graph"]["loss"] = wrong
        complaint, = gpu_report.different_losses(gpu_report.summarise(data))
        assert complaint.startswith("CUDA graph on " + gpu_report.BASELINE), complaint


def check_tables():
    """One table per precision, every row as wide as its head; predictions only where there are any, and by that name."""
    data = made_up({(gpu_report.BASELINE, "fp32"): TRUTH, (MIXED, "fp32"): TRUTH, (gpu_report.BASELINE, "tf32"): TRUTH})
    lines = gpu_report.markdown(data, gpu_report.summarise(data)).splitlines()
    titles = [line for line in lines if line.startswith("## ")]
    assert titles == ["## float32", "## TensorFloat-32", "## How it was taken"], titles
    rows = [line.replace("\\|", "") for line in lines if line.startswith("| ") and line.count(" | ") > 5]
    assert len(rows) == 2 + 3 * len(TRUTH) and len({row.count("|") for row in rows}) == 1, rows
    assert "predicted" in rows[0]
    assert any("ordinary loop (base)" in row and "2.5-3.5" in row and "A/A" in row for row in rows)
    own = [row.split(" | ") for row in rows if "ours, array of 8" in row]
    assert [row[3] for row in own] == ["1.14-1.21", "-", "0.49-0.57"], own
    assert own[2][8] == "-", own  # no peak was measured in that precision


def check_picture():
    data = made_up({(gpu_report.BASELINE, "tf32"): TRUTH, (MIXED, "bf16"): TRUTH})
    root = xml.etree.ElementTree.fromstring(gpu_report.picture(data, gpu_report.summarise(data)))
    width = float(root.get("width"))
    places = {dot.get("class"): float(dot.get("cx")) for dot in root.iter(SVG + "circle")}
    assert set(places) == set(TRUTH) and all(0.0 < x < width for x in places.values())
    # A logarithmic axis: from 3 to 1 it is as far as from 1 to 1/3.
    unit = (places["loop"] - places["graph"]) / (places["graph"] - places["ours-array8"])
    assert abs(unit - 0.579) < 0.02, unit  # log(3) / log(1 / 0.15)
    labels = [text.text for text in root.iter(SVG + "text")]
    assert any("2 mixed mechanisms, bfloat16" == text for text in labels), labels
    assert any(text.startswith("made-up device") for text in labels)


def side_by_side_gpu():
    """The program itself, which has no suffix."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "side_by_side_gpu")
    loader = importlib.machinery.SourceFileLoader("side_by_side_gpu", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("side_by_side_gpu", loader))
    loader.exec_module(module)
    return module


def check_plan():
    """What is asked first fits into a short visit: the vanilla mechanism in TensorFloat-32 and bfloat16."""
    program = side_by_side_gpu()
    groups = program.plan(types.SimpleNamespace(smoke=False, competitors=program.DEFAULT))
    first = groups[:2]
    assert [(group["mechanism"] == gpu_report.BASELINE, group["precision"]) for group in first] == \
        [(True, "tf32"), (True, "bf16")], first
    assert all({"eager", "graph", "ours-array8", "ours-array32"} < set(group["competitors"]) for group in first)
    assert sum(program.expected_seconds(group, program.FULL["rounds"]) for group in first) <= 240 - 30
    assert all(gpu_report.BASE in group["competitors"] and len(group["competitors"]) > 1 for group in groups)
    cells = {("," in group["mechanism"], group["precision"], competitor) for group in groups
             for competitor in group["competitors"] if "," in group["mechanism"] or group["mechanism"] == gpu_report.BASELINE}
    for precision in gpu_report.PRECISIONS:
        for competitor in ("eager", "graph", "compiled", "ours-array8", "ours-array32"):
            assert {(False, precision, competitor), (True, precision, competitor)} <= cells, (precision, competitor)
        assert {(False, precision, "compiled-no-graphs"), (False, precision, "vmap8")} <= cells, precision


def check_visits():
    """A second visit measures what is missing, beside the base again, and the table has both."""
    program = side_by_side_gpu()
    groups = program.plan(types.SimpleNamespace(smoke=False, competitors=program.DEFAULT))
    known = {competitor: 1.0 for competitor in ("loop", "eager", "graph", "ours-array8")}
    data = made_up({(gpu_report.BASELINE, "tf32"): known})
    del data["groups"][0]["rounds"][1]["samples"]["graph"]  # it failed then
    rest = program.without_known(groups, data["groups"])
    assert rest[0]["competitors"] == ["loop", "graph", "ours-graph", "ours-array32"], rest[0]
    assert [group for group in rest if group["precision"] != "tf32"] == [group for group in groups if group["precision"] != "tf32"]
    data["groups"][0].update(device="one card", date="2026-01-01")
    again = made_up({(gpu_report.BASELINE, "tf32"): {"loop": 2.0, "graph": 1.0}})["groups"][0]
    data["groups"].append({**again, "device": "one card", "date": "2026-02-02"})
    data["groups"].append({**again, "device": "another card", "date": "2026-03-03"})
    one, other = gpu_report.summarise(data)
    ratios = {row["competitor"]: round(row["ratio"], 1) for row in one["rows"]}
    assert ratios == {"loop": 1.0, "eager": 1.0, "graph": 0.5, "ours-array8": 1.0}, ratios
    assert one["rounds"] == 10 and [row["competitor"] for row in other["rows"]] == ["loop", "graph"]
    text = gpu_report.markdown(data, [one, other])
    assert "graph on another card, 2026-03-03" in text, text
    assert "`dot\\|softmax\\|none\\|sqrt_d\\|bias\\|0.1`, another card" in text, text


def check_samples():
    """About as many model-steps for everybody, in whole graphs of ten steps."""
    steps = side_by_side_gpu().steps_of_a_sample
    assert [steps(200, models) for models in (1, 8, 16, 32)] == [200, 30, 20, 10] and steps(4, 2) == 4


def check_means_of_recorded_steps():
    """The gate knows the mean of steps that were taken at once, and refuses a wrong one."""
    program = side_by_side_gpu()
    bench = types.SimpleNamespace(worst={})
    expected = [5.0 - 0.1 * step for step in range(23)]

    def compare(last, counts=(1, 1, 1, 10, 10)):
        answer = {"loss": [[5.0], [4.9], [4.8], [4.25], [last]], "loss_steps": list(counts)}
        program.Bench.compare(bench, answer, 0, "a mechanism", expected, "fp32")

    compare(3.25)
    assert bench.worst["fp32"] < 1e-9
    for wrong in ((3.26,), (float("nan"),), (3.25, (1, 1, 1, 10, 9))):
        try:
            compare(*wrong)
        except program.Failure as error:
            assert "the reference's are" in str(error), error
        else:
            raise AssertionError(f"the gate took {wrong}")


def run():
    """0 if every check holds; the first that does not raises."""
    checks = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
    for check in checks:
        check()
    print(f"side_by_side_gpu: {len(checks)} checks passed", file=sys.stderr)
    return 0
