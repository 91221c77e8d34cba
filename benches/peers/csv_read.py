"""How fast other libraries read a CSV file of numbers into f32 columns in memory; answers requests of the benchmark.

    python csv_read.py     reads lines `NAME PATH`; reads that file once with that library, and prints seconds, rows and the sum of all values
"""
import gzip
import sys
import time

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.csv


def columns(path):
    """The names in the header."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return file.readline().strip().split(",")


def with_pandas(path, names):
    return pandas.read_csv(path, dtype=np.float32, engine="c")


def with_pyarrow(path, names):
    types = pyarrow.csv.ConvertOptions(column_types={name: pyarrow.float32() for name in names})
    return pyarrow.csv.read_csv(path, convert_options=types)


def with_polars(path, names):
    return polars.read_csv(path, schema_overrides=[polars.Float32] * len(names))


def column(frame, name):
    return np.asarray(frame[name])


def main():
    forms = {"pandas": with_pandas, "pyarrow": with_pyarrow, "polars": with_polars}
    print(f"pandas {pandas.__version__}, pyarrow {pyarrow.__version__}, polars {polars.__version__}", flush=True)
    for line in sys.stdin:
        form, path = line.rstrip("\n").split(" ", 1)
        names = columns(path)
        start = time.perf_counter()
        frame = forms[form](path, names)
        seconds = time.perf_counter() - start
        total = sum(column(frame, name).astype(np.float64).sum() for name in names)
        print(seconds, len(frame), total, flush=True)


main()
