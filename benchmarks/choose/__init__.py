"""Choose the defaults on many data sets: see ``python -m benchmarks.choose --help``."""
