//! Parses the pseudo-classes of selectors, such as `:first-child`, into tests of an element.

use super::cursor::{CssResult, Cursor};
use super::nth;
use super::parser::{self, Leading, Parser};
use super::selector::Complex;
use super::translate::{self, children, path_from_context};
use crate::xpath::ast::Axis;
use crate::xpath::plan::{NodeTest, Nodes, SiblingPlace, Step, StepAxis, Test, Text};

const KNOWN: [&str; 21] = [
    "first-child",
    "last-child",
    "only-child",
    "first-of-type",
    "last-of-type",
    "only-of-type",
    "nth-child",
    "nth-last-child",
    "nth-of-type",
    "nth-last-of-type",
    "not",
    "is",
    "where",
    "has",
    "root",
    "empty",
    "scope",
    "checked",
    "lang",
    "contains",
    "-soup-contains",
];

/// The selector that `:checked` stands for: elements that are initially checked or selected.
const CHECKED: &str = ":is(input[type=checkbox], input[type=radio])[checked], option[selected]";

/// Parses the pseudo-class at the cursor.
pub(crate) fn parse(parser: &mut Parser<'_, '_>) -> CssResult<Test> {
    let start = parser.cursor.offset;
    parser.cursor.expect(":")?;
    let name = parser.cursor.parse_name()?.to_ascii_lowercase();
    match name.as_str() {
        "scope" => {
            parser.scoped = true;
            return Ok(Test::Scope);
        }
        "checked" => return Ok(any_of(parser::parse(CHECKED, parser.names)?)),
        _ => {}
    }
    if let Some(test) = argumentless_test(&name) {
        return Ok(test);
    }
    if !KNOWN.contains(&&*name) {
        return Err(parser.cursor.fault_at(start, &unknown_message(&name)));
    }
    parser.cursor.expect("(")?;
    parser.cursor.skip_space();
    let test = match name.as_str() {
        "not" => Test::Not(Box::new(any_of(parser.parse_list(Leading::Refused)?))),
        // `:is()` and `:where()` may have an empty list, which matches nothing.
        "is" | "where" if parser.cursor.peek() == Some(')') => Test::Or(Vec::new()),
        "is" | "where" => any_of(parser.parse_list(Leading::Refused)?),
        "has" => Test::Or(
            parser
                .parse_list(Leading::Allowed)?
                .into_iter()
                .map(exists_test)
                .collect(),
        ),
        "contains" | "-soup-contains" => {
            let part = Text::Literal(parser.cursor.parse_string_or_name()?);
            Test::Contains(Text::Of(path_from_context(Vec::new())), part)
        }
        "lang" => Test::Language(parse_language_ranges(&mut parser.cursor)?),
        nth => nth::parse_positions(parser, nth)?,
    };
    parser.cursor.skip_space();
    parser.cursor.expect(")")?;
    Ok(test)
}

fn argumentless_test(name: &str) -> Option<Test> {
    let same_name = name.ends_with("of-type");
    let first = |from_end| {
        Test::Sibling(SiblingPlace {
            step: 0,
            offset: 1,
            same_name,
            from_end,
            of: None,
        })
    };
    Some(match name {
        "first-child" | "first-of-type" => first(false),
        "last-child" | "last-of-type" => first(true),
        "only-child" | "only-of-type" => Test::And(vec![first(false), first(true)]),
        "root" => {
            let parent = Step {
                axis: StepAxis::Axis(Axis::Parent),
                test: NodeTest::AnyName,
                predicates: Vec::new(),
            };
            Test::Not(Box::new(Test::Exists(path_from_context(vec![parent]))))
        }
        "empty" => {
            let content = vec![children(NodeTest::AnyName), children(NodeTest::Text)];
            Test::Not(Box::new(Test::Exists(Nodes::Union(content))))
        }
        _ => return None,
    })
}

pub(crate) fn any_of(list: Vec<Complex>) -> Test {
    Test::Or(list.into_iter().map(translate::match_condition).collect())
}

fn exists_test(relative: Complex) -> Test {
    Test::Exists(Nodes::Path(translate::relative_path(relative)))
}

/// Reads language ranges, such as `en, "*-CH"`.
fn parse_language_ranges(cursor: &mut Cursor<'_>) -> CssResult<Vec<String>> {
    let mut ranges = Vec::new();
    loop {
        cursor.skip_space();
        ranges.push(cursor.parse_string_or_name()?);
        cursor.skip_space();
        if !cursor.take(",") {
            return Ok(ranges);
        }
    }
}

fn unknown_message(name: &str) -> String {
    let likeness = |known: &&str| (strsim::jaro_winkler(name, known) * 1000.0) as u32;
    match KNOWN.iter().max_by_key(|known| likeness(known)) {
        Some(nearest) if likeness(nearest) > 750 => {
            format!("unknown pseudo-class `:{name}`, did you mean `:{nearest}`?")
        }
        _ => format!("unknown pseudo-class `:{name}`"),
    }
}
