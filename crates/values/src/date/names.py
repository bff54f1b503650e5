#!/usr/bin/env python3
"""Writes names.tsv: the names of months and days of the week that dates are read by, out of the Unicode Common Locale
Data Repository, as the package Babel carries it.

    python3 -m venv /tmp/names && /tmp/names/bin/pip install babel==2.19.0
    /tmp/names/bin/python crates/values/src/date/names.py >crates/values/src/date/names.tsv

Another version of Babel has another CLDR: read what `git diff` shows before you keep it. The data are under the Unicode
License v3, which the head of names.tsv names; Babel (BSD-3-Clause) itself is needed by this script only.
"""

import collections
import sys

from babel import Locale
from babel.core import get_cldr_version

# Each language with the regions whose names differ: Jänner, Sept., setiembre, juill., segunda, 週一.
LOCALES = {
    "de": ["de", "de_AT"],
    "en": ["en", "en_GB"],
    "es": ["es", "es_419", "es_PE"],
    "fr": ["fr", "fr_CA"],
    "it": ["it"],
    "ja": ["ja"],
    "nl": ["nl"],
    "pl": ["pl"],
    "pt": ["pt", "pt_PT"],
    "zh": ["zh", "zh_Hant"],
}

HEAD = """\
# Names of months (1 is January) and days of the week (1 is Monday), in lower case and without the full stop of an abbreviation,
# and the languages that have them. From the Unicode Common Locale Data Repository (CLDR) {version}: forms `format` and `stand-alone`, widths
# `wide` and `abbreviated`. Copyright 1991-2026 Unicode, Inc., used under the Unicode License v3 (https://www.unicode.org/license.txt):
# permission is granted, free of charge, to deal in the data files without restriction, provided that this notice appears with them.
"""


def names_of(locale):
    """Each name with its kind and number."""
    for kind, first, names in ("month", 0, locale.months), ("weekday", 1, locale.days):
        for form in "format", "stand-alone":
            for width in "wide", "abbreviated":
                for number, name in names[form][width].items():
                    yield kind, number + first, name.lower().rstrip(".")


def main():
    languages = collections.defaultdict(set)
    for language, locales in LOCALES.items():
        for locale in locales:
            for kind, number, name in names_of(Locale.parse(locale)):
                # Skipped: names with digits, such as 1月, because the reader understands numbers by itself.
                if not any(character.isdigit() for character in name):
                    languages[kind, number, name].add(language)
    sys.stdout.write(HEAD.format(version=get_cldr_version()))
    for (kind, number, name), having in sorted(languages.items()):
        print(kind, number, name, ",".join(sorted(having)), sep="\t")


if __name__ == "__main__":
    main()
