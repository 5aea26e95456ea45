"""The described API is the API."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import resources
from typing import Any

import msgspec
import pytest
import yaml

from crawlhealth import incidentanswer, labels
from crawlhealth.canary import arrival
from crawlhealth.outcome import Outcome
from crawlhealth.searchbots import posted
from crawlhealth.searchbots.model import DispatchDecision
from crawlhealth.traffic import windows
from crawlhealth.traffic.body import CODINGS
from crawlhealth.traffic.observations import Item
from crawlhealth.traffic.report import Report
from crawlhealth.verdict import IncidentLabel
from crawlhealth.web import accepting, incidents
from crawlhealth.web.receiving import TYPES

DOCUMENT: dict[str, Any] = yaml.safe_load(resources.files("crawlhealth.web").joinpath("openapi.yaml").read_bytes())
SCHEMAS = DOCUMENT["components"]["schemas"]


@pytest.mark.parametrize(
    ("schema", "struct"),
    [
        pytest.param("Observation", Item, id="observations"),
        pytest.param("Window", windows._Window, id="windows"),
        pytest.param("Dispatch", posted.Item, id="dispatches"),
        pytest.param("Report", Report, id="the answer"),
        pytest.param("Arrival", arrival._Sent, id="canaries"),
        pytest.param("Label", incidents._Wanted, id="labels"),
        pytest.param("Acceptance", accepting._Wanted, id="a new normal"),
    ],
)
def test_the_fields_are_those_that_are_read(schema: str, struct: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(struct)
    assert set(SCHEMAS[schema]["properties"]) == {field.name for field in fields}
    if schema != "Report":
        assert set(SCHEMAS[schema].get("required", ())) == {field.name for field in fields if field.required}


def test_words_are_those_that_are_known() -> None:
    assert SCHEMAS["Observation"]["properties"]["outcome"]["enum"] == [outcome.value for outcome in Outcome]
    assert SCHEMAS["Dispatch"]["properties"]["decision"]["enum"] == [decision.value for decision in DispatchDecision]
    assert set(DOCUMENT["components"]["parameters"]["coding"]["schema"]["enum"]) == CODINGS.keys() - {""}
    assert set(DOCUMENT["paths"]["/api/v1/observations"]["post"]["requestBody"]["content"]) <= TYPES


def test_what_may_be_said_of_an_incident_is_what_is_read() -> None:
    properties = SCHEMAS["Label"]["properties"]
    assert properties["label"]["enum"] == [label.value for label in IncidentLabel]
    assert properties["reason"]["enum"] == [*(signal.value for signal in labels.REASONS), None]
    assert set(SCHEMAS["Incident"]["properties"]) == {field.name for field in fields(incidentanswer.IncidentAnswer)}


def test_every_reference_leads_somewhere() -> None:
    for reference in re.findall(r"'\$ref': '#/([^']*)'", str(DOCUMENT)):
        node = DOCUMENT
        for step in reference.split("/"):
            node = node[step]
        assert node


def test_every_served_path_is_described() -> None:
    sources = [file for file in resources.files("crawlhealth.web").iterdir() if file.name.endswith(".py")]
    text = "".join(file.read_text(encoding="utf-8") for file in sources)
    assert set(re.findall(r'\bRoute\(\s*"(/api/v1/[^"]*)"', text)) == set(DOCUMENT["paths"])
