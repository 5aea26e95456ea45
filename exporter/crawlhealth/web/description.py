"""/api/v1/openapi.yaml: the API in a form that machines read."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def description_route() -> Route:
    """The route that serves the document, which is part of the package."""
    text = resources.files("crawlhealth.web").joinpath("openapi.yaml").read_bytes()

    async def describe(_: Request) -> Response:
        return Response(text, media_type="application/yaml")

    return Route("/api/v1/openapi.yaml", describe, methods=["GET"])
