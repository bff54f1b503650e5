#!/usr/bin/env python3
"""Names the tests that failed at first and passed when they were tried again.

Reads the JUnit report of the test run (`.config/nextest.toml`, profile `ci`). Such a test does not
make the run fail, but each is a fault of the test or of the program: the aim is none.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

REPORT = Path(__file__).resolve().parent.parent / "target/nextest/ci/junit.xml"


def flaky(report):
    """Names and numbers of failed attempts, by name.

    >>> list(flaky('<testsuites><testsuite name="a"><testcase name="t"><flakyFailure/><flakyFailure/>'
    ...            '</testcase><testcase name="u"/></testsuite></testsuites>'))
    [('a t', 2)]
    """
    for suite in ElementTree.fromstring(report).iter("testsuite"):
        for case in suite.iter("testcase"):
            failed = len(case.findall("flakyFailure")) + len(case.findall("flakyError"))
            if failed:
                yield f"{suite.get('name')} {case.get('name')}", failed


def main():
    if not REPORT.exists():
        sys.exit(f"report_flaky: {REPORT} is missing: run `make test` with NEXTEST_PROFILE=ci")
    found = sorted(flaky(REPORT.read_text()))
    print(f"flaky tests: {len(found)}")
    for name, failed in found:
        print(f"  {name}: failed {failed} times before it passed")


if __name__ == "__main__":
    main()
