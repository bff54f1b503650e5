//! Finds names in an expression that cannot occur on HTML pages, because of their capitals. An expression with such a
//! name may be right for XML, but finds nothing on HTML pages.

use super::lexer::{Word, tokenize};
use crate::document::Document;
use crate::limits::Limits;

/// The names of RSS 2.0 that have capitals. An expression that uses them is meant for a feed.
const FEED_NAMES: [&str; 7] = [
    "lastBuildDate",
    "managingEditor",
    "pubDate",
    "skipDays",
    "skipHours",
    "textInput",
    "webMaster",
];

/// A name of an element or attribute in an expression that HTML pages spell differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUnlikeHtml {
    pub name: String,
    /// The position of the name, in bytes from the beginning of the expression.
    pub offset: usize,
    /// How HTML pages spell the name: in lower case, and within SVG or MathML perhaps with other capitals.
    pub spellings: Vec<String>,
}

/// Returns the names in `expression` that cannot occur on HTML pages, each once; empty if the expression is invalid.
/// Names of SVG and MathML (`viewBox`), names of feeds, and names with a prefix are left out.
pub fn names_unlike_html(expression: &str) -> Vec<NameUnlikeHtml> {
    let mut found: Vec<NameUnlikeHtml> = Vec::new();
    for token in tokenize(expression).unwrap_or_default() {
        let Word::Name(name) = token.word else {
            continue;
        };
        let is_plain = !name.bytes().any(|b| b.is_ascii_uppercase()) || name.contains(':');
        if is_plain || FEED_NAMES.contains(&&*name) || found.iter().any(|known| known.name == name)
        {
            continue;
        }
        let spellings = spellings(&name);
        if !spellings.contains(&name) {
            found.push(NameUnlikeHtml {
                name,
                offset: token.offset,
                spellings,
            });
        }
    }
    found
}

/// Returns how the HTML parser spells the name of an element or attribute. For SVG and MathML the parser knows names
/// with capitals, so it is run on a small page.
fn spellings(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let page = format!("<svg><{lower} {lower}=x></svg><math><{lower} {lower}=x></math>");
    let document = Document::parse_html(&page, &Limits::default());
    let mut spellings = vec![lower];
    for element in document.root().descendants() {
        let attributes = element.attributes().map(|attribute| attribute.name());
        for spelled in element.tag().into_iter().chain(attributes) {
            let is_same = spelled.eq_ignore_ascii_case(name);
            if is_same && !spellings.iter().any(|known| known == spelled) {
                spellings.push(spelled.to_owned());
            }
        }
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_with_spellings(expression: &str) -> Vec<(String, usize, Vec<String>)> {
        let found = names_unlike_html(expression).into_iter();
        found
            .map(|found| (found.name, found.offset, found.spellings))
            .collect()
    }

    #[test]
    fn names_with_capitals_are_found_with_their_spellings() {
        let expected = |name: &str, offset, spellings: &[&str]| {
            let spellings = spellings.iter().map(|spelling| (*spelling).to_owned());
            (name.to_owned(), offset, spellings.collect::<Vec<_>>())
        };
        assert_eq!(
            names_with_spellings("//DIV[@ID='X']/descendant::Span | //DIV"),
            [
                expected("DIV", 2, &["div"]),
                expected("ID", 7, &["id"]),
                expected("Span", 27, &["span"]),
            ]
        );
        assert_eq!(
            names_with_spellings("//svg/@ViewBox"),
            [expected("ViewBox", 7, &["viewbox", "viewBox"])]
        );
        assert_eq!(
            names_with_spellings("//FOREIGNOBJECT"),
            [expected(
                "FOREIGNOBJECT",
                2,
                &["foreignobject", "foreignObject"]
            )]
        );
    }

    #[test]
    fn names_that_pages_have_are_not_found() {
        for expression in [
            "//svg/@viewBox",
            "//linearGradient/foreignObject//*[@preserveAspectRatio]",
            "//math/@definitionURL",
            "//item/pubDate",
            "//dc:Title | //rdf:RDF",
            "//div[@class='Big'][contains(., 'ID')]/text()",
            "translate(//h1, 'ABC', 'abc')",
            "//日本",
        ] {
            assert_eq!(names_with_spellings(expression), [], "{expression}");
        }
    }
}
