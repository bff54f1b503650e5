//! `regex` (extracts parts of texts) and `filter` (keeps or drops whole values), both by a regular expression.

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, Refusal, refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::parameters::Parameters;
use crate::pattern::Pattern;
use crate::processors::compile_pattern;
use crate::reading::Reading;
use crate::run::{OutOfTime, Processor, Run};

pub(crate) const REGEX: Entry = Entry {
    name: "regex",
    family: Family::Find,
    summary: "Yields every match of a regular expression in every value, or one group of each match. First in a chain it searches the source of the page.",
    parameters: &[
        Parameter {
            name: "pattern",
            kind: Kind::Text,
            presence: Presence::Required,
            meaning: "the regular expression; (?i) in front ignores case, look-around is allowed",
        },
        Parameter {
            name: "group",
            kind: Kind::Group,
            presence: Presence::Optional,
            meaning: "number or name of the group to take; by default group 1 if there is one, else the whole match, which is 0",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"pattern": "born in (\\d{4})"}"#,
            input: Input::Values(&["born in 1815, wed in 1835"]),
            output: &["1815"],
        },
        Example {
            parameters: r#"{"pattern": "\\d{4}"}"#,
            input: Input::Values(&["born in 1815, wed in 1835"]),
            output: &["1815", "1835"],
        },
        Example {
            parameters: r#"{"pattern": "(?P<key>\\w+)=(?P<value>\\w+)", "group": "value"}"#,
            input: Input::Values(&["x=1&y=2"]),
            output: &["1", "2"],
        },
    ],
    build: |parameters, _| {
        let pattern = compile_pattern("pattern", parameters.text("pattern"))?;
        let group = parse_group(parameters, &pattern)?;
        Ok(Box::new(Matches { pattern, group }))
    },
};

fn parse_group(parameters: &Parameters<'_>, pattern: &Pattern) -> Result<usize, Vec<Refusal>> {
    let last = pattern.group_count() - 1;
    if !parameters.is_given("group") {
        return Ok(last.min(1));
    }
    let (chosen, shown) = match parameters.optional_text("group") {
        Some(name) => (pattern.group_index(name), quote(name)),
        None => {
            let number = parameters.size("group").unwrap_or(usize::MAX);
            (
                Some(number).filter(|&number| number <= last),
                number.to_string(),
            )
        }
    };
    chosen.ok_or_else(|| {
        let names: Vec<&str> = pattern.group_names().collect();
        let known = match names.is_empty() {
            true => format!("its groups are 0 to {last}"),
            false => format!("its groups are 0 to {last}, named are {}", names.join(", ")),
        };
        refusal(
            "group",
            format!("the regular expression has no group {shown}; {known}"),
        )
    })
}

struct Matches {
    pattern: Pattern,
    group: usize,
}

impl Processor for Matches {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            let mut goes_on = true;
            let searched = self.pattern.for_each_match(&run.text(&item), |groups| {
                if let Some(found) = groups.get(self.group) {
                    goes_on = output.push_text(found.to_owned());
                }
                goes_on = goes_on && run.check_time().is_ok();
                goes_on
            });
            if searched.is_err() {
                run.warn(
                    "regex: the expression took too many steps, the rest of a value was skipped",
                );
            }
            if !goes_on {
                break;
            }
        }
        run.check_time()?;
        output.finish()
    }

    fn reading<'p>(&self, input: &[Item<'p>], run: &Run<'p>) -> Reading {
        let texts: Vec<_> = input.iter().map(|item| run.text(item)).collect();
        Reading::from_pattern(&self.pattern, &texts)
    }
}

pub(crate) const FILTER: Entry = Entry {
    name: "filter",
    family: Family::List,
    summary: "Keeps the values in which a regular expression is found, or the others.",
    parameters: &[
        Parameter {
            name: "pattern",
            kind: Kind::Text,
            presence: Presence::Required,
            meaning: "the regular expression; it may match anywhere, so anchor it with ^ and $ to test the whole value",
        },
        Parameter {
            name: "invert",
            kind: Kind::Boolean,
            presence: Presence::Boolean(false),
            meaning: "keep the values in which it is not found",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"pattern": "^https?:"}"#,
            input: Input::Values(&["https://ada.example/", "mailto:ada@ada.example"]),
            output: &["https://ada.example/"],
        },
        Example {
            parameters: r#"{"pattern": "(?i)unknown|n/a", "invert": true}"#,
            input: Input::Values(&["London", "N/A"]),
            output: &["London"],
        },
    ],
    build: |parameters, _| {
        Ok(Box::new(Filter {
            pattern: compile_pattern("pattern", parameters.text("pattern"))?,
            invert: parameters.boolean("invert"),
        }))
    },
};

struct Filter {
    pattern: Pattern,
    invert: bool,
}

impl Processor for Filter {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        run.filter(items, |text| match self.pattern.is_match(text) {
            Ok(found) => found != self.invert,
            Err(_) => {
                run.warn("filter: the expression took too many steps, a value was dropped");
                false
            }
        })
    }
}
