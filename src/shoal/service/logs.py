"""Log lines, for people or as JSON; neither has more than what was logged says."""

import json
import logging
import sys
import time

JSON_LINES = "json"


class JsonFormatter(logging.Formatter):
    """Writes each line as one JSON object: time, level, logger and message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__  # its message may tell too much
        return json.dumps(line, ensure_ascii=False)


def configure(log_format: str) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if log_format == JSON_LINES else plain)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines carry addresses
    logging.getLogger("alembic").setLevel(logging.WARNING)  # the tables of a new store are no news
