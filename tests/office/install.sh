#!/usr/bin/env bash
# Installs the libraries by which people write DOCX, XLSX, XLS and ODS files from Python, into .cache/office-tools/venv:
# tests read what they write.
# May run several times at once. Status 3: this machine cannot have them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" office xlwt,openpyxl,odf,docx \
    xlwt==1.3.0 openpyxl==3.1.5 odfpy==1.4.1 python-docx==1.2.0
