"""History: what was seen, on disk. SQLite in WAL mode, one file, one writing exporter."""

from crawlhealth.history.batch import Batch
from crawlhealth.history.committed import Committed, StoredRun, Stratum, Timings
from crawlhealth.history.database import FILE_NAME, HistoryError
from crawlhealth.history.decisions import Decisions
from crawlhealth.history.importing import import_windows
from crawlhealth.history.journal import Learnt
from crawlhealth.history.judged import Judged, marks_of
from crawlhealth.history.owner import shard_of
from crawlhealth.history.past import Past
from crawlhealth.history.pushes import Pushed, PushKey
from crawlhealth.history.reading import past_accepted, past_incidents, past_slots, reading, stored_runs
from crawlhealth.history.rollup import DAY, KEEP_DAYS
from crawlhealth.history.store import History
from crawlhealth.history.stretches import span, stretches, stretches_of

__all__ = [
    "DAY",
    "FILE_NAME",
    "KEEP_DAYS",
    "Batch",
    "Committed",
    "Decisions",
    "History",
    "HistoryError",
    "Judged",
    "Learnt",
    "Past",
    "PushKey",
    "Pushed",
    "StoredRun",
    "Stratum",
    "Timings",
    "import_windows",
    "marks_of",
    "past_accepted",
    "past_incidents",
    "past_slots",
    "reading",
    "shard_of",
    "span",
    "stored_runs",
    "stretches",
    "stretches_of",
]
