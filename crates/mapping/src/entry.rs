//! The entry of a processor in the [catalogue](crate::catalogue): its name, parameters and examples, and the function
//! that builds it.

use crate::parameters::Parameters;
use crate::run::Processor;
use crate::selectors::Selectors;

/// The entry of a processor.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    /// A sentence for the manual and for editors.
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) examples: &'static [Example],
    pub(crate) build: Build,
}

/// Builds a processor from parameters whose names and types have been checked.
pub(crate) type Build =
    fn(&Parameters<'_>, &mut Selectors) -> Result<Box<dyn Processor>, Vec<Refusal>>;

/// The manual's heading for a processor.
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
    /// Half a sentence for the manual and for editors.
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
    /// The number or the name of a group of a regular expression.
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

/// An example of a processor. A test runs it.
pub(crate) struct Example {
    /// The parameters, as JSON.
    pub(crate) parameters: &'static str,
    pub(crate) input: Input,
    pub(crate) output: &'static [&'static str],
}

/// The input of an example.
pub(crate) enum Input {
    /// An HTML page, for a processor that begins a chain.
    Page(&'static str),
    /// The values that the previous processor returned.
    Values(&'static [&'static str]),
}

/// An invalid value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The parameter, such as `expression` or `formats[1]`; empty if the fault is in the parameters together.
    pub(crate) parameter: String,
    pub(crate) message: String,
}

pub(crate) fn refusal(parameter: impl Into<String>, message: impl Into<String>) -> Vec<Refusal> {
    vec![Refusal {
        parameter: parameter.into(),
        message: message.into(),
    }]
}
