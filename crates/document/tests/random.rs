//! Parses random markup, and evaluates random XPath expressions and CSS selectors. Checks that nothing panics, and that
//! every tree is consistent. The input is the same in every run.

mod common;

use common::parse_html;
use fastrand::Rng;
use webfill_document::{Document, EvaluateError, Limits, Selector, XPath};

const MARKUP: &str = "<div|<p|<table>|<tr>|<td>|</td>|</table>|</p>|</|<|>|/>| x|=|'|\"|\"v'|&amp;|&|\
    &#0;|&#x110000;|&lt|<!--|-->|<![CDATA[|]]>|<?xml|?>|<!DOCTYPE html>|<!|<svg>|<math>|\
    <annotation-xml encoding=text/html>|<foreignObject>|<template>|</template>|<select>|<option>|\
    </select>|<form>|<button>|<a>|<b>|<i>|</b>|</i>|</a>|<script>|</script>|<style>|<title>|\
    </title>|<textarea>|<plaintext>|<noscript>|<frameset>|<body a=b>|<html c=d>|<head>|</body>|\
    </html>|<ruby>|<rt>|<li>|<dd>|<h1>|</h2>|<br>|</br>|<input type=hidden>|<nobr>|<font color=x>|\
    text | \n|\0|\r|ü|\u{feff}|<a:b>|</a:b>|<x a:y=1 b:y=2 a:y=3 xmlns:a='u'>|<caption>|<col>";

const EXPRESSION: &str = "//|/|a|div|*|@x|@*|..|.|[|]|(|)|1|1.5|'x'|\"y\"|and| or |not(|count(|contains(|\
    ,|last()|position()|=|!=|<|>=|+|-|*| div |text()|node()|comment()|ancestor::|following::|\
    preceding-sibling::|self::|string(|id(|lang('en')|name()|sum(|number(|concat(|substring(|$v|x:y|é";

const SELECTOR: &str = "a|div|*|#x|.y|[x]|[x=|'v'|]|[x*='a' i]| |>|+|~|,|:not(|)|:has(|:nth-child(|2n+1|\
    -n|:first-child|:empty|:root|::text|::attr(x)|\\31 |\\|:contains('x')|\"|é|:nth-last-of-type(2)|\
    /*| */|/* */|:scope|:checked|:lang(|:is(| of |A|[TYPE=x s]";

/// Joins fewer than `limit` random pieces. `pieces` lists all pieces, separated by `|`.
fn join_random(rng: &mut Rng, pieces: &str, limit: usize) -> String {
    let pieces: Vec<&str> = pieces.split('|').collect();
    (0..rng.usize(..limit))
        .map(|_| pieces[rng.usize(..pieces.len())])
        .collect()
}

#[test]
fn random_markup_gives_consistent_trees() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..5_000 {
        let page = join_random(&mut rng, MARKUP, 60);
        assert_consistent(&parse_html(&page), &page);
        assert_consistent(&Document::parse_xml(&page, &Limits::default()), &page);
    }
}

/// Checks a tree: children lie within their parents, siblings follow each other, and text is in document order.
fn assert_consistent(document: &Document, page: &str) {
    let root = document.root();
    let mut text = String::new();
    for node in root.descendants() {
        let parent = node
            .parent()
            .unwrap_or_else(|| panic!("an orphan in {page:?}"));
        assert!(parent.contains(node), "{page:?}");
        assert!(parent.children().any(|child| child == node), "{page:?}");
        if let Some(sibling) = node.next_sibling() {
            assert_eq!(sibling.parent(), Some(parent), "{page:?}");
        }
        if node.is_text() {
            text.push_str(node.text());
        }
    }
    assert_eq!(root.text(), text, "{page:?}");
}

#[test]
fn random_expressions_and_selectors_are_refused_or_evaluated() {
    let mut rng = Rng::with_seed(2);
    let documents: Vec<Document> = (0..50)
        .map(|_| parse_html(&join_random(&mut rng, MARKUP, 60)))
        .collect();
    let mut taken = 0;
    for round in 0..40_000 {
        let document = &documents[round % documents.len()];
        let expression = join_random(&mut rng, EXPRESSION, 10);
        if let Ok(xpath) = XPath::compile(&expression) {
            let result = document.evaluate(&xpath);
            assert!(
                !matches!(result, Err(EvaluateError::Engine(_))),
                "{expression}: {result:?}"
            );
            taken += 1;
        }
        let selector = join_random(&mut rng, SELECTOR, 8);
        if let Ok(selector) = Selector::compile(&selector) {
            assert!(document.select(&selector).is_ok());
            taken += 1;
        }
    }
    assert!(taken > 5_000, "only {taken} were taken");
}
