#!/usr/bin/env bash
# Installs Sphinx with MyST and Furo, which build the documentation's site, into .cache/docs-tools/venv.
# May run several times at once. Status 3: this machine cannot have them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" docs sphinx,myst_parser,furo sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19
