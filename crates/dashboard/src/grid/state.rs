//! The states of a table's cells, with or without evidence.

use serde_json::{Value, json};

/// The state of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Filled,
    Known,
    Contradicted,
    Conflicting,
    NotOnPage,
    Unreachable,
    Robots,
    BelowPrecision,
    Refused,
    /// The cell is empty, and no page says why: its row has no link, or the run has not reached it.
    Empty,
    /// The cell has a value of the user that was not compared with any page.
    Given,
    /// The column of the cell is neither filled nor compared.
    Kept,
}

/// The names of a state: in files, in addresses, and for users.
struct Words {
    state: State,
    /// The byte that stands for the state in the index.
    byte: u8,
    /// The name of the state in the evidence and in addresses.
    name: &'static str,
    label: &'static str,
    /// A symbol that is shown in addition to the colour, because not everybody sees colours.
    sign: &'static str,
    meaning: &'static str,
}

const fn new_words(
    state: State,
    byte: u8,
    name: &'static str,
    label: &'static str,
    sign: &'static str,
    meaning: &'static str,
) -> Words {
    Words {
        state,
        byte,
        name,
        label,
        sign,
        meaning,
    }
}

const WORDS: [Words; 12] = [
    new_words(
        State::Filled,
        b'f',
        "filled",
        "filled",
        "+",
        "A gap that has a value now.",
    ),
    new_words(
        State::Known,
        b'k',
        "known",
        "confirmed",
        "✓",
        "The value of your table is on its page.",
    ),
    new_words(
        State::Contradicted,
        b'x',
        "contradicted",
        "contradicted",
        "≠",
        "The page has another value than your table.",
    ),
    new_words(
        State::Conflicting,
        b'c',
        "conflicting",
        "conflicting",
        "?",
        "A gap: several values were read, and none is certain enough.",
    ),
    new_words(
        State::BelowPrecision,
        b'b',
        "below precision",
        "below precision",
        "≈",
        "A gap: the value is not certain enough, or its page was not fetched because none was expected.",
    ),
    new_words(
        State::Refused,
        b'd',
        "refused",
        "does not fit",
        "!",
        "A gap: the value is certain enough and was not written, or other rows have its page, too.",
    ),
    new_words(
        State::NotOnPage,
        b'n',
        "not on the page",
        "not on the page",
        "∅",
        "A gap: nothing was read on its pages.",
    ),
    new_words(
        State::Unreachable,
        b'u',
        "page unreachable",
        "page unreachable",
        "×",
        "A gap: none of its pages could be fetched.",
    ),
    new_words(
        State::Robots,
        b'r',
        "refused by robots",
        "refused by robots",
        "⊘",
        "A gap: robots.txt disallows its pages.",
    ),
    new_words(
        State::Empty,
        b'e',
        "empty",
        "empty",
        "·",
        "A gap of which no page says anything: it has no link, or no run has judged it yet.",
    ),
    new_words(
        State::Given,
        b'g',
        "given",
        "not compared",
        "",
        "A value of your table that was compared with no page.",
    ),
    new_words(
        State::Kept,
        b'-',
        "kept",
        "kept",
        "",
        "The column is not filled.",
    ),
];

impl State {
    fn words(self) -> &'static Words {
        let found = WORDS.iter().find(|words| words.state == self);
        found.expect("every state has words")
    }

    /// All states, in the order of the legend.
    pub(crate) fn all() -> impl Iterator<Item = State> {
        WORDS.iter().map(|words| words.state)
    }

    pub(crate) fn byte(self) -> u8 {
        self.words().byte
    }

    pub(crate) fn from_byte(byte: u8) -> State {
        let found = WORDS.iter().find(|words| words.byte == byte);
        found.map_or(State::Kept, |words| words.state)
    }

    /// The state with this name in the evidence or in an address.
    pub(crate) fn from_name(name: &str) -> Option<State> {
        let found = WORDS.iter().find(|words| words.name == name);
        found.map(|words| words.state)
    }

    pub(crate) fn name(self) -> &'static str {
        self.words().name
    }

    /// Whether the index lists the rows that have a cell in this state.
    pub(crate) fn is_marked(self) -> bool {
        !matches!(self, State::Given | State::Kept)
    }

    /// The state as JSON, for templates.
    pub(crate) fn to_json(self) -> Value {
        let words = self.words();
        json!({
            "name": words.name,
            "class": words.name.replace(' ', "-"),
            "label": words.label,
            "sign": words.sign,
            "meaning": words.meaning,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_a_byte_a_name_and_a_sign_of_its_own() {
        for state in State::all() {
            assert_eq!(State::from_byte(state.byte()), state);
            assert_eq!(State::from_name(state.name()), Some(state));
            let is_signed = !state.words().sign.is_empty();
            assert_eq!(is_signed, state.is_marked(), "{}", state.name());
        }
        let signs: std::collections::BTreeSet<&str> =
            WORDS.iter().map(|words| words.sign).collect();
        assert_eq!(signs.len(), WORDS.len() - 1, "two have none");
    }
}
