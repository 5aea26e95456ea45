"""`crawlhealth.yml` and its canary files to one Config, or every problem in them at once."""

from crawlhealth.configfile.load import ConfigError, load

__all__ = ["ConfigError", "load"]
