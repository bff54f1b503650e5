#!/usr/bin/env bash
# Installs pyarrow, which reads exported Parquet files in tests, into .cache/parquet-tools/venv.
# May run several times at once. Status 3: this machine cannot have it.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" parquet pyarrow.parquet pyarrow==26.0.1
