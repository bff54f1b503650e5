//! Compares this crate's evaluation with that of the unmodified `sxd-xpath`, on the same pages. Where `sxd-xpath` does
//! not follow the XPath standard, `tests/xpath.rs` has the expected values instead.

use fastrand::Rng;

use super::XPath;
use super::sxd::{Single, Stock, SxdTree};
use super::value::XValue;
use crate::{Document, Limits};

fn parse(page: &str) -> Document {
    Document::parse_html(page, &Limits::default())
}

/// Evaluates an expression with this crate. Returns the value as a [`Stock`], like [`SxdTree::evaluate_stock`].
fn evaluate_ours(document: &Document, expression: &str) -> Stock {
    let xpath = XPath::compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let values = document
        .evaluate(&xpath)
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    match values.as_slice() {
        [XValue::Text(text)] => Stock::Single(Single::Text(text.clone())),
        [XValue::Number(number)] => Stock::Single(Single::Number(*number)),
        [XValue::Boolean(boolean)] => Stock::Single(Single::Boolean(*boolean)),
        nodes => Stock::Nodes(nodes.iter().map(|node| node.text().into_owned()).collect()),
    }
}

fn assert_same(document: &Document, page: &str, expression: &str) {
    let stock = SxdTree::from_tree(&document.tree).evaluate_stock(expression);
    let stock = stock.unwrap_or_else(|error| panic!("{expression}: {error}"));
    let ours = evaluate_ours(document, expression);
    let both_nan = matches!(
        (&stock, &ours),
        (Stock::Single(Single::Number(one)), Stock::Single(Single::Number(other)))
            if one.is_nan() && other.is_nan()
    );
    assert!(
        both_nan || stock == ours,
        "{expression}\non {page}\nsxd  {stock:?}\nours {ours:?}"
    );
}

#[test]
fn typical_scraper_expressions_yield_the_same_as_sxd() {
    let page = include_str!("stock_page.html");
    let document = parse(page);
    let expressions = include_str!("stock_expressions.txt");
    for expression in expressions.lines().filter(|line| !line.is_empty()) {
        assert_same(&document, "stock_page.html", expression);
    }
}

#[test]
fn random_expressions_yield_the_same_as_sxd() {
    let mut yielding = 0;
    for seed in 1..=400 {
        let mut generator = Generator::with_seed(seed);
        let page = generator.generate_page();
        let document = parse(&page);
        for _ in 0..12 {
            let expression = generator.generate_expression();
            assert_same(&document, &page, &expression);
            yielding +=
                usize::from(evaluate_ours(&document, &expression) != Stock::Nodes(Vec::new()));
        }
    }
    assert!(
        yielding > 2_000,
        "only {yielding} expressions found anything"
    );
}

/// Generates random pages and expressions. They depend only on the seed.
struct Generator {
    rng: Rng,
}

impl Generator {
    fn with_seed(seed: u64) -> Generator {
        Generator {
            rng: Rng::with_seed(seed),
        }
    }

    fn pick(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.rng.usize(..choices.len())]
    }

    fn generate_page(&mut self) -> String {
        let mut page = String::new();
        self.push_elements(2, &mut page);
        page
    }

    fn push_elements(&mut self, depth: u64, page: &mut String) {
        for _ in 0..self.rng.u64(..4) + 1 {
            let tag = self.pick(&["div", "section", "span"]);
            let attribute = self.pick(&["", "", " x=1", " x=2", " y=1", " y='a b'"]);
            page.push_str(&format!("<{tag}{attribute}>"));
            page.push_str(self.pick(&["", "1", "2", " two words ", "<!--1-->", "a"]));
            if depth > 0 {
                self.push_elements(depth - 1, page);
            }
            page.push_str(self.pick(&["", "3", "tail"]));
            page.push_str(&format!("</{tag}>"));
        }
    }

    fn generate_expression(&mut self) -> String {
        match self.rng.u64(..8) {
            0 => format!("({})[{}]", self.generate_path(), self.generate_predicate(2)),
            1 => format!("{} | {}", self.generate_path(), self.generate_path()),
            2 => format!("count({})", self.generate_path()),
            3 => format!("string({})", self.generate_path()),
            4 => format!(
                "boolean({}) and {}",
                self.generate_path(),
                self.generate_condition(1)
            ),
            _ => self.generate_path(),
        }
    }

    fn generate_path(&mut self) -> String {
        let mut path = self
            .pick(&["//", "//", "/html/body/", "/descendant::"])
            .to_owned();
        path.push_str(self.pick(&["div", "section", "span", "*", "text()", "node()"]));
        path.push_str(&self.generate_predicates(2));
        for _ in 0..self.rng.u64(..3) {
            path.push_str(&self.generate_step());
        }
        if self.rng.u64(..6) == 0 {
            path.push_str(self.pick(&["/@x", "//@y", "/..", "/.", "//text()"]));
        }
        path
    }

    fn generate_step(&mut self) -> String {
        const AXES: [&str; 11] = [
            "ancestor",
            "ancestor-or-self",
            "child",
            "descendant",
            "descendant-or-self",
            "following",
            "following-sibling",
            "parent",
            "preceding",
            "preceding-sibling",
            "self",
        ];
        let slash = self.pick(&["/", "/", "//"]);
        let axis = self.pick(&AXES);
        let test = self.pick(&["div", "span", "*", "node()", "text()", "comment()"]);
        format!("{slash}{axis}::{test}{}", self.generate_predicates(1))
    }

    fn generate_predicates(&mut self, depth: u64) -> String {
        match self.rng.u64(..3) {
            0 => String::new(),
            1 => format!("[{}]", self.generate_predicate(depth)),
            _ => format!(
                "[{}][{}]",
                self.generate_predicate(depth),
                self.generate_predicate(depth)
            ),
        }
    }

    fn generate_predicate(&mut self, depth: u64) -> String {
        match self.rng.u64(..5) {
            0 => (self.rng.u64(..3) + 1).to_string(),
            1 => self
                .pick(&["last()", "last() - 1", "position() mod 2 + 1"])
                .to_owned(),
            _ => self.generate_condition(depth),
        }
    }

    fn generate_condition(&mut self, depth: u64) -> String {
        if depth == 0 {
            return self.pick_plain_condition().to_owned();
        }
        match self.rng.u64(..6) {
            0 => format!("not({})", self.generate_condition(depth - 1)),
            1 => format!(
                "{} and {}",
                self.generate_condition(depth - 1),
                self.generate_condition(depth - 1)
            ),
            2 => format!(
                "{} or {}",
                self.generate_condition(depth - 1),
                self.generate_condition(depth - 1)
            ),
            3 => format!("*[{}]", self.generate_predicate(depth - 1)),
            4 => format!("count(.//*[{}]) > 1", self.generate_predicate(depth - 1)),
            _ => self.pick_plain_condition().to_owned(),
        }
    }

    fn pick_plain_condition(&mut self) -> &'static str {
        self.pick(&[
            "@x",
            "@x = '1'",
            "@y = 'a b'",
            "'1' = text()",
            ". = '1'",
            ". = 2",
            "text() = //@x",
            "contains(., '2')",
            "contains(text(), '1')",
            "starts-with(@y, 'a')",
            "position() < 3",
            "position() = last()",
            "contains(concat(' ', @y, ' '), ' b ')",
            "div",
            "span/div",
            "normalize-space() = 'two words'",
            "'1' = normalize-space(text())",
            "normalize-space(.) != '1'",
            "normalize-space(.)",
            "string(@x) = string(.)",
            "string-length(normalize-space(.)) > 2",
            "name() = 'div'",
            "name(..) = 'span'",
            "translate(@y, 'ab', 'ba') = 'b a'",
            "count(ancestor::div) = 1",
            "count(preceding-sibling::*) > 0",
            "substring(., 1, 1) = '1'",
            "substring-before(@y, ' ') = 'a'",
            "string(@x)",
            "sum(.//@x) > 2",
            "true()",
            "concat(name(), @x) = 'div1'",
            "following::span[1]/@x = 1",
            "floor(count(*) div 2) = 1",
        ])
    }
}
