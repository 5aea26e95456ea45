"""How saved block, challenge and good pages are classified: `python bench/blockpages.py DIR` prints a table.

DIR holds an `index.tsv` with the columns `filename`, `expected_class` and `usual_status`. Every page is tried with
status 200 and with its usual status, without any header but the content type and without any expectation. A page that
is a `hard_block` with its own status is right as `soft_block` with 200. Lines of a `.jsonl` file carry their own status
and headers: where all of them are good (`ok`), none may be refused; where they are `mixed`, they are only listed. Other
files than HTML and JSON lines are listed too and not scored. Exit 1 when a good page is refused, when a refusal is
missed, or when fewer than 90 % have the right outcome.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crawlhealth.classify import classify
from crawlhealth.config import Site
from crawlhealth.model import Classification, Response
from crawlhealth.outcome import REFUSED, Outcome

ENOUGH = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One page with one status: what was expected (None: not scored) and what came."""

    name: str
    status: int
    expected: Outcome | None
    came: Classification
    refusal_only: bool = False

    @property
    def verdict(self) -> str:
        """`right`, `wrong kind` of refusal, `missed`, `false alarm`, or `-` for what is not scored."""
        outcome = self.came.outcome
        if self.expected is None:
            return "-"
        spared = self.refusal_only and self.expected not in REFUSED and outcome not in REFUSED
        if self.expected is outcome or spared:
            return "right"
        if self.expected not in REFUSED:
            return "false alarm" if outcome in REFUSED else "wrong"
        return "wrong kind" if outcome in REFUSED else "missed"


def main(arguments: list[str]) -> int:
    """Print the table of a folder; 0 when its bounds hold, 1 when not, 2 without a folder."""
    if len(arguments) != 1 or not (Path(arguments[0]) / "index.tsv").is_file():
        print("usage: python bench/blockpages.py DIR   (DIR holds pages and an index.tsv)", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    with (folder / "index.tsv").open(encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE))
    trials = [trial for row in rows for trial in tried(folder, row)]
    width = max((len(trial.name) for trial in trials), default=0)
    for trial in trials:
        came = trial.came
        expected = trial.expected.value if trial.expected else "-"
        told = came.evidence.marker or "-"
        print(
            f"{trial.name:<{width}}  {trial.status:>3}  {expected:<10}  {came.outcome.value:<10}  {trial.verdict:<11}"
            f"  {came.reason.value:<22}  {told}"
        )
    return summary(trials)


def tried(folder: Path, row: dict[str, str]) -> Iterator[Trial]:
    """All trials of one line of the index."""
    path = folder / row["filename"]
    expected = {outcome.value: outcome for outcome in Outcome}.get(row["expected_class"])
    if path.suffix == ".jsonl":
        yield from saved_responses(path, expected)
        return
    usual = [int(part) for part in row["usual_status"].replace("/", ",").split(",") if part.strip().isdigit()]
    scored = expected if path.suffix in {".html", ".htm"} else None
    body = path.read_bytes()
    for status in dict.fromkeys([200, *usual]):
        wanted = Outcome.SOFT_BLOCK if scored is Outcome.HARD_BLOCK and status < 400 else scored
        yield Trial(name=path.name, status=status, expected=wanted, came=judged(body, status, "www.example.com", {}))


def saved_responses(path: Path, expected: Outcome | None) -> Iterator[Trial]:
    """The responses of a file of JSON lines; what was no response is left out."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        saved = json.loads(line)
        for scheme in ("http", "https"):
            answer = saved.get(scheme)
            if not isinstance(answer, dict):
                continue
            status = int(answer["status_line"].split()[0])
            headers = {name.lower(): ", ".join(values) for name, values in answer["headers"].items()}
            came = judged(answer["body"].encode("utf-8", "surrogateescape"), status, saved["keyword"], headers, scheme)
            name = f"{path.stem}:{number} {scheme}"
            yield Trial(name=name, status=status, expected=expected, came=came, refusal_only=True)


def judged(body: bytes, status: int, host: str, headers: dict[str, str], scheme: str = "https") -> Classification:
    """A page as a canary without any expectation would have it classified."""
    url = f"{scheme}://{host}/"
    headers = headers or {"content-type": "text/html"}
    response = Response(status=status, url=url, final_url=url, headers=headers, body=body)
    refusals = Site(name="bench", hosts=(host,)).refusal_status
    return classify(response, hosts=(host,), refusal_status=refusals, extracted=None)


def summary(trials: list[Trial]) -> int:
    """Print the counts with status 200, with the usual status, and of saved responses; 0 when the bounds hold."""
    bad = 0
    groups = {
        "status 200": [trial for trial in trials if not trial.refusal_only and trial.status == 200],
        "usual status": [
            trial
            for trial, following in zip(trials, [*trials[1:], None], strict=True)
            if not trial.refusal_only and (following is None or following.name != trial.name)
        ],
        "saved responses": [trial for trial in trials if trial.refusal_only],
    }
    print()
    for title, group in groups.items():
        scored = [trial for trial in group if trial.expected is not None]
        if not scored:
            continue
        good = [trial for trial in scored if trial.expected not in REFUSED]
        refusals = [trial for trial in scored if trial.expected in REFUSED]
        alarms = sum(trial.verdict == "false alarm" for trial in good)
        known = sum(trial.came.outcome in REFUSED for trial in refusals)
        right = sum(trial.verdict == "right" for trial in scored)
        print(
            f"{title}: {len(scored)} scored, {alarms} of {len(good)} good pages refused,"
            f" {known} of {len(refusals)} refusals recognised, {right} of {len(scored)} outcomes right"
        )
        bad += alarms + (len(refusals) - known) + (right < ENOUGH * len(scored))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
