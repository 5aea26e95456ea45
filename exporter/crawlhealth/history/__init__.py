"""History: what was seen, on disk. SQLite in WAL mode, one file, one writing exporter."""

from crawlhealth.history.committed import Committed, StoredRun, Timings
from crawlhealth.history.database import HistoryError
from crawlhealth.history.importing import import_windows
from crawlhealth.history.store import History

__all__ = ["Committed", "History", "HistoryError", "StoredRun", "Timings", "import_windows"]
