"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says more of what else the machine does than of the code: no test is timed (see `alone`).
settings.register_profile("crawlhealth", deadline=None)
settings.load_profile("crawlhealth")
