"""What a preview makes of answers: variables put in, values in words and colours, tables merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crawlhealth import bundle
from crawlhealth.bundle.dashboards import files
from crawlhealth.bundle.preview import PreviewError
from crawlhealth.bundle.preview.asking import Series
from crawlhealth.bundle.preview.charts import Line, laid
from crawlhealth.bundle.preview.choosing import named, put_in, span
from crawlhealth.bundle.preview.clock import ticks
from crawlhealth.bundle.preview.drawing import named_lines
from crawlhealth.bundle.preview.frames import rows
from crawlhealth.bundle.preview.looks import PALETTE, legend, look, written
from crawlhealth.cli import main
from crawlhealth.demo.processes import free_port

NOW = 1_796_040_000.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('x{site=~"$site"}', 'x{site=~"a\\\\.b"}', id="one value, escaped"),
        pytest.param('x{bot=~"$bot"}', 'x{bot=~"(a|b)"}', id="several"),
        pytest.param('x{route=~"${route}"}', 'x{route=~".+"}', id="all of them"),
        pytest.param("rate(x[$__rate_interval])", "rate(x[60s])", id="the rate's interval"),
        pytest.param("x[$__range]", "x[3600s]", id="the whole range"),
    ],
)
def test_what_is_chosen_is_put_in(text: str, said: str) -> None:
    assert put_in(text, {"site": ("a.b",), "bot": ("a", "b"), "route": ()}, 10, 3600) == said


def test_a_variable_that_is_not_there_is_told() -> None:
    with pytest.raises(PreviewError, match="no variable sit"):
        put_in('x{site=~"$sit"}', {"site": ()}, 10, 3600)
    assert named("$site: now", {"site": ("books",)}) == "books: now"


def test_a_time_range_is_read() -> None:
    assert span({"time": {"from": "now-24h"}}) == 86400
    with pytest.raises(PreviewError, match="yesterday"):
        span({"time": {"from": "yesterday"}})


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "said"),
    [
        pytest.param(0.5, "percentunit", 0, "50%", id="a share"),
        pytest.param(0.012, "percentunit", None, "1.2%", id="a small share"),
        pytest.param(1000 * (NOW - 7200), "dateTimeFromNow", None, "2.0 hours ago", id="a moment"),
        pytest.param(1000 * (NOW + 86400 * 20), "dateTimeFromNow", None, "in 20 days", id="a moment to come"),
        pytest.param(0.25, "s", None, "250 ms", id="a short time"),
        pytest.param(3 * 2**20, "bytes", None, "3.0 MiB", id="bytes"),
        pytest.param(2.5, "suffix: ×", 1, "2.5 ×", id="a unit of our own"),
        pytest.param(12_345, "short", None, "12.3 K", id="thousands"),
        pytest.param(61.7, "none", 0, "62", id="no unit"),
    ],
)
def test_a_number_is_written_with_its_unit(value: float, unit: str, decimals: int | None, said: str) -> None:
    assert written(value, unit, decimals, NOW) == said


PANEL: dict[str, Any] = {
    "fieldConfig": {
        "defaults": {
            "unit": "none",
            "mappings": [
                {"type": "value", "options": {"1": {"text": "up", "color": "#00ff00"}}},
                {"type": "special", "options": {"match": "null+nan", "result": {"text": "no score"}}},
            ],
            "thresholds": {"steps": [{"value": None, "color": "#ff0000"}, {"value": 80, "color": "#0000ff"}]},
        },
        "overrides": [
            {
                "matcher": {"id": "byRegexp", "options": "/^(?:now.*)$/"},
                "properties": [
                    {"id": "color", "value": {"mode": "fixed", "fixedColor": "#123456"}},
                    {"id": "custom.lineWidth", "value": 3},
                ],
            },
            {
                "matcher": {"id": "byName", "options": "Value #A"},
                "properties": [{"id": "displayName", "value": "Score"}],
            },
        ],
    }
}


def test_a_value_has_the_words_and_the_colour_that_the_panel_says() -> None:
    shown = look(PANEL, "other")
    assert [shown.text(value, NOW) for value in (1.0, 90.0, None, "word")] == ["up", "90", "no score", "word"]
    assert [shown.shade(value) for value in (1.0, 90.0, 20.0, "word")] == ["#00ff00", "#0000ff", "#ff0000", None]
    assert look(PANEL, "now one").colour == "#123456"
    assert look(PANEL, "now one").custom == {"lineWidth": 3}
    assert look(PANEL, "Value #A").title == "Score"


def test_a_legend_is_filled_with_labels() -> None:
    assert legend("{{site}} {{route}}", {"site": "books"}) == "books"


def series(value: float, **labels: str) -> Series:
    return Series(labels=labels, points=((NOW, value),))


def test_answers_are_merged_by_what_they_share_sorted_and_chosen() -> None:
    panel = {
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "sortBy", "options": {"sort": [{"field": "Value #B", "desc": True}]}},
            {"id": "filterFieldsByName", "options": {"include": {"names": ["site", "signal", "Value #A"]}}},
        ]
    }
    scores = [series(90, site="a"), series(40, site="b")]
    reasons = [
        series(3, site="a", signal="latency"),
        series(30, site="b", signal="challenge"),
        series(1, site="c", signal="x"),
    ]
    assert rows(panel, [scores, reasons]) == [
        {"site": "b", "signal": "challenge", "Value #A": 40},
        {"site": "a", "signal": "latency", "Value #A": 90},
        {"site": "c", "signal": "x", "Value #A": None},
    ]
    assert rows(panel, [[], []]) == []


def routes(*names: str) -> list[Line]:
    panel = {"targets": [{"legendFormat": "{{route}}"}], "fieldConfig": {"defaults": {}, "overrides": []}}
    return named_lines(panel, [[series(1.0, route=name) for name in names]], {})


def test_names_of_a_panel_have_colours_of_their_own_and_the_same_on_another_page() -> None:
    many = [f"route {number}" for number in range(len(PALETTE))]
    assert {line.colour for line in routes(*many)} == set(PALETTE)
    for name in many:
        [alone], [again] = routes(name), routes(name)
        assert alone.colour == again.colour


def test_a_legend_takes_two_lines_before_it_leaves_names_out() -> None:
    lines = routes("direct", "dc-us", "residential-de", "residential-fr")
    assert [[line.name for _, line in row] for row in laid(lines, 600)] == [[line.name for line in lines]]
    assert [[line.name for _, line in row] for row in laid(lines, 320)] == [
        ["direct", "dc-us", "residential-de"], ["residential-fr"],
    ]  # fmt: skip
    assert sum(len(row) for row in laid(lines, 170)) == 3


def test_an_axis_has_round_moments() -> None:
    places, texts = ticks(NOW - 3 * 3600, NOW, most=4)
    assert len(places) <= 4
    assert all(place % 3600 == 0 for place in places)
    assert all(text.endswith(":00") for text in texts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--choose", "books"), "write VARIABLE=VALUE", id="a choice without a variable"),
        pytest.param(("--prometheus", "localhost"), "write it whole, as http://", id="half an address"),
        pytest.param(("--width", "20"), "is not in the range", id="a stamp"),
    ],
)
def test_a_wrong_option_is_told(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["bundle", "--preview", str(tmp_path / "pictures"), *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_prometheus_that_is_not_there_is_told(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = CliRunner().invoke(main, ["bundle", "--preview", str(tmp_path), "--prometheus", url])
    assert result.exit_code == 1
    assert f"{url} does not answer as Prometheus does" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_calm_panel_reaches_as_far_as_it_says_and_its_figure_has_no_tile() -> None:
    board = json.loads(files(bundle.Options())["grafana/dashboards/crawlhealth-site.json"])
    shown = {panel["title"]: panel for panel in board["panels"]}
    since = shown["Band since"]["options"]
    assert (since["colorMode"], since["text"]) == ("none", {"valueSize": 18})
    for title in ("Hard blocks", "Extraction failed"):
        custom = shown[title]["fieldConfig"]["defaults"]["custom"]
        assert custom["axisSoftMax"] == 0.05
    assert "axisSoftMax" not in shown["Latency"]["fieldConfig"]["defaults"]["custom"]


def test_legends_call_signals_as_their_panels_do_and_colour_them_alike() -> None:
    board = json.loads(files(bundle.Options(group_labels=("tenant",)))["grafana/dashboards/crawlhealth-site.json"])
    shown = {panel["title"]: panel for panel in board["panels"]}
    names: dict[str, set[str | None]] = {}
    for title in ("What costs points", "Early warning"):
        for target in shown[title]["targets"]:
            name = legend(target["legendFormat"], {"tenant": "acme"})
            names.setdefault(name.removesuffix(" acme"), set()).add(look(shown[title], name).colour)
    assert names.keys() == {"hard blocks", "challenges", "soft blocks", "latency", "too little served", "all refused"}
    assert all(len(colours) == 1 and None not in colours for colours in names.values())
    assert {"Hard blocks", "Challenges", "Soft blocks", "Latency"} <= shown.keys()
