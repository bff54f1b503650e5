//! Processors that change one text at a time: `trim`, `collapse_whitespace`, `lowercase`,
//! `uppercase`, `prefix`, `suffix`, `length_limit`.

use webfill_values::{collapse_white_space, trim};

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence};
use crate::item::Item;
use crate::run::{EachText, OutOfTime, Processor, Run};

pub(crate) const TRIM: Entry = Entry {
    name: "trim",
    family: Family::Text,
    summary: "Removes white space and invisible marks, or the given characters, from both ends.",
    parameters: &[Parameter {
        name: "characters",
        kind: Kind::Text,
        presence: Presence::Optional,
        meaning: "the characters to remove instead",
    }],
    examples: &[
        Example {
            parameters: "{}",
            input: Input::Values(&["  Ada Lovelace\u{a0}\u{200b}\n"]),
            output: &["Ada Lovelace"],
        },
        Example {
            parameters: r#"{"characters": "()"}"#,
            input: Input::Values(&["(1815)"]),
            output: &["1815"],
        },
    ],
    build: |parameters, _| {
        let Some(characters) = parameters.optional_text("characters") else {
            return Ok(Box::new(EachText(|text: &str| Some(trim(text).to_owned()))));
        };
        let characters: Vec<char> = characters.chars().collect();
        Ok(Box::new(EachText(move |text: &str| {
            Some(text.trim_matches(characters.as_slice()).to_owned())
        })))
    },
};

pub(crate) const COLLAPSE_WHITESPACE: Entry = Entry {
    name: "collapse_whitespace",
    family: Family::Text,
    summary: "Replaces every run of white space by one space, and removes white space and invisible marks at both ends. In an element, a line break and the edge of a block are white space, too: `12 High St<br>Ely` becomes `12 High St Ely`. Hidden text is left out if there is other text, and struck-out text unless only it has digits.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&[" Ada\n    Lovelace "]),
        output: &["Ada Lovelace"],
    }],
    build: |_, _| Ok(Box::new(CollapseWhitespace)),
};

struct CollapseWhitespace;

impl Processor for CollapseWhitespace {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            if !output.push_text(collapse_white_space(&run.value_text(&item))) {
                break;
            }
        }
        output.finish()
    }
}

pub(crate) const LOWERCASE: Entry = Entry {
    name: "lowercase",
    family: Family::Text,
    summary: "Converts every letter to lower case, in any script.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["ÉCOLE"]),
        output: &["école"],
    }],
    build: |_, _| Ok(Box::new(EachText(|text: &str| Some(text.to_lowercase())))),
};

pub(crate) const UPPERCASE: Entry = Entry {
    name: "uppercase",
    family: Family::Text,
    summary: "Converts every letter to upper case, in any script.",
    parameters: &[],
    examples: &[Example {
        parameters: "{}",
        input: Input::Values(&["gb"]),
        output: &["GB"],
    }],
    build: |_, _| Ok(Box::new(EachText(|text: &str| Some(text.to_uppercase())))),
};

const TEXT_TO_ADD: &[Parameter] = &[Parameter {
    name: "text",
    kind: Kind::Text,
    presence: Presence::Required,
    meaning: "what to add",
}];

pub(crate) const PREFIX: Entry = Entry {
    name: "prefix",
    family: Family::Text,
    summary: "Adds a text before every value.",
    parameters: TEXT_TO_ADD,
    examples: &[Example {
        parameters: r#"{"text": "https://"}"#,
        input: Input::Values(&["ada.example"]),
        output: &["https://ada.example"],
    }],
    build: |parameters, _| {
        let prefix = parameters.text("text").to_owned();
        Ok(Box::new(EachText(move |text: &str| {
            Some(format!("{prefix}{text}"))
        })))
    },
};

pub(crate) const SUFFIX: Entry = Entry {
    name: "suffix",
    family: Family::Text,
    summary: "Adds a text after every value.",
    parameters: TEXT_TO_ADD,
    examples: &[Example {
        parameters: r#"{"text": " cm"}"#,
        input: Input::Values(&["165"]),
        output: &["165 cm"],
    }],
    build: |parameters, _| {
        let suffix = parameters.text("text").to_owned();
        Ok(Box::new(EachText(move |text: &str| {
            Some(format!("{text}{suffix}"))
        })))
    },
};

pub(crate) const LENGTH_LIMIT: Entry = Entry {
    name: "length_limit",
    family: Family::Text,
    summary: "Cuts texts that are longer than a number of characters.",
    parameters: &[
        Parameter {
            name: "characters",
            kind: Kind::Integer(1, 1_000_000),
            presence: Presence::Required,
            meaning: "maximum number of characters, including the ending",
        },
        Parameter {
            name: "ending",
            kind: Kind::Text,
            presence: Presence::Text(""),
            meaning: "the ending of a cut text",
        },
        Parameter {
            name: "whole_words",
            kind: Kind::Boolean,
            presence: Presence::Boolean(false),
            meaning: "cut between words where there is a space",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"characters": 5}"#,
            input: Input::Values(&["Lovelace", "Ada"]),
            output: &["Lovel", "Ada"],
        },
        Example {
            parameters: r#"{"characters": 15, "ending": "…", "whole_words": true}"#,
            input: Input::Values(&["the first programmer"]),
            output: &["the first…"],
        },
    ],
    build: |parameters, _| {
        let characters = parameters.size("characters").unwrap_or(1);
        let ending = parameters.text("ending").to_owned();
        let whole_words = parameters.boolean("whole_words");
        Ok(Box::new(EachText(move |text: &str| {
            Some(shorten(text, characters, &ending, whole_words))
        })))
    },
};

fn shorten(text: &str, characters: usize, ending: &str, whole_words: bool) -> String {
    if text.chars().nth(characters).is_none() {
        return text.to_owned();
    }
    let left = characters.saturating_sub(ending.chars().count());
    let end = text
        .char_indices()
        .nth(left)
        .map_or(text.len(), |(at, _)| at);
    let mut kept = &text[..end];
    let cuts_a_word = !text[end..].starts_with(char::is_whitespace);
    if whole_words
        && cuts_a_word
        && let Some(space) = kept.rfind(char::is_whitespace)
    {
        kept = &kept[..space];
    }
    let short = format!("{}{ending}", kept.trim_end());
    short.chars().take(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_never_exceeds_the_limit() {
        let text = "añb çdé fgh";
        for characters in 1..15 {
            for ending in ["", "…", " (more)"] {
                for whole_words in [false, true] {
                    let short = shorten(text, characters, ending, whole_words);
                    assert!(short.chars().count() <= characters, "{short:?}");
                }
            }
        }
        assert_eq!(shorten("one two", 3, "", true), "one");
    }
}
