#!/usr/bin/env bash
# Installs aiosmtpd, the server that tests hand mail to, into .cache/mail-tools/venv.
# May run several times at once. Status 3: this machine cannot have them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../venv.sh" mail aiosmtpd aiosmtpd==1.4.6
