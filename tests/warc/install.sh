#!/usr/bin/env bash
# Installs warcio and pywb, which judge archives in tests, into .cache/warc-tools/venv.
# May run several times at once. Status 3: this machine cannot have them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" warc warcio,pywb.apps.frontendapp warcio==1.8.0 pywb==2.10.0
