"""What the field's readers find in exported files: one JSON document on stdout.

usage: readers.py tables DIR | metrics FILE | log FILE... | write FILE
"""

import json
import sys
from pathlib import Path


def tables(directory):
    """Columns, their types and some figures of each table, by each reader."""
    import duckdb
    import pandas
    import polars

    found = {}
    for path in sorted(Path(directory).glob("*.parquet")):
        frame, other = pandas.read_parquet(path), polars.read_parquet(path)
        query = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
        there = duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}')")
        text = pandas.read_csv(path.with_suffix(".csv"), keep_default_na=False, na_values=[""])
        rows = duckdb.sql(f"SELECT count(*) FROM read_csv('{path.with_suffix('.csv')}', header = true, all_varchar = true)")
        found[path.stem] = {
            "columns": list(frame.columns),
            "same": list(frame.columns) == other.columns == query.columns == list(text.columns),
            "rows": {
                "pandas": len(frame),
                "polars": other.height,
                "duckdb": there.fetchall()[0][0],
                "pandas, csv": len(text),
                "duckdb, csv": rows.fetchall()[0][0],
            },
            "types": dict(zip(query.columns, [str(kind) for kind in query.types])),
            "sums": {
                name: [int(frame[name].sum()), int(other[name].sum() or 0), int(text[name].sum())]
                for name in ("cycles", "count", "samples")
                if name in frame.columns
            },
            "evidence": sorted(set(frame["evidence"].dropna())) if "evidence" in frame.columns else None,
            "names": list(frame["name"]) if "name" in frame.columns else None,
            "names, csv": list(text["name"]) if "name" in text.columns else None,
            "started": [str(moment) for moment in frame["started"].dropna()] if "started" in frame.columns else None,
        }
    return found


def metrics(path):
    """Families and samples, as the reference parser reads them; it refuses what is not OpenMetrics."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    families = list(text_string_to_metric_families(Path(path).read_text()))
    return {
        family.name: {
            "type": family.type,
            "unit": family.unit,
            "samples": [[sample.name, sample.labels, sample.value] for sample in family.samples],
        }
        for family in families
    }


def log(paths):
    """Tags with count, minimum and maximum of what they counted."""
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    found = []
    for path in paths:
        tags = {}
        reader = HistogramLogReader(path, HdrHistogram(1, 3_600_000_000_000, 3))
        while (interval := reader.get_next_interval_histogram()) is not None:
            one = tags.setdefault(interval.get_tag() or "", HdrHistogram(1, 3_600_000_000_000, 3))
            one.add(interval)
        found.append(
            {
                tag: [one.get_total_count(), one.get_max_value(), one.get_value_at_percentile(50)]
                for tag, one in tags.items()
            }
        )
    return found


def write(path):
    """Writes a log of three seconds of two tags, and says what is in it as `log` does."""
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogWriter

    began = 1_764_000_000
    with open(path, "w") as file:
        writer = HistogramLogWriter(file)
        writer.output_log_format_version()
        # `output_start_time` of this library fails, and of tags it knows nothing: both as the one in Java has them.
        writer.output_comment(f"[StartTime: {began}.000 (seconds since epoch), Mon Nov 24 16:00:00 UTC 2025]")
        writer.output_base_time(began * 1000)
        writer.output_legend()
        for second in range(3):
            for cpu in (2, 3):
                one = HdrHistogram(1, 3_600_000_000_000, 3)
                for n in range(1000):
                    one.record_value(1000 * cpu + 37 * n * (second + 1))
                file.write(f"Tag={cpu},")
                writer.output_interval_histogram(one, second + 0.5, second + 1.5)
    return log([path])[0]


what, *paths = sys.argv[1:]
asked = {
    "tables": lambda: tables(paths[0]),
    "metrics": lambda: metrics(paths[0]),
    "log": lambda: log(paths),
    "write": lambda: write(paths[0]),
}
json.dump(asked[what](), sys.stdout)
