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
import unicodedata

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
    "bg": ["bg"],
    "cs": ["cs"],
    "da": ["da"],
    "el": ["el"],
    "fi": ["fi"],
    "hu": ["hu"],
    "ko": ["ko"],
    "nb": ["nb"],
    "ro": ["ro"],
    "ru": ["ru"],
    "sk": ["sk"],
    "sv": ["sv"],
    "tr": ["tr"],
    "uk": ["uk"],
}

# The languages whose short names were read before the others were added. Of the others, a name of three Latin letters
# or less may be a word of another language (Czech `led` and `pro`), and one or two letters show nothing.
OLD = {"de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "zh"}

# Names that CLDR lacks, but that people write.
FURTHER = [("month", 3, "maerz", "de"), ("month", 1, "jaenner", "de"), ("month", 9, "вер", "uk"), ("month", 5, "май", "ru")]

HEAD = """\
# Names of months (1 is January) and days of the week (1 is Monday), in lower case and without the full stop of an abbreviation,
# and the languages that have them. From the Unicode Common Locale Data Repository (CLDR) {version}: forms `format` and `stand-alone`, widths
# `wide` and `abbreviated`; names without their accents, as in capitals. `short` marks names that may be words of another language, which
# count as months only between day and year. Copyright 1991-2026 Unicode, Inc., used under the Unicode License v3 (https://www.unicode.org/license.txt):
# permission is granted, free of charge, to deal in the data files without restriction, provided that this notice appears with them.
"""


def names_of(locale):
    """Each name with its kind and number."""
    for kind, first, names in ("month", 0, locale.months), ("weekday", 1, locale.days):
        for form in "format", "stand-alone":
            for width in "wide", "abbreviated":
                for number, name in names[form][width].items():
                    yield kind, number + first, name.lower().rstrip(".")


def spellings_of(name):
    """The name, and the name without accents: DECEMBRE, ΜΑΡΤΙΟΥ. Cyrillic and Korean letters keep their marks."""
    yield name
    parts = unicodedata.normalize("NFD", name.replace("ı", "i").replace("ł", "l").replace("ø", "o"))
    if not any("Ѐ" <= letter <= "ӿ" or "가" <= letter <= "힣" for letter in name):
        yield unicodedata.normalize("NFC", "".join(part for part in parts if not unicodedata.combining(part)))
        # Greek capitals lose their accent, but keep their diaeresis.
        yield unicodedata.normalize("NFC", parts.replace("\u0301", ""))


def is_readable(name, language):
    """Names with digits, such as 1月, are read as numbers."""
    is_long_enough = language in OLD or not (len(name) == 1 or (len(name) == 2 and name < "ʰ"))
    return is_long_enough and not any(character.isdigit() for character in name)


def main():
    languages = collections.defaultdict(set)
    for language, locales in LOCALES.items():
        for locale in locales:
            for kind, number, name in names_of(Locale.parse(locale)):
                if not is_readable(name, language):
                    continue
                for spelling in spellings_of(name):
                    other = {n for k, n, s in languages if (k, s) == (kind, spelling)} - {number}
                    # The meaning in the languages above, such as German `so` (Sunday), not Slovak (Saturday).
                    if not other:
                        languages[kind, number, spelling].add(language)
                    elif kind == "month":
                        sys.exit(f"{spelling} is several months: {other} and {number} in {language}")
    for kind, number, name, language in FURTHER:
        languages[kind, number, name].add(language)
    sys.stdout.write(HEAD.format(version=get_cldr_version()))
    for (kind, number, name), having in sorted(languages.items()):
        is_word = name.isascii() and len(name) <= 3 and not having & OLD
        print(kind, number, name, ",".join(sorted(having)), *["short"] * is_word, sep="\t")


if __name__ == "__main__":
    main()
