"""What the field's readers find in a data set: one JSON document on stdout.

usage: readers.py tables|histograms|spark|queries DATA [FILE.md]
"""

import json
import sys
from pathlib import Path

what, data, *rest = sys.argv[1:]


def tables():
    """Columns, their types and rows of each table, by each reader."""
    import duckdb
    import pandas
    import polars

    found = {}
    for directory in sorted(path for path in Path(data).iterdir() if path.is_dir()):
        glob = f"{directory}/*.parquet"
        frame, other = pandas.read_parquet(directory), polars.read_parquet(glob)
        query = duckdb.sql(f"SELECT * FROM read_parquet('{glob}')")
        there = duckdb.sql(f"SELECT count(*) FROM read_parquet('{glob}')")
        found[directory.name] = {
            "columns": list(frame.columns),
            "same": list(frame.columns) == other.columns == query.columns,
            "rows": {"pandas": len(frame), "polars": other.height, "duckdb": there.fetchall()[0][0]},
            "types": dict(zip(query.columns, [str(kind) for kind in query.types])),
        }
    return found


def histograms():
    """Count and maximum of all that each CPU of each machine measured."""
    import base64

    import duckdb
    from hdrh.histogram import HdrHistogram

    rows = duckdb.sql(
        f"""SELECT r.name, s.cpu, h.histogram
            FROM read_parquet('{data}/histogram/*.parquet') h
            JOIN read_parquet('{data}/series/*.parquet') s USING (run, scenario, series)
            JOIN read_parquet('{data}/run/*.parquet') r USING (run)"""
    ).fetchall()
    found = {}
    for name, cpu, encoded in rows:
        one = found.setdefault(name, {}).setdefault(f"cpu{cpu}", HdrHistogram(1, 3_600_000_000_000, 3))
        one.decode_and_add(base64.b64encode(encoded))
    return {
        name: {cpu: [one.get_total_count(), one.get_max_value()] for cpu, one in cpus.items()}
        for name, cpus in found.items()
    }


def spark():
    """Columns, types and rows of each table, by Spark; and who measured most, by its SQL."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    found = {}
    for directory in sorted(path for path in Path(data).iterdir() if path.is_dir()):
        frame = session.read.parquet(str(directory))
        frame.createOrReplaceTempView(directory.name)
        # Every value is read, not only counted by the files' ends.
        found[directory.name] = {"columns": frame.columns, "rows": len(frame.collect()), "types": dict(frame.dtypes)}
    joined = session.sql("SELECT r.name, max(s.max_ns) AS most FROM series s JOIN run r USING (run) GROUP BY r.name ORDER BY r.name")
    found["joined"] = [list(row) for row in joined.collect()]
    session.stop()
    return found


def queries():
    """Rows of each query of a page: what stands between ```sql and ```, with DATA for the directory."""
    import duckdb

    found = []
    for block in Path(rest[0]).read_text().split("```sql\n")[1:]:
        sql = block.split("```")[0].replace("DATA/", f"{data}/")
        # As text: moments of a time zone would need another package.
        rows = duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM ({sql})").fetchall()
        found.append([[str(cell) for cell in row] for row in rows])
    return found


json.dump({"tables": tables, "histograms": histograms, "spark": spark, "queries": queries}[what](), sys.stdout)
