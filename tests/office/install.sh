#!/usr/bin/env bash
# Installs xlwt, which writes the XLS files that tests read, into .cache/office-tools/venv.
# May run several times at once. Status 3: this machine cannot have them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" office xlwt xlwt==1.3.0
