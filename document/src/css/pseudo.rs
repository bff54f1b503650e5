//! Parses pseudo-classes into tests of an element.

use super::cursor::{Cursor, Read};
use super::parser::{Complex, Leading, Parser};
use super::translate::{self, children, path_from_context};
use crate::xpath::ast::Axis;
use crate::xpath::plan::{NodeTest, Nodes, SiblingPlace, Step, Test, Text, Way};

const KNOWN: [&str; 18] = [
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
    "contains",
    "-soup-contains",
];

/// The pseudo-class at the cursor.
pub(crate) fn parse(parser: &mut Parser<'_, '_>) -> Read<Test> {
    let start = parser.cursor.offset;
    parser.cursor.expect(":")?;
    let name = parser.cursor.name()?.to_ascii_lowercase();
    if let Some(test) = without_argument(&name) {
        return Ok(test);
    }
    if !KNOWN.contains(&&*name) {
        return Err(parser.cursor.fault_at(start, &unknown(&name)));
    }
    parser.cursor.expect("(")?;
    parser.cursor.skip_space();
    let test = match name.as_str() {
        "not" => Test::Not(Box::new(any_of(parser.list(Leading::Refused)?))),
        "is" | "where" => any_of(parser.list(Leading::Refused)?),
        "has" => Test::Or(
            parser
                .list(Leading::Allowed)?
                .into_iter()
                .map(has)
                .collect(),
        ),
        "contains" | "-soup-contains" => {
            let part = Text::Literal(parser.cursor.string_or_name()?);
            Test::Contains(Text::Of(path_from_context(Vec::new())), part)
        }
        nth => {
            let (step, offset) = step_and_offset(&mut parser.cursor)?;
            let (same_name, from_end) = (nth.ends_with("of-type"), nth.starts_with("nth-last"));
            Test::Sibling(SiblingPlace {
                step,
                offset,
                same_name,
                from_end,
            })
        }
    };
    parser.cursor.skip_space();
    parser.cursor.expect(")")?;
    Ok(test)
}

fn without_argument(name: &str) -> Option<Test> {
    let same_name = name.ends_with("of-type");
    let first = |from_end| {
        Test::Sibling(SiblingPlace {
            step: 0,
            offset: 1,
            same_name,
            from_end,
        })
    };
    Some(match name {
        "first-child" | "first-of-type" => first(false),
        "last-child" | "last-of-type" => first(true),
        "only-child" | "only-of-type" => Test::And(vec![first(false), first(true)]),
        "root" => {
            let parent = Step {
                axis: Way::Axis(Axis::Parent),
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

fn any_of(list: Vec<Complex>) -> Test {
    Test::Or(list.into_iter().map(translate::matches).collect())
}

fn has(relative: Complex) -> Test {
    Test::Exists(Nodes::Path(translate::forward(relative)))
}

fn unknown(name: &str) -> String {
    let likeness = |known: &&str| (strsim::jaro_winkler(name, known) * 1000.0) as u32;
    match KNOWN.iter().max_by_key(|known| likeness(known)) {
        Some(nearest) if likeness(nearest) > 750 => {
            format!("unknown pseudo-class `:{name}`, did you mean `:{nearest}`?")
        }
        _ => format!("unknown pseudo-class `:{name}`"),
    }
}

/// `an+b`: `odd`, `even`, `3`, `2n+1`, `-n + 3`.
fn step_and_offset(cursor: &mut Cursor<'_>) -> Read<(i32, i32)> {
    let start = cursor.offset;
    let written = cursor.rest().split(')').next().unwrap_or_default().trim();
    let compact: String = written.chars().filter(|c| !c.is_whitespace()).collect();
    let parsed = match compact.to_ascii_lowercase().as_str() {
        "odd" => Some((2, 1)),
        "even" => Some((2, 0)),
        formula => match formula.split_once('n') {
            None => integer(formula).map(|offset| (0, offset)),
            Some((step, offset)) => {
                let step = match step {
                    "" | "+" => Some(1),
                    "-" => Some(-1),
                    number => integer(number),
                };
                let offset = if offset.is_empty() {
                    Some(0)
                } else {
                    integer(offset)
                };
                step.zip(offset)
            }
        },
    };
    cursor.offset += written.len();
    parsed.ok_or_else(|| {
        cursor.fault_at(
            start,
            &format!("expected a place such as `2n+1`, found `{written}`"),
        )
    })
}

/// Within a million, so that no later arithmetic overflows.
fn integer(text: &str) -> Option<i32> {
    text.parse()
        .ok()
        .filter(|number: &i32| number.abs() <= 1_000_000)
}
