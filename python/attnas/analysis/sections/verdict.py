"""What came out, in words first, and the key figures."""

from __future__ import annotations

from attnas.analysis.differences import Difference, from_baseline, one_measurement
from attnas.analysis.html import Html, element, join, mechanism, prose
from attnas.analysis.latex import one_rate
from attnas.analysis.page import Section, note, paragraph
from attnas.analysis.run import Candidate, Run, finite_or
from attnas.analysis.words import (counted, duration, listed, number, p_value, percent, range_text,
                                   signed)


def section(run: Run) -> Section:
    """Its words and the key figures."""
    return Section("verdict", "Verdict", join(*words(run), _tiles(run)))


def words(run: Run) -> list[Html]:
    """Paragraphs: what has to be known first, as that all is at one learning rate, or the baseline
    is behind a control or failed, then the verdict of the re-test where there is one, else what the
    search alone can say."""
    first = [one_rate(run), *run.warnings, _failed_baseline(run)]
    return [*map(paragraph, filter(None, first)), *_found(run)]


def _of_retest(run: Run) -> str:
    """Its sentences, but that which words() begin with."""
    return (run.retest.get("verdict") or "").replace("All are trained at one learning rate. ", "")


def _failed_baseline(run: Run) -> Html | None:
    """Why there is no baseline, where all its training runs failed or it was rejected."""
    given = run.config.get("baseline")
    name = given.get("mechanism") if isinstance(given, dict) else given
    own = [e for e in run.evaluations if name in (e.candidate, run.label(e.candidate))]
    if run.baseline or run.listed or not own or any(e.usable for e in own):
        return None
    first = own[0]
    why = ("was rejected by constraints" if first.status == "rejected"
           else f"failed, {first.status.replace('_', ' ')}")
    return join("The baseline ", mechanism(run.label(first.candidate), run.brief(first.candidate)),
                f" {why}: {first.reason}. Nothing is compared with it.")


def _found(run: Run) -> list[Html]:
    running = _running(run)
    if run.listed:
        return _listed(run, running)
    if not run.ranking and running:
        return [paragraph(f"{running} No mechanism has been evaluated yet.")]
    if not run.ranking:
        why, paused = [], len(run.digest.get("paused") or [])
        if paused:
            why.append(f"{counted(paused, 'candidate')} paused at a rung")
        if run.failures or not paused:
            why.append(f"{counted(len(run.failures), 'evaluation')} failed")
        if run.rejected:
            why.append(f"{counted(len(run.rejected), 'mechanism')} rejected by constraints")
        what = "was trained to the end" if paused else "could be evaluated"
        return [paragraph(f"No mechanism {what}: ", ", ".join(why), ".")]
    parts = [paragraph(running)] if running else []
    found = paragraph(_several(run) if run.several else _one(run))
    if _of_retest(run):
        parts += [paragraph(_of_retest(run)), found]
        flattered = finite_or(run.retest["flattery"], 1.0) > 0
        parts.append(note(
            f"The paragraph of the re-test rests on {run.retest['replicates']} held-out seeds "
            "each; the one after it is the search's own"
            + (", whose scores flatter what it selected." if flattered else ".")))
    else:
        parts += [found, paragraph(prose(_certainty(run)))]
    return parts


def _listed(run: Run, running: str) -> list[Html]:
    """What the training runs of listed mechanisms say; nothing was searched for."""
    parts = [paragraph(running)] if running else []
    if _of_retest(run):
        parts.append(paragraph(_of_retest(run)))
    if run.retest:
        seeds = counted(run.retest["replicates"], "seed")
        until = run.retest.get("until")
        who, how = "Every mechanism and the baseline", f"the same {seeds}"
        if run.retest.get("voided"):
            who = "The baseline and its controls alone"
        elif until:
            how = (f"at most {seeds}, added until each was decided to {100 * until:g} %, the same "
                   f"for all")
        parts.append(note(f"{who} were trained on {how}, which no search uses, and nothing was "
                          f"selected by its score."))
    return parts


def retest_lacks(run: Run) -> bool:
    """Whether a re-test is to follow the search and is not recorded."""
    retest = run.config.get("retest")
    replicates = retest.get("replicates") if isinstance(retest, dict) else retest
    return not run.listed and bool(run.ranking) and finite_or(replicates,
                                                              0.0) > 0 and not run.retest


def _running(run: Run) -> str:
    """How far a run has come that has not ended; an empty text for one that has."""
    if run.ended_by and not retest_lacks(run):
        return ""
    if run.at_work:
        trained = sum(len(array["trainings"]) for array in run.at_work["arrays"])
        state = f", {trained} at work."
    elif run.ended_by:
        state = ": the same command continues."
    else:
        state = "; or interrupted, and the same command continues."
    if run.ended_by:
        return f"The search has ended; its re-test is not finished{state}"
    if run.listed:
        done = counted(run.num_trained, "training")
        return f"Running, {done} so far{state}"
    planned = run.planned_asks
    trainings = int((run.config.get("budget") or {}).get("evaluations") or 0)
    if planned:
        done = f"{run.num_asked:,} of {planned:,} asks"
    elif trainings:
        done = f"{run.num_searched:,} of {trainings:,} trainings"
    else:
        done = counted(run.num_asked, "ask")
    return f"Running, {done} so far{state}"


def _spent(run: Run) -> str:
    kind = "training" if run.trained else "evaluation"
    return f"After {counted(run.num_searched, kind)} "


def _seeds(candidate: Candidate) -> str:
    return f"n = {candidate.n} seed{'' if candidate.n == 1 else 's'}"


def _one(run: Run) -> Html:
    best, baseline, objective = run.ranking[0], run.baseline, run.objectives[0]
    says = [_spent(run), "the best mechanism is ", mechanism(best.label, best.brief),
            f" with {objective.name} {number(best.values[0])}"]
    if baseline is None:
        return join(*says, f" ({_seeds(best)})." if run.trained else ".")
    if baseline.name == best.name:
        return join(_spent(run), "no mechanism scored better than the baseline, ",
                    mechanism(best.label, best.brief), f": {objective.name} "
                    f"{number(best.values[0])} " f"({_seeds(best)}).")
    if not objective.is_better(best.values[0], baseline.values[0]):
        return join(*says, f", no better than the baseline's {number(baseline.values[0])} "
                    f"({_seeds(best)} and {baseline.n}).")
    seeds = (f"{_seeds(best)} each" if best.n == baseline.n
             else f"n = {best.n} and {baseline.n} seeds")
    return join(*says, f" against {number(baseline.values[0])} for the baseline ({seeds}).")


def _several(run: Run) -> Html:
    names = listed([objective.name for objective in run.objectives])
    says = [_spent(run), f"the front over {names} holds {len(run.front)} of "
            f"{counted(len(run.ranking), 'mechanism')}. "]
    first = run.objectives[0]
    best = run.front[0]
    says += [f"The best in {first.name} is ", mechanism(best.label, best.brief),
             f" with {number(best.values[0])}"]
    if run.baseline is None:
        return join(*says, ".")
    says.append(f"; the baseline has {number(run.baseline.values[0])}. ")
    dominating = [c for c in run.front if _dominates(c, run.baseline)]
    if dominating:
        says.append(f"{counted(len(dominating), 'member')} of the front scored better than the "
                    "baseline in every objective or equal in some.")
    elif any(c.name == run.baseline.name for c in run.front):
        says.append("The baseline is on the front itself.")
    elif equal := sum(c.fitness == run.baseline.fitness for c in run.front):
        says.append(f"{counted(equal, 'member')} of the front scored the same as the baseline in "
                    "every objective, and none better.")
    else:
        says.append("No mechanism scored at least as well as the baseline in every objective.")
    return join(*says)


def _dominates(a: Candidate, b: Candidate) -> bool:
    pairs = list(zip(a.fitness, b.fitness))
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


def _certainty(run: Run) -> str:
    objective = run.noisy
    if objective is None:  # where nothing is trained
        objective = next(filter(run.measured_once, range(len(run.objectives))), None)
    if objective is None:
        return "The objectives are computed, not measured: there is no noise between seeds."
    if run.measured_once(objective):
        return f"{one_measurement(run, objective)}."
    name = run.objectives[objective].name
    retest = ("the re-test on held-out seeds, which is not finished, will say "
              "more." if retest_lacks(run)
              else "re-test the best on held-out seeds (`retest` in the configuration).")
    if len(run.comparable) < 2:
        return (f"{'One mechanism is' if run.comparable else 'What was stopped early allows'} no "
                f"comparison: {retest}")
    draws = (f"The best of {len(run.comparable)} mechanisms also looks better than it is, since it "
             "was chosen by the score shown")
    compared = from_baseline(run, objective)
    if not compared:
        single = max(candidate.n for candidate in run.comparable) < 2
        lacking = "With one seed each" if single else "Without replicates of the baseline too"
        return (f"{lacking} no two mechanisms can be distinguished; of options, which many "
                f"mechanisms share, analysis/components.py says more. {draws}: {retest}")
    better = [d for d in compared if d.significant and
              run.objectives[objective].is_better(d.value, 0.0)]
    over = f"Holm over {counted(len(compared), 'comparison')}"
    if better:
        least = counted(min(d.n for d in compared), "seed")
        return (f"{counted(len(better), 'mechanism')} of {len(compared)} differ from the baseline "
                f"for the better in {name} ({least} each, {over}). {draws}: {retest}")
    return f"{_largest(run, compared, objective)} {draws}: {retest}"


def _largest(run: Run, compared: list[Difference], objective: int) -> str:
    first = min(compared, key=lambda d: -d.value if run.objectives[objective].maximise else d.value)
    name = run.objectives[objective].name
    worse = sum(d.significant for d in compared)
    text = f"No mechanism is significantly better than the baseline in {name}"
    if worse:
        text += f", {worse} of {len(compared)} significantly worse"
    if not run.objectives[objective].is_better(first.value, 0.0):
        return f"{text}; none scored better at all."
    return (f"{text}: the largest difference for the better is {signed(first.value)} (95 % "
            f"interval {range_text(first.low, first.high)}, {p_value(first.p_holm)} after Holm "
            f"over {counted(len(compared), 'comparison')}, n = {first.n}).")


def _tiles(run: Run) -> Html:
    tiles = []
    if run.ranking:
        first = run.objectives[0]
        best = run.ranking[0].values[0]
        words = f"best {first.name}"
        if run.baseline and run.baseline.values[0]:
            change = (best - run.baseline.values[0]) / abs(run.baseline.values[0])
            sign = "+" if change > 0 else ""
            words += f", {sign}{percent(change, 1)} to the baseline"
        tiles.append((number(best), words))
    if run.several and not run.listed:
        tiles.append((str(len(run.front)), "mechanisms on the front"))
    kind = "trainings" if run.trained else "evaluations"
    if run.listed:
        tiles.append((f"{run.num_trained:,}", kind))
    else:
        tiles.append((f"{run.num_searched:,}", f"{kind}; {len(run.ranking):,} mechanisms scored"))
    if run.trained and run.ranking:
        seeds = sorted({candidate.n for candidate in run.ranking})
        words = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]}\u2013{seeds[-1]}"
        tiles.append((words, "seeds a mechanism" if seeds[-1] > 1 else "seed a mechanism"))
    tiles.append((str(len(run.failures)), "failed"))
    if run.rejected:
        tiles.append((f"{len(run.rejected):,}", "rejected by constraints"))
    if run.num_stopped:
        tiles.append((f"{run.num_stopped:,}", "stopped early"))
    if run.elapsed:
        tiles.append((duration(run.elapsed), "of wall-clock time"))
    return element("div", *(
        element("div", element("b", value), element("span", words)) for value, words in tiles
    ), class_="tiles")
