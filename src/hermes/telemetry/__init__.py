"""Layer 3: structured logs and redaction at the sink."""

from hermes.telemetry.logs import Logs, open_logs
from hermes.telemetry.redactor import Redactor

__all__ = ["Logs", "Redactor", "open_logs"]
