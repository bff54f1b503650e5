//! Parses names with a namespace in front: `*|a`, `[*|href]`. The only namespace that selectors can use is `*`, because
//! trees contain no namespaces, but at most prefixes of names.

use super::cursor::CssResult;
use super::parser::Parser;
use crate::xpath::plan::{NodeTest, Test};

/// The prefixes that attributes of HTML pages can have.
const PREFIXES: [&str; 2] = ["xlink", "xml"];

/// Reads the name of an element, or `*`. If the name may be in any namespace, returns a further test for that.
pub(crate) fn parse_element_test(
    parser: &mut Parser<'_, '_>,
) -> CssResult<(NodeTest, Option<Test>)> {
    let start = parser.cursor.offset;
    if !parser.cursor.take("*") {
        let name = parser.cursor.parse_name()?;
        if parser.cursor.peek() == Some('|') {
            let reason = "namespaces are not used here: write the name alone, or `*|` before it";
            return Err(parser.cursor.fault_at(start, reason));
        }
        return Ok((NodeTest::Name(parser.names.get_or_insert(&name)), None));
    }
    if !parser.cursor.take("|") || parser.cursor.take("*") {
        return Ok((NodeTest::AnyName, None));
    }
    let name = parser.cursor.parse_name()?;
    Ok((NodeTest::AnyName, Some(Test::LocalName(name))))
}

/// Reads the name in an attribute selector such as `[href]`. With `*|name`, returns it with each possible prefix.
pub(crate) fn parse_attribute_names(parser: &mut Parser<'_, '_>) -> CssResult<Vec<String>> {
    let start = parser.cursor.offset;
    let any = parser.cursor.take("*|");
    if !any {
        // A name without a prefix may also be written as `|name`.
        parser.cursor.take("|");
    }
    let name = parser.cursor.parse_name()?;
    if parser.cursor.unread_text().starts_with('|')
        && !parser.cursor.unread_text().starts_with("|=")
    {
        let reason = format!("namespaces are not declared here: write `*|` or `{name}\\:`");
        return Err(parser.cursor.fault_at(start, &reason));
    }
    let mut names = vec![name];
    if any {
        let prefixed = PREFIXES.map(|prefix| format!("{prefix}:{}", names[0]));
        names.extend(prefixed);
    }
    Ok(names)
}
