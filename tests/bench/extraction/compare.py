#!/usr/bin/env python3
"""Compares the results of the extraction benchmark with those of lxml and html5lib.

    extraction FOLDER --results | tests/bench/extraction/compare.py FOLDER [-v]

A pair of page and expression is equal if the results are the same strings in the same order as
lxml's (libxml2's own HTML tree) or html5lib's (the tree of the HTML standard, asked through lxml).
Needs lxml and html5lib (Debian: python3-lxml, python3-html5lib). Exits with 1 below 99.9 %.
"""

import collections
import json
import math
import pathlib
import sys
import warnings

import html5lib
import lxml.etree

WANTED_SHARE = 99.9


def trees(path):
    """The page as both libraries see it, from the same text as the benchmark reads."""
    text = path.read_bytes().decode("utf-8", "replace").replace("\0", " ").lstrip("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parser = lxml.etree.HTMLParser(encoding="utf-8", huge_tree=True)
    by_lxml = lxml.etree.fromstring(text.encode(), parser).getroottree()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = html5lib.getTreeBuilder("lxml")
        by_html5lib = html5lib.HTMLParser(builder, namespaceHTMLElements=False).parse(text)
    return by_lxml, without_namespaces(by_html5lib)


def without_namespaces(tree):
    """html5lib puts SVG and MathML in namespaces, which scrapers do not write."""
    for element in tree.iter("{*}*"):
        element.tag = lxml.etree.QName(element).localname
    return tree


def strings(tree, expression):
    result = tree.xpath(expression)
    if isinstance(result, bool):
        return ["true" if result else "false"]
    if isinstance(result, float):
        return result
    if isinstance(result, str):
        return [str(result)]
    return [text_of(item) for item in result if not is_empty_text_node(item)]


def text_of(item):
    return item if isinstance(item, str) else item.xpath("string()")


def is_empty_text_node(item):
    """html5lib's lxml trees have text nodes without text, which XPath does not know."""
    return item == "" and (item.is_text or item.is_tail)


def same(result, ours):
    """Numbers are compared as such: libxml2 writes 15 digits, XPath 1.0 asks for all."""
    if isinstance(result, float):
        return len(ours) == 1 and math.isclose(result, float(ours[0]), rel_tol=1e-12)
    return result == ours


def main():
    folder, verbose = pathlib.Path(sys.argv[1]), "-v" in sys.argv[2:]
    counts = collections.Counter()
    differing = collections.defaultdict(list)
    page = by_lxml = by_html5lib = None
    for line in sys.stdin:
        name, expression, ours = json.loads(line)
        if name != page:
            page, (by_lxml, by_html5lib) = name, trees(folder / name)
        as_lxml = same(strings(by_lxml, expression), ours)
        as_html5lib = same(strings(by_html5lib, expression), ours)
        counts["pairs"] += 1
        counts["not empty"] += ours not in ([], [""])
        counts["= lxml"] += as_lxml
        counts["= html5lib"] += as_html5lib
        counts["= either"] += as_lxml or as_html5lib
        if not (as_lxml or as_html5lib):
            differing[expression].append(name)
            if verbose:
                print(f"{name}: {expression}\n  ours {ours}\n  lxml {strings(by_lxml, expression)}"
                      f"\n  html5lib {strings(by_html5lib, expression)}")
    for expression, names in sorted(differing.items()):
        print(f"{len(names):4} pages differ: {expression}  ({', '.join(sorted(names)[:3])})")
    share = 100 * counts["= either"] / counts["pairs"]
    for label in ("= lxml", "= html5lib", "= either"):
        print(f"{label:12} {100 * counts[label] / counts['pairs']:7.2f} %")
    print(f"{counts['pairs']} pairs, {counts['not empty']} with results; limit {WANTED_SHARE} % equal to either")
    sys.exit(0 if share >= WANTED_SHARE else 1)


main()
