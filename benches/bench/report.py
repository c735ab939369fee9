"""From runs to figures: medians, ratios of pairs, goals, and the table that is printed."""

import json
import statistics
from pathlib import Path
from typing import Any

from .runs import Result

GOALS = Path(__file__).with_name("goals.json")
# Figures of a run that are summed up, and whether a ratio of two contestants makes sense.
FIGURES = ["rate", "warm_rate", "cpu_us", "warm_cpu_us", "sender_us", "broker_us", "wall_s", "rss_steady_mb", "rss_peak_mb",
           "p50", "p90", "p99", "p999", "max", "start_s", "core_percent", "wal_bytes", "second_half_cpu_us", "second_half_rate", "first_s",
           "restart_s"]
RATIOS = ["rate", "warm_rate", "cpu_us", "warm_cpu_us", "sender_us", "broker_us", "p50", "p99"]
# A pair with more of the machine taken by others is marked.
FOREIGN = 0.15

Summary = dict[str, Any]


def figure(run: Result, name: str) -> float | None:
    """One figure of one run. What is not warm is warm from the beginning, unless it is a JVM."""
    if name in ("p50", "p90", "p99", "p999", "max"):
        return run.get("latency_ms", {}).get(name)
    if name.startswith("second_half_"):
        return run.get(name.replace("second_half", "warm"))
    if name in ("warm_rate", "warm_cpu_us") and not run["contestant"].startswith("debezium"):
        return run.get(name.removeprefix("warm_"))
    return run.get(name)


def summary(runs: list[Result]) -> Summary:
    """For each variant and contestant the medians, and for each opponent median, least and most of the pairs' ratios."""
    found: Summary = {}
    for variant in dict.fromkeys(run["variant"] for run in runs):
        here = [run for run in runs if run["variant"] == variant]
        entry: Summary = {"ratios": {}}
        for name in dict.fromkeys(run["contestant"] for run in here):
            good = [run for run in here if run["contestant"] == name and run["right"]]
            entry[name] = {"runs": len(good), "failed": sum(run["contestant"] == name for run in here) - len(good)}
            for what in FIGURES:
                values = [value for run in good if (value := figure(run, what)) is not None]
                if values:
                    entry[name][what] = statistics.median(values)
            if name != "tidegate":
                entry["ratios"][name] = ratios(here, name)
        found[variant] = entry
    compound(found)
    return found


def ratios(runs: list[Result], opponent: str) -> Summary:
    """The worker's figure divided by the opponent's, pair by pair."""
    found: Summary = {"pairs": 0, "marked": 0}
    values: dict[str, list[float]] = {}
    for run in runs:
        if run["contestant"] != opponent or not run["right"]:
            continue
        ours = next((one for one in runs if one["contestant"] == "tidegate" and one["pair"] == run["pair"] and one["right"]), None)
        if ours is None:
            continue
        found["pairs"] += 1
        found["marked"] += max(run.get("foreign", 0), ours.get("foreign", 0)) > FOREIGN
        for name in RATIOS:
            one, other = figure(ours, name), figure(run, name)
            if one and other:
                values.setdefault(name, []).append(one / other)
    for name, list_ in values.items():
        found[name] = [statistics.median(list_), min(list_), max(list_)]
    return found


def compound(found: Summary) -> None:
    """Figures of several variants together."""
    many = {int(name.split()[1]): entry["tidegate"] for name, entry in found.items() if name.startswith("W10 ")}
    # Opening a table costs once; what a row costs once all are open shows in the second half of the rows.
    steady = "second_half_cpu_us"
    if 1 in many and max(many) > 1 and all(many[count].get(steady) for count in (1, max(many))):
        found["W10"] = {"ratios": {}, "many_against_one": many[max(many)][steady] / many[1][steady], "tables": max(many)}
    idle = {int(name.split()[1]): entry["tidegate"] for name, entry in found.items() if name.startswith("W12 ")}
    if 1 in idle and max(idle) > 1 and all("rss_steady_mb" in idle[count] for count in (1, max(idle))):
        more = idle[max(idle)]["rss_steady_mb"] - idle[1]["rss_steady_mb"]
        found["W12"] = {"ratios": {}, "kb_per_table": more * 1024 / (max(idle) - 1), "tables": max(idle)}


def goals(found: Summary) -> list[Summary]:
    """Every goal with what was measured: met, not met, or not measured."""
    answers = []
    for goal in json.loads(GOALS.read_text()):
        value: Any = found.get(goal["variant"])
        for step in goal["metric"].split("."):
            value = value.get(step) if isinstance(value, dict) else None
        value = value[0] if isinstance(value, list) else value
        answer = "not measured"
        if value is not None:
            met = value >= goal["at_least"] if "at_least" in goal else value <= goal["at_most"]
            answer = "met" if met else "NOT MET"
        answers.append(goal | {"value": value, "answer": answer})
    return answers


def text(document: Summary) -> str:
    """The tables for people, in Markdown."""
    found = document["summary"]
    lines = [f"{document['machine']['cpu']}, {document['machine']['processors']} processors, "
             f"{document['machine']['memory_gb']} GB, PostgreSQL {document['machine']['postgres']}, "
             f"commit {document['machine']['commit']}, {document['machine']['time']}", ""]
    lines += drain_table(found) + latency_table(found) + idle_table(found) + restart_table(found)
    if "many_against_one" in found.get("W10", {}):
        lines += [f"With {found['W10']['tables']} tables the worker's CPU per row, once all are open, is "
                  f"{found['W10']['many_against_one']:.2f} times that with one.", ""]
    lines += ["| goal | what | workload | wanted | measured | |", "|---|---|---|---|---|---|"]
    for goal in goals(found):
        wanted = f"≥ {goal['at_least']:g}" if "at_least" in goal else f"≤ {goal['at_most']:g}" if "at_most" in goal else "–"
        measured = "–" if goal["value"] is None else f"{goal['value']:.3g}"
        note = goal.get("unmeasured", goal["answer"])
        if goal["value"] is not None or "unmeasured" in goal:
            lines.append(f"| {goal['goal']} | {goal['what']} | {goal['variant']} | {wanted} | {measured} | {note} |")
    failed = [run for run in document["runs"] if not run["right"]]
    lines += ["", f"{len(document['runs'])} runs, {len(failed)} of them failed."]
    lines += [f"- {run['variant']} {run['contestant']} {run['pair'] % 1000 + 1}: {run.get('error') or run.get('check')}" for run in failed]
    return "\n".join(lines)


def drain_table(found: Summary) -> list[str]:
    """Backlogs and snapshots: what the worker does, and the ratios to each opponent."""
    lines = ["| workload | contestant | rows/s | second half | first row s | CPU µs/row | server µs/row | broker µs/row | RSS MB steady, peak "
             "| rate: worker / it | CPU: worker / it | server CPU: worker / it | pairs (marked) |", "|" + "---|" * 13]
    for variant, entry in found.items():
        for name, figures in entry.items():
            if name == "ratios" or not isinstance(figures, dict) or not figures.get("rate") or "p50" in figures:
                continue
            ratio = entry["ratios"].get(name, {})
            warm = name.startswith("debezium")
            lines.append("| " + " | ".join([
                variant, name + (f" ({figures['failed']} failed)" if figures["failed"] else ""),
                one(figures, "rate", "{:,.0f}"), one(figures, "second_half_rate", "{:,.0f}"), one(figures, "first_s", "{:.1f}"),
                pair(figures, "cpu_us", warm, "{:.2f}"), one(figures, "sender_us", "{:.2f}"),
                one(figures, "broker_us", "{:.2f}"), f"{one(figures, 'rss_steady_mb', '{:.0f}')}, {one(figures, 'rss_peak_mb', '{:.0f}')}",
                spread(ratio, "warm_rate" if warm else "rate"), spread(ratio, "warm_cpu_us" if warm else "cpu_us"),
                spread(ratio, "sender_us"), f"{ratio['pairs']} ({ratio['marked']})" if ratio else f"{figures['runs']}"]) + " |")
    return [*lines, ""] if len(lines) > 2 else []


def latency_table(found: Summary) -> list[str]:
    """Milliseconds from a row's writing to its being read."""
    lines = ["| workload | contestant | p50 ms | p90 | p99 | p99.9 | max | CPU µs/row | p50: worker / it | p99: worker / it |",
             "|" + "---|" * 10]
    for variant, entry in found.items():
        for name, figures in entry.items():
            if name == "ratios" or not isinstance(figures, dict) or "p50" not in figures:
                continue
            ratio = entry["ratios"].get(name, {})
            lines.append("| " + " | ".join([variant, name, *(one(figures, what, "{:.1f}") for what in ("p50", "p90", "p99", "p999", "max")),
                                            one(figures, "cpu_us", "{:.1f}"), spread(ratio, "p50"), spread(ratio, "p99")]) + " |")
    return [*lines, ""] if len(lines) > 2 else []


def idle_table(found: Summary) -> list[str]:
    """Nothing to do."""
    lines = ["| workload | contestant | RSS MB | % of a core | start s |", "|---|---|---|---|---|"]
    for variant, entry in found.items():
        for name, figures in entry.items():
            if isinstance(figures, dict) and "core_percent" in figures:
                lines.append(f"| {variant} | {name} | {one(figures, 'rss_steady_mb', '{:.0f}')} | "
                             f"{one(figures, 'core_percent', '{:.2f}')} | {one(figures, 'start_s', '{:.1f}')} |")
    return [*lines, ""] if len(lines) > 2 else []


def restart_table(found: Summary) -> list[str]:
    """Seconds from kill -9 to the first new row."""
    lines = ["| workload | contestant | s from kill -9 to the first new row | runs |", "|---|---|---|---|"]
    for variant, entry in found.items():
        for name, figures in entry.items():
            if isinstance(figures, dict) and "restart_s" in figures:
                lines.append(f"| {variant} | {name} | {one(figures, 'restart_s', '{:.2f}')} | {figures['runs']} |")
    return [*lines, ""] if len(lines) > 2 else []


def one(figures: Summary, name: str, form: str) -> str:
    """A figure, or a dash."""
    return form.format(figures[name]) if name in figures else "–"


def pair(figures: Summary, name: str, warm: bool, form: str) -> str:
    """A figure; of a JVM the second half of the run, and the whole in brackets."""
    if warm and f"warm_{name}" in figures:
        return f"{form.format(figures[f'warm_{name}'])} ({one(figures, name, form)})"
    return one(figures, name, form)


def spread(ratio: Summary, name: str) -> str:
    """Median, least and most."""
    if name not in ratio:
        return "–"
    middle, least, most = ratio[name]
    return f"**{middle:.3g}** ({least:.3g}–{most:.3g})"
