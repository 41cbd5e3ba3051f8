"""The paper's tables and figures: ``python -m reproduction table1``, from a source copy.

:mod:`~reproduction.run` runs experiments into a folder and writes the report. The parts are
:mod:`~reproduction.experiments` (which rows there are and what is shown of them),
:mod:`~reproduction.runner` (worker processes), :mod:`~reproduction.store` (rows on disk) and
:mod:`~reproduction.report` (CSV, Markdown and HTML). :mod:`~reproduction.datasets` loads the data.
"""
