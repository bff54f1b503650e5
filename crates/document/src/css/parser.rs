//! Parses a selector into compounds, such as `a.x[href]`, and the combinators between them, such as `>` (Selectors
//! level 4).

use super::cursor::{CssResult, Cursor, is_space};
use super::selector::{Combinator, Complex, Compound, Extract};
use super::{namespace, pseudo};
use crate::xpath::plan::{AttributeTest, LetterCase, Names, NodeTest, Relation, Test};

/// How deep selectors may be nested, as in `:not(:is(...))`.
const NESTING: usize = 16;

/// HTML attributes with values that are compared without regard to case (HTML Standard, "Case-sensitivity of
/// selectors").
const VALUES_IN_ANY_CASE: [&str; 46] = [
    "accept",
    "accept-charset",
    "align",
    "alink",
    "axis",
    "bgcolor",
    "charset",
    "checked",
    "clear",
    "codetype",
    "color",
    "compact",
    "declare",
    "defer",
    "dir",
    "direction",
    "disabled",
    "enctype",
    "face",
    "frame",
    "hreflang",
    "http-equiv",
    "lang",
    "language",
    "link",
    "media",
    "method",
    "multiple",
    "nohref",
    "noresize",
    "noshade",
    "nowrap",
    "readonly",
    "rel",
    "rev",
    "rules",
    "scope",
    "scrolling",
    "selected",
    "shape",
    "target",
    "text",
    "type",
    "valign",
    "valuetype",
    "vlink",
];

pub(crate) fn parse(selector: &str, names: &mut Names) -> CssResult<Vec<Complex>> {
    let mut parser = Parser {
        cursor: Cursor::new(selector)?,
        names,
        depth: 0,
        scoped: false,
    };
    let list = parser.parse_list(Leading::Allowed)?;
    match parser.cursor.peek() {
        None => Ok(list),
        Some(_) => Err(parser.cursor.expected_error("a combinator or `,`")),
    }
}

/// Whether a selector may begin with a combinator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leading {
    Allowed,
    Refused,
}

pub(crate) struct Parser<'s, 'n> {
    pub(crate) cursor: Cursor<'s>,
    pub(crate) names: &'n mut Names,
    depth: usize,
    /// Whether the compound that is being read contains `:scope`.
    pub(crate) scoped: bool,
}

impl Parser<'_, '_> {
    pub(crate) fn parse_list(&mut self, leading: Leading) -> CssResult<Vec<Complex>> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(self.cursor.fault("the selector is nested too deeply"));
        }
        let mut list = Vec::new();
        loop {
            list.push(self.parse_complex(leading)?);
            if !self.cursor.take(",") {
                self.depth -= 1;
                return Ok(list);
            }
        }
    }

    fn parse_complex(&mut self, leading: Leading) -> CssResult<Complex> {
        self.cursor.skip_space();
        let mut combinator = match self.parse_combinator(false) {
            Some(_) if leading == Leading::Refused => {
                return Err(self.cursor.fault("a combinator cannot come first here"));
            }
            first => first.unwrap_or(Combinator::Descendant),
        };
        let mut parts = Vec::new();
        loop {
            parts.push((combinator, self.parse_compound()?));
            if let Some(extract) = self.parse_extract()? {
                self.cursor.skip_space();
                return Ok(Complex {
                    parts,
                    extract: Some(extract),
                });
            }
            let spaced = self.cursor.skip_space();
            match self.parse_combinator(spaced) {
                Some(next) => combinator = next,
                None => {
                    return Ok(Complex {
                        parts,
                        extract: None,
                    });
                }
            }
        }
    }

    /// Reads the combinator at the cursor. White space alone is a combinator if a compound follows it.
    fn parse_combinator(&mut self, spaced: bool) -> Option<Combinator> {
        let symbols = [
            (">", Combinator::Child),
            ("+", Combinator::NextSibling),
            ("~", Combinator::LaterSibling),
        ];
        for (symbol, combinator) in symbols {
            if self.cursor.take(symbol) {
                self.cursor.skip_space();
                return Some(combinator);
            }
        }
        let follows = self
            .cursor
            .peek()
            .is_some_and(|next| !matches!(next, ',' | ')'));
        (spaced && follows).then_some(Combinator::Descendant)
    }

    fn parse_compound(&mut self) -> CssResult<Compound> {
        let outer = std::mem::replace(&mut self.scoped, false);
        let (element, local_name) = match self.cursor.peek() {
            Some('#' | '.' | '[' | ':') => (NodeTest::AnyName, None),
            _ => namespace::parse_element_test(self)?,
        };
        let mut tests: Vec<Test> = local_name.into_iter().collect();
        self.cursor.skip_comments();
        while let Some(test) = self.parse_simple_test()? {
            tests.push(test);
            self.cursor.skip_comments();
        }
        let scoped = self.scoped;
        self.scoped |= outer;
        Ok(Compound {
            element,
            tests,
            scoped,
        })
    }

    fn parse_simple_test(&mut self) -> CssResult<Option<Test>> {
        Ok(Some(match self.cursor.peek() {
            Some('#') => {
                self.cursor.take("#");
                let value = self.cursor.parse_name()?;
                self.attribute_test("id", Relation::Equals, value)
            }
            Some('.') => {
                self.cursor.take(".");
                let value = self.cursor.parse_name()?;
                self.attribute_test("class", Relation::HasWord, value)
            }
            Some('[') => self.parse_attribute()?,
            Some(':') if !self.cursor.unread_text().starts_with("::") => pseudo::parse(self)?,
            _ => return Ok(None),
        }))
    }

    fn attribute_test(&mut self, name: &str, relation: Relation, value: String) -> Test {
        let name = self.names.get_or_insert(name);
        Test::Attribute(AttributeTest {
            name,
            relation,
            value,
            case: LetterCase::Matters,
        })
    }

    fn parse_attribute(&mut self) -> CssResult<Test> {
        self.cursor.expect("[")?;
        self.cursor.skip_space();
        let names = namespace::parse_attribute_names(self)?;
        self.cursor.skip_space();
        if self.cursor.take("]") {
            let present =
                |name: &String| self.attribute_test(name, Relation::Present, String::new());
            return Ok(any_test(names.iter().map(present).collect()));
        }
        let relation = self.parse_relation()?;
        self.cursor.skip_space();
        let value = self.cursor.parse_string_or_name()?;
        self.cursor.skip_space();
        let case = self.parse_letter_case(&names[0]);
        self.cursor.skip_space();
        self.cursor.expect("]")?;
        // By the standard, these relations match nothing if the value is empty. `~=` also matches nothing if the value
        // contains a space.
        let never = match relation {
            Relation::HasWord => value.is_empty() || value.contains(is_space),
            Relation::StartsWith | Relation::EndsWith | Relation::Contains => value.is_empty(),
            _ => false,
        };
        if never {
            return Ok(Test::Always(false));
        }
        let test = |name: &String| {
            Test::Attribute(AttributeTest {
                name: self.names.get_or_insert(name),
                relation,
                value: value.clone(),
                case,
            })
        };
        Ok(any_test(names.iter().map(test).collect()))
    }

    /// Reads the flag `i` or `s` at the end of an attribute selector. Without a flag, returns the default for this
    /// attribute.
    fn parse_letter_case(&mut self, attribute: &str) -> LetterCase {
        let lower = attribute.to_ascii_lowercase();
        if self.cursor.take("i") || self.cursor.take("I") {
            LetterCase::Ignored
        } else if self.cursor.take("s") || self.cursor.take("S") {
            LetterCase::Matters
        } else if VALUES_IN_ANY_CASE.contains(&lower.as_str()) {
            LetterCase::IgnoredInHtml
        } else {
            LetterCase::Matters
        }
    }

    fn parse_relation(&mut self) -> CssResult<Relation> {
        let relations = [
            ("=", Relation::Equals),
            ("~=", Relation::HasWord),
            ("|=", Relation::HasPrefixWord),
            ("^=", Relation::StartsWith),
            ("$=", Relation::EndsWith),
            ("*=", Relation::Contains),
        ];
        let found = relations
            .into_iter()
            .find(|(symbol, _)| self.cursor.take(symbol));
        found.map(|(_, relation)| relation).ok_or_else(|| {
            self.cursor
                .expected_error("`]` or one of `=`, `~=`, `|=`, `^=`, `$=`, `*=`")
        })
    }

    /// Reads `::text` or `::attr(name)`, which may stand only at the end of a whole selector.
    fn parse_extract(&mut self) -> CssResult<Option<Extract>> {
        let start = self.cursor.offset;
        if !self.cursor.take("::") {
            return Ok(None);
        }
        if self.depth > 1 {
            return Err(self
                .cursor
                .fault_at(start, "a pseudo-element is not allowed here"));
        }
        let name = self.cursor.parse_name()?;
        match name.as_str() {
            "text" => Ok(Some(Extract::Text)),
            "attr" => {
                self.cursor.expect("(")?;
                self.cursor.skip_space();
                let attribute = self.cursor.parse_name()?;
                self.cursor.skip_space();
                self.cursor.expect(")")?;
                Ok(Some(Extract::Attribute(
                    self.names.get_or_insert(&attribute),
                )))
            }
            _ => {
                let reason = format!(
                    "unknown pseudo-element `::{name}`: expected `::text` or `::attr(name)`"
                );
                Err(self.cursor.fault_at(start, &reason))
            }
        }
    }
}

fn any_test(mut tests: Vec<Test>) -> Test {
    match tests.len() {
        1 => tests.remove(0),
        _ => Test::Or(tests),
    }
}
