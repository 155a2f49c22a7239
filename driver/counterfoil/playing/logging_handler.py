"""`RunLogHandler`: what a play's code says through Python's ``logging`` becomes the run's log."""

from __future__ import annotations

import logging

from counterfoil.playing.base_run import current_run

_NOT_THE_PLAYS = ("counterfoil", "psycopg")


class RunLogHandler(logging.Handler):
    """Writes records into the log of the run whose play said them; ignores what no play said.

        logging.getLogger().addHandler(RunLogHandler())

    It goes by context variables, so it knows the play in its own thread or task, in its steps and
    in tasks that they start; a thread of the play's own needs ``contextvars.copy_context().run``.
    Lines are sent as those of ``run.log`` are; level and logger go with them as context. It never
    raises; what is said after the run has left this worker is not the run's any more.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record for its run, if it has one."""
        run = current_run.get()
        if run is None or record.name.partition(".")[0] in _NOT_THE_PLAYS:
            return
        try:
            context = {"level": record.levelname.lower(), "logger": record.name}
            run.keep_line(self.format(record), context)
        except Exception:  # noqa: BLE001 - logging's own way of saying so
            self.handleError(record)
