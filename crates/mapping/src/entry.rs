//! The entry of a processor in the [catalogue](crate::catalogue): its name, parameters and examples, and the function
//! that builds it.

use crate::parameters::Parameters;
use crate::run::Processor;
use crate::selectors::Selectors;

/// The entry of a processor.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    /// A sentence that explains the processor, for the manual and for editors.
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) examples: &'static [Example],
    pub(crate) build: Build,
}

/// Builds a processor from parameters whose names and types have been checked.
pub(crate) type Build =
    fn(&Parameters<'_>, &mut Selectors) -> Result<Box<dyn Processor>, Vec<Refusal>>;

/// The group that a processor belongs to in the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Find,
    Text,
    Convert,
    List,
}

impl Family {
    pub(crate) const ALL: &'static [(Family, &'static str)] = &[
        (Family::Find, "Find values in the page"),
        (Family::Text, "Change texts"),
        (Family::Convert, "Read numbers, dates, links"),
        (Family::List, "Choose among values"),
    ];
}

/// A parameter of a processor.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
    /// Explains the parameter in half a sentence, for the manual and for editors.
    pub(crate) meaning: &'static str,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// A whole number within these bounds.
    Integer(i64, i64),
    Boolean,
    TextList,
    /// An object whose values are texts.
    TextTable,
    Choice(&'static [&'static str]),
    /// A group of a regular expression, by its number or its name.
    Group,
}

/// Whether a parameter is required, and its default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Presence {
    Required,
    Optional,
    Text(&'static str),
    Boolean(bool),
}

/// An example of a processor for the manual. A test checks its output.
pub(crate) struct Example {
    /// The parameters, as JSON.
    pub(crate) parameters: &'static str,
    pub(crate) input: Input,
    pub(crate) output: &'static [&'static str],
}

/// The input of the processor in an example.
pub(crate) enum Input {
    /// An HTML page, for a processor that begins a chain.
    Page(&'static str),
    /// The values that the previous processor of the chain returned.
    Values(&'static [&'static str]),
}

/// Why the value of a parameter is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The path of the parameter, such as `expression` or `formats[1]`; empty if several parameters do not fit
    /// together.
    pub(crate) parameter: String,
    pub(crate) message: String,
}

pub(crate) fn refusal(parameter: impl Into<String>, message: impl Into<String>) -> Vec<Refusal> {
    vec![Refusal {
        parameter: parameter.into(),
        message: message.into(),
    }]
}
