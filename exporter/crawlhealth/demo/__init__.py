"""The practice site and the demo: a shop that turns hostile on request, and the story that is played against it."""

from crawlhealth.demo import site
from crawlhealth.demo.play import run

__all__ = ["run", "site"]
