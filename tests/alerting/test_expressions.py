"""Every expression and every query of a text reads only what the exporter, Prometheus or another rule brings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import promql_parser as promql
import pytest
import yaml

from crawlhealth import bundle, metrics
from crawlhealth.bundle.model import Options, Record, Scoring
from crawlhealth.bundle.rules import expression

ALERTING = Path(__file__).parents[2] / "alerting"
TARGET = frozenset({"job", "instance"})
PROMETHEUS = {
    "up": TARGET,
    "scrape_samples_scraped": TARGET,
    "scrape_duration_seconds": TARGET,
    "prometheus_rule_evaluation_failures_total": TARGET | {"rule_group"},
}
"""Series that Prometheus itself brings."""


def exposed() -> dict[str, frozenset[str]]:
    """The series of the exporter and of Prometheus, with the labels each may bear."""
    known = dict(PROMETHEUS)
    for spec in metrics.ALL:
        labels = TARGET | set(spec.labels)
        names = ("_bucket", "_sum", "_count") if spec.kind == "histogram" else ("",)
        known.update({spec.name + end: labels | ({"le"} if end == "_bucket" else set()) for end in names})
    return known


class UnknownSeries(AssertionError):
    """An expression asks for a series, or a label of one, that nothing brings."""


def labels_of(node: object, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The labels that the result of an expression may bear. Raises UnknownSeries."""
    match node:
        case promql.VectorSelector():
            return _selected(node, known)
        case promql.MatrixSelector():
            return _selected(node.vector_selector, known)
        case promql.SubqueryExpr() | promql.ParenExpr() | promql.UnaryExpr():
            return labels_of(node.expr, known)
        case promql.AggregateExpr():
            return _aggregated(node, known)
        case promql.BinaryExpr():
            return _combined(node, known)
        case promql.Call():
            found = [labels_of(argument, known) for argument in node.args]
            made = {node.args[1].val} if node.func.name == "label_replace" else set()
            return frozenset(made).union(*found)
        case _:
            return frozenset()


def _selected(selector: promql.VectorSelector, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if selector.name is None or selector.name not in known:
        raise UnknownSeries(f"no series {selector.name}")
    _has(known[selector.name], [matcher.name for matcher in selector.matchers.matchers], selector.name)
    return known[selector.name]


_CHOOSING = {"topk", "bottomk"}
"""What leaves series as they are."""


def _aggregated(node: promql.AggregateExpr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    inner = labels_of(node.expr, known)
    if node.modifier is None:
        return inner if str(node.op) in _CHOOSING else frozenset()
    named = list(node.modifier.labels)
    if node.modifier.type == promql.AggModifierType.Without:
        return inner - set(named)
    _has(inner, named, str(node))
    return inner if str(node.op) in _CHOOSING else frozenset(named)


def _combined(node: promql.BinaryExpr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    left, right = labels_of(node.lhs, known), labels_of(node.rhs, known)
    modifier = node.modifier
    matching = modifier.matching if modifier is not None else None
    if modifier is not None and matching is not None and matching.type == promql.LabelModifierType.Include:
        _has(left, matching.labels, f"left of {node.op} in {node}")
        _has(right, matching.labels, f"right of {node.op} in {node}")
        kept = frozenset(matching.labels)
        kept |= left if modifier.card == promql.VectorMatchCardinality.ManyToOne else frozenset()
        kept |= right if modifier.card == promql.VectorMatchCardinality.OneToMany else frozenset()
    else:
        kept = left or right
    return {"and": left, "unless": left, "or": left | right}.get(str(node.op), kept)


def _has(labels: frozenset[str], named: list[str], where: str) -> None:
    missing = set(named) - labels
    if missing:
        raise UnknownSeries(f"{where}: no label {', '.join(sorted(missing))}")


def known_with_records(options: Options) -> dict[str, frozenset[str]]:
    """Everything that rules may read. A record that is read before it is made, or by itself, may bear any label."""
    known = {name: labels | set(options.group_labels) for name, labels in exposed().items()}
    records = [rule for group in bundle.groups(options) for rule in group.rules if isinstance(rule, Record)]
    made = {label for record in records for label in re.findall(r', "(\w+)", "', expression(record, options))}
    known.update(dict.fromkeys((record.name for record in records), frozenset(made).union(*known.values())))
    for record in records:
        known[record.name] = labels_of(promql.parse(expression(record, options)), known) | set(record.labels)
    return known


OPTIONS = [
    pytest.param(Options(), id="exporter scoring"),
    pytest.param(Options(group_labels=("tenant", "cluster"), crawler_jobs=("spiders",)), id="group labels"),
    pytest.param(Options(scoring=Scoring.FLEET), id="fleet scoring"),
    pytest.param(Options(scoring=Scoring.FLEET, group_labels=("tenant", "cluster")), id="fleet scoring, group labels"),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_rule_reads_only_series_and_labels_that_there_are(options: Options) -> None:
    known = known_with_records(options)
    for group in bundle.groups(options):
        for rule in group.rules:
            try:
                labels_of(promql.parse(expression(rule, options)), known)
            except UnknownSeries as error:
                pytest.fail(f"{rule.name}: {error}")


def queries(text: str) -> Iterator[str]:
    """The queries of a template: printed formats, their arguments replaced by a word."""
    for written in re.findall(r'printf "((?:[^"\\]|\\.)*)"[^{}|]*\| query', text):
        yield written.replace("%q", '"x"').replace('\\"', '"')
    for written in re.findall(r'\{\{[^{}]*?\b(?:with|range) "((?:[^"\\]|\\.)*)" \| query', text):
        yield written.replace('\\"', '"')


@pytest.mark.parametrize("options", OPTIONS)
def test_every_query_in_a_text_reads_only_series_and_labels_that_there_are(options: Options) -> None:
    known = known_with_records(options)
    seen = 0
    for name, text in bundle.render(options).items():
        if "/rules/" not in name:
            continue
        for rule in (rule for group in yaml.load(text, yaml.CSafeLoader)["groups"] for rule in group["rules"]):
            description = rule.get("annotations", {}).get("description", "")
            found = list(queries(description))
            assert len(found) == description.count("| query"), rule
            seen += len(found)
            for query in found:
                labels_of(promql.parse(query), known)
    assert seen > 50


def files() -> list[Path]:
    return [*sorted((ALERTING / "tests").iterdir()), *sorted((ALERTING / "runbooks").iterdir())]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in files()])
def test_cases_and_runbooks_name_only_series_and_labels_that_there_are(path: Path) -> None:
    known = exposed()
    for name, selector in re.findall(r"\b(crawlhealth_[a-z0-9_]+)\b(?:\{([^}]*)\})?", path.read_text()):
        assert name in known, name
        labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", selector))
        assert labels <= known[name], f"{name} has no label {labels - known[name]}"


@pytest.mark.parametrize(
    "expr",
    [
        pytest.param("crawlhealth_scores", id="a metric that nobody has"),
        pytest.param('crawlhealth_score{rout="x"}', id="a label that the metric does not have"),
        pytest.param("sum by (bot) (crawlhealth_score)", id="grouping by one"),
        pytest.param("crawlhealth_score and on (route) crawlhealth_score_raw", id="matching on one"),
        pytest.param("sum by (site, route) (max by (site) (crawlhealth_error_ratio))", id="one that is summed away"),
        pytest.param(
            "max_over_time(rate(crawlhealth_request_duration_seconds[1m])[5m:])", id="a histogram's bare name"
        ),
    ],
)
def test_this_test_notices(expr: str) -> None:
    with pytest.raises(UnknownSeries):
        labels_of(promql.parse(expr), exposed())
