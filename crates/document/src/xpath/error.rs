//! Errors of XPath expressions, which are found when an expression is compiled.

use std::fmt;

use super::ast::{Axis, Function};

/// Why an XPath expression is invalid, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}, at offset {offset} of {expression:?}")]
pub struct XPathError {
    expression: String,
    offset: usize,
    fault: Fault,
}

impl XPathError {
    pub(crate) fn new(expression: &str, offset: usize, fault: Fault) -> Self {
        XPathError {
            expression: shorten(expression),
            offset,
            fault,
        }
    }

    /// The position of the fault, in bytes from the beginning of the expression.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The reason of the fault, without the expression.
    pub fn reason(&self) -> String {
        self.fault.to_string()
    }
}

fn shorten(expression: &str) -> String {
    const SHOWN_BYTES: usize = 200;
    if expression.len() <= SHOWN_BYTES {
        return expression.to_owned();
    }
    format!(
        "{}...",
        &expression[..expression.floor_char_boundary(SHOWN_BYTES)]
    )
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Empty,
    TooLong { bytes: usize, most: usize },
    TooDeep { most: usize },
    TooMany { most: usize },
    UnclosedLiteral,
    Unexpected(String),
    UnexpectedEnd,
    OperatorExpected(String),
    UnknownFunction(String),
    UnknownAxis(String),
    UnknownVariable(String),
    UnknownPrefix(String),
    Arguments(Function, usize),
    NotNodes(&'static str),
    Engine(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty => write!(f, "the expression is empty"),
            Fault::TooLong { bytes, most } => {
                write!(f, "the expression has {bytes} bytes; the limit is {most}")
            }
            Fault::TooDeep { most } => write!(f, "the expression nests deeper than {most} levels"),
            Fault::TooMany { most } => write!(f, "more than {most} operands in a row"),
            Fault::UnclosedLiteral => write!(f, "the string has no closing quote"),
            Fault::Unexpected(found) => write!(f, "unexpected `{found}`"),
            Fault::UnexpectedEnd => write!(f, "the expression ends too early"),
            Fault::OperatorExpected(found) => {
                write!(f, "expected an operator, found `{found}`")
            }
            Fault::UnknownFunction(name) => {
                write!(f, "unknown function `{name}()`")?;
                let known = Function::ALL.iter().map(|function| function.name());
                suggest(f, name, known)
            }
            Fault::UnknownAxis(name) => {
                write!(f, "unknown axis `{name}::`")?;
                suggest(f, name, Axis::NAMES.iter().map(|(name, _)| *name))
            }
            Fault::UnknownVariable(name) => {
                write!(
                    f,
                    "unknown variable `${name}`; expressions here have no variables"
                )
            }
            Fault::UnknownPrefix(prefix) => write!(
                f,
                "unknown prefix `{prefix}:`; write the name alone, or `*[local-name() = 'NAME']` for an element of XML \
                 that is not in the namespace of the root"
            ),
            Fault::Arguments(function, found) => {
                let (least, most) = function.arguments().into_inner();
                let name = function.name();
                match (least, most) {
                    _ if least == most => write!(f, "`{name}()` takes {least} arguments, ")?,
                    (_, 1000) => write!(f, "`{name}()` takes at least {least} arguments, ")?,
                    _ => write!(f, "`{name}()` takes {least} to {most} arguments, ")?,
                }
                write!(f, "{found} given")
            }
            Fault::NotNodes(place) => write!(f, "{place} must be a path or another set of nodes"),
            Fault::Engine(message) => write!(f, "the XPath engine rejects it: {message}"),
        }
    }
}

/// Adds the known word that is most similar to the wrong one, if there is one.
fn suggest(
    f: &mut fmt::Formatter<'_>,
    wrong: &str,
    known: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    let nearest = known
        .map(|word| (strsim::jaro_winkler(wrong, word), word))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, word)) if likeness > 0.75 => write!(f, ", did you mean `{word}`?"),
        _ => Ok(()),
    }
}
