//! Splits an XPath expression into tokens, each with its position, by the rules of XPath 1.0, section 3.7.

use super::error::{Fault, XPathError};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    /// A symbol such as `//` or `!=`, or an operator name (`and`, `or`, `mod`, `div`, `*`).
    Symbol(&'static str),
    Literal(String),
    Number(f64),
    /// A name, with its prefix if it has one, or a `*` that stands for a name.
    Name(String),
    /// A name before `(` that is not a node type.
    Function(String),
    /// `node`, `text`, `comment` or `processing-instruction` before `(`.
    NodeType(String),
    /// A name before `::`.
    Axis(String),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) word: Word,
    /// Where the token begins, in bytes.
    pub(crate) offset: usize,
}

/// The symbols of XPath. Each one comes before those that it begins with: `//` before `/`.
const SYMBOLS: [&str; 20] = [
    "::", "//", "!=", "<=", ">=", "..", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-", "=",
    "<", ">",
];
const OPERATOR_NAMES: [&str; 4] = ["and", "or", "mod", "div"];
const NODE_TYPES: [&str; 4] = ["comment", "text", "processing-instruction", "node"];

pub(crate) fn tokenize(expression: &str) -> Result<Vec<Token>, XPathError> {
    let mut lexer = Lexer {
        expression,
        offset: 0,
        tokens: Vec::new(),
    };
    loop {
        lexer.skip_space();
        if lexer.unread_text().is_empty() {
            return Ok(lexer.tokens);
        }
        let offset = lexer.offset;
        let word = lexer.read_word()?;
        lexer.tokens.push(Token { word, offset });
    }
}

struct Lexer<'e> {
    expression: &'e str,
    offset: usize,
    tokens: Vec<Token>,
}

impl<'e> Lexer<'e> {
    fn unread_text(&self) -> &'e str {
        &self.expression[self.offset..]
    }

    fn skip_space(&mut self) {
        let rest = self.unread_text();
        self.offset += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn read_word(&mut self) -> Result<Word, XPathError> {
        let rest = self.unread_text();
        let first = rest
            .chars()
            .next()
            .expect("the caller checked that something is left");
        let second_is_digit = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        match first {
            '"' | '\'' => self.read_literal(first),
            '0'..='9' => Ok(self.read_number()),
            '.' if second_is_digit => Ok(self.read_number()),
            '$' => self.read_variable(),
            '*' => {
                self.offset += 1;
                let operator = self.expects_operator();
                Ok(if operator {
                    Word::Symbol("*")
                } else {
                    Word::Name("*".to_owned())
                })
            }
            _ if is_name_start(first) => self.read_name(),
            _ => self.read_symbol(first),
        }
    }

    /// Whether an operator is expected here, so that `*` and names such as `div` are operators. The standard says: "If
    /// there is a preceding token and the preceding token is not one of @, ::, (, [, , or an Operator, then a * must be
    /// recognized as a MultiplyOperator and an NCName must be recognized as an OperatorName."
    fn expects_operator(&self) -> bool {
        match self.tokens.last().map(|token| &token.word) {
            None | Some(Word::Axis(_)) => false,
            Some(Word::Symbol(symbol)) => matches!(*symbol, ")" | "]" | "." | ".."),
            Some(_) => true,
        }
    }

    fn read_literal(&mut self, quote: char) -> Result<Word, XPathError> {
        let start = self.offset + 1;
        match self.expression[start..].find(quote) {
            Some(length) => {
                self.offset = start + length + 1;
                Ok(Word::Literal(
                    self.expression[start..start + length].to_owned(),
                ))
            }
            None => Err(self.fault(Fault::UnclosedLiteral)),
        }
    }

    fn read_number(&mut self) -> Word {
        let rest = self.unread_text();
        let whole = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut length = whole;
        if let Some(fraction) = rest[whole..].strip_prefix('.') {
            let digits = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            length += 1 + fraction.len() - digits.len();
        }
        self.offset += length;
        Word::Number(
            rest[..length]
                .parse()
                .expect("digits with at most one point are a number"),
        )
    }

    fn read_variable(&mut self) -> Result<Word, XPathError> {
        self.offset += 1;
        match self.read_qualified_name() {
            Some(name) => Ok(Word::Variable(name)),
            None => {
                self.offset -= 1;
                Err(self.fault(Fault::Unexpected("$".to_owned())))
            }
        }
    }

    fn read_name(&mut self) -> Result<Word, XPathError> {
        let offset = self.offset;
        let operator = self.expects_operator();
        let name = self
            .read_qualified_name()
            .expect("the caller saw a name begin");
        if operator {
            let known = OPERATOR_NAMES
                .into_iter()
                .find(|operator| *operator == name);
            return known.map(Word::Symbol).ok_or_else(|| {
                let fault = Fault::OperatorExpected(name);
                XPathError::new(self.expression, offset, fault)
            });
        }
        let after = self
            .unread_text()
            .trim_start_matches([' ', '\t', '\r', '\n']);
        Ok(if after.starts_with("::") {
            Word::Axis(name)
        } else if !after.starts_with('(') {
            Word::Name(name)
        } else if NODE_TYPES.contains(&&*name) {
            Word::NodeType(name)
        } else {
            Word::Function(name)
        })
    }

    /// Reads a name, `prefix:name` or `prefix:*`.
    fn read_qualified_name(&mut self) -> Option<String> {
        let start = self.offset;
        self.skip_plain_name()?;
        if self.unread_text().starts_with(':') && !self.unread_text().starts_with("::") {
            self.offset += 1;
            if self.unread_text().starts_with('*') {
                self.offset += 1;
            } else if self.skip_plain_name().is_none() {
                self.offset -= 1;
            }
        }
        Some(self.expression[start..self.offset].to_owned())
    }

    fn skip_plain_name(&mut self) -> Option<()> {
        let rest = self.unread_text();
        rest.chars().next().filter(|first| is_name_start(*first))?;
        self.offset += rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
        Some(())
    }

    fn read_symbol(&mut self, first: char) -> Result<Word, XPathError> {
        match SYMBOLS
            .into_iter()
            .find(|symbol| self.unread_text().starts_with(symbol))
        {
            Some(symbol) => {
                self.offset += symbol.len();
                Ok(Word::Symbol(symbol))
            }
            None => Err(self.fault(Fault::Unexpected(first.to_string()))),
        }
    }

    fn fault(&self, fault: Fault) -> XPathError {
        XPathError::new(self.expression, self.offset, fault)
    }
}

/// Whether a character may begin an XML 1.0 name. The colon is excluded. Some characters outside ASCII are accepted
/// although XML does not allow them.
fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn is_name_part(character: char) -> bool {
    is_name_start(character) || character.is_numeric() || matches!(character, '-' | '.' | '\u{b7}')
}
