"""Reads a Parquet file with pyarrow: prints its columns with their types as a line of JSON, and then its rows.

    read.py FILE

Times are printed in ISO 8601, in UTC.
"""

import datetime
import json
import sys

import pyarrow.parquet


def plain(value):
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.timezone.utc)
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def main():
    file = pyarrow.parquet.ParquetFile(sys.argv[1])
    print(json.dumps({field.name: str(field.type) for field in file.schema_arrow}))
    print(json.dumps({"groups": file.num_row_groups, "rows": file.metadata.num_rows}))
    for row in file.read().to_pylist():
        print(json.dumps({name: plain(value) for name, value in row.items()}))


main()
