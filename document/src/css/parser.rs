//! Parses the text of a selector into compounds and combinators (Selectors level 4).

use super::cursor::{Cursor, Read};
use super::pseudo;
use crate::xpath::plan::{AttributeTest, Names, NodeTest, Relation, Test};

/// The greatest nesting of selectors, as in `:not(:is(...))`.
const NESTING: usize = 16;

/// A complex selector: compounds, each with the combinator before it.
pub(crate) struct Complex {
    pub(crate) parts: Vec<(Combinator, Compound)>,
    pub(crate) extract: Option<Extract>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combinator {
    Descendant,
    Child,
    NextSibling,
    LaterSibling,
}

pub(crate) struct Compound {
    pub(crate) element: NodeTest,
    pub(crate) tests: Vec<Test>,
}

/// What a pseudo-element takes from the matching elements.
pub(crate) enum Extract {
    Text,
    Attribute(usize),
}

pub(crate) fn parse(selector: &str, names: &mut Names) -> Read<Vec<Complex>> {
    let mut parser = Parser {
        cursor: Cursor::new(selector)?,
        names,
        depth: 0,
    };
    let list = parser.list(Leading::Allowed)?;
    match parser.cursor.peek() {
        None => Ok(list),
        Some(_) => Err(parser.cursor.unexpected("a combinator or `,`")),
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
}

impl Parser<'_, '_> {
    pub(crate) fn list(&mut self, leading: Leading) -> Read<Vec<Complex>> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(self.cursor.fault("the selector nests too deep"));
        }
        let mut list = Vec::new();
        loop {
            list.push(self.complex(leading)?);
            if !self.cursor.take(",") {
                self.depth -= 1;
                return Ok(list);
            }
        }
    }

    fn complex(&mut self, leading: Leading) -> Read<Complex> {
        self.cursor.skip_space();
        let mut combinator = match self.combinator(false) {
            Some(_) if leading == Leading::Refused => {
                return Err(self.cursor.fault("a combinator cannot stand first here"));
            }
            first => first.unwrap_or(Combinator::Descendant),
        };
        let mut parts = Vec::new();
        loop {
            parts.push((combinator, self.compound()?));
            if let Some(extract) = self.extract()? {
                self.cursor.skip_space();
                return Ok(Complex {
                    parts,
                    extract: Some(extract),
                });
            }
            let spaced = self.cursor.skip_space();
            match self.combinator(spaced) {
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

    /// The combinator at the cursor; white space alone is one if a compound follows.
    fn combinator(&mut self, spaced: bool) -> Option<Combinator> {
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

    fn compound(&mut self) -> Read<Compound> {
        let start = self.cursor.offset;
        let element = match self.cursor.peek() {
            Some('*') => {
                self.cursor.take("*");
                NodeTest::AnyName
            }
            Some('#' | '.' | '[' | ':') => NodeTest::AnyName,
            _ => {
                let name = self.cursor.name()?;
                NodeTest::Name(self.names.place_of(&name))
            }
        };
        if self.cursor.peek() == Some('|') {
            let reason = "elements have no namespace here, write the name alone";
            return Err(self.cursor.fault_at(start, reason));
        }
        let mut tests = Vec::new();
        while let Some(test) = self.simple()? {
            tests.push(test);
        }
        Ok(Compound { element, tests })
    }

    fn simple(&mut self) -> Read<Option<Test>> {
        Ok(Some(match self.cursor.peek() {
            Some('#') => {
                self.cursor.take("#");
                let value = self.cursor.name()?;
                self.attribute_test("id", Relation::Equals, value)
            }
            Some('.') => {
                self.cursor.take(".");
                let value = self.cursor.name()?;
                self.attribute_test("class", Relation::HasWord, value)
            }
            Some('[') => self.attribute()?,
            Some(':') if !self.cursor.rest().starts_with("::") => pseudo::parse(self)?,
            _ => return Ok(None),
        }))
    }

    fn attribute_test(&mut self, name: &str, relation: Relation, value: String) -> Test {
        let name = self.names.place_of(name);
        Test::Attribute(AttributeTest {
            name,
            relation,
            value,
            ignore_case: false,
        })
    }

    fn attribute(&mut self) -> Read<Test> {
        self.cursor.expect("[")?;
        self.cursor.skip_space();
        let name = self.cursor.name()?;
        self.cursor.skip_space();
        if self.cursor.take("]") {
            return Ok(self.attribute_test(&name, Relation::Present, String::new()));
        }
        let relation = self.relation()?;
        self.cursor.skip_space();
        let value = self.cursor.string_or_name()?;
        self.cursor.skip_space();
        let ignore_case = self.cursor.take("i") || self.cursor.take("I");
        if !ignore_case {
            let _ = self.cursor.take("s") || self.cursor.take("S");
        }
        self.cursor.skip_space();
        self.cursor.expect("]")?;
        // By the standard these match nothing when the value is empty, and `~=` also when it has
        // a space in it.
        let never = match relation {
            Relation::HasWord => value.is_empty() || value.contains(char::is_whitespace),
            Relation::StartsWith | Relation::EndsWith | Relation::Contains => value.is_empty(),
            _ => false,
        };
        if never {
            return Ok(Test::Always(false));
        }
        let name = self.names.place_of(&name);
        Ok(Test::Attribute(AttributeTest {
            name,
            relation,
            value,
            ignore_case,
        }))
    }

    fn relation(&mut self) -> Read<Relation> {
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
                .unexpected("`]` or one of `=`, `~=`, `|=`, `^=`, `$=`, `*=`")
        })
    }

    /// `::text` or `::attr(name)`; only at the end of a whole selector.
    fn extract(&mut self) -> Read<Option<Extract>> {
        let start = self.cursor.offset;
        if !self.cursor.take("::") {
            return Ok(None);
        }
        if self.depth > 1 {
            return Err(self
                .cursor
                .fault_at(start, "a pseudo-element cannot stand here"));
        }
        let name = self.cursor.name()?;
        match name.as_str() {
            "text" => Ok(Some(Extract::Text)),
            "attr" => {
                self.cursor.expect("(")?;
                self.cursor.skip_space();
                let attribute = self.cursor.name()?;
                self.cursor.skip_space();
                self.cursor.expect(")")?;
                Ok(Some(Extract::Attribute(self.names.place_of(&attribute))))
            }
            _ => {
                let reason = format!(
                    "unknown pseudo-element `::{name}`, known are `::text` and `::attr(name)`"
                );
                Err(self.cursor.fault_at(start, &reason))
            }
        }
    }
}
