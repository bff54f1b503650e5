//! The path of a chain to its values, cut into comparable pieces: `li.rating a::attr(href)` leads over `li.rating` and
//! `a`, and reads an attribute.

use serde_json::{Value, json};

use super::pieces::{split_css, split_jsonpath, split_xpath};
use crate::mapping::{Chain, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Css,
    XPath,
    JsonPath,
    /// Objects of a type in JSON-LD. The path within them is [`Language::JsonPath`].
    JsonLd,
}

/// A piece of a path: an element or a JSON member, and how it is reached from the previous piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) language: Language,
    /// How the piece is joined to the previous one: a CSS combinator, or the slashes of an XPath.
    pub(super) joint: &'static str,
    pub(super) text: String,
}

/// The path of a chain to its values, cut into comparable pieces.
pub(super) struct ChainPath {
    pub(super) pieces: Vec<Piece>,
    /// The attribute or text that is read from the last piece; empty if the element itself is the value.
    end: String,
    /// The processors of the chain that follow those that search the page.
    rest: Vec<Value>,
}

impl ChainPath {
    pub(super) fn from_chain(chain: &Chain) -> Option<ChainPath> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut end = String::new();
        let mut steps = chain.steps.iter().peekable();
        while end.is_empty()
            && let Some(step) = steps.peek()
        {
            if step.name == "cell" {
                add_row(&mut pieces);
                break;
            }
            let Some((more, takes)) = split_step(step, pieces.is_empty()) else {
                break;
            };
            pieces.extend(more);
            end = takes;
            steps.next();
        }
        let rest = steps.map(processor_json).collect();
        (!pieces.is_empty()).then_some(ChainPath { pieces, end, rest })
    }

    pub(super) fn begins_with(&self, prefix: &[Piece]) -> bool {
        self.pieces.starts_with(prefix)
    }

    /// Whether the values form a list of their own within each element of the prefix, such as the tags of each item.
    pub(super) fn is_list_below(&self, prefix: &[Piece]) -> bool {
        let tail = &self.pieces[prefix.len()..];
        let Some((last, before)) = tail.split_last() else {
            return false;
        };
        before.iter().any(Piece::is_list) || last.repeats()
    }

    /// The processors that make a field of a row read the same values. The rows are the elements that the prefix
    /// selects.
    pub(super) fn processors_below(&self, prefix: &[Piece]) -> Vec<Value> {
        let mut processors = pieces_to_processors(
            &self.pieces[prefix.len()..],
            &self.end,
            prefix.last(),
            false,
        );
        processors.extend(self.rest.iter().cloned());
        processors
    }

    /// The processors that read the path's values within a row, whatever selects the rows. `None` if the path begins at
    /// the root of the page, or leads into JSON.
    pub(super) fn processors_in_row(&self) -> Option<Vec<Value>> {
        let first = self.pieces.first()?;
        let is_anywhere = match first.language {
            Language::Css => true,
            Language::XPath => first.joint == "//",
            Language::JsonPath | Language::JsonLd => false,
        };
        is_anywhere.then(|| {
            let mut processors = pieces_to_processors(&self.pieces, &self.end, None, false);
            processors.extend(self.rest.iter().cloned());
            processors
        })
    }
}

/// The processors that select the elements at the end of a prefix.
pub(super) fn select_processors(prefix: &[Piece]) -> Vec<Value> {
    pieces_to_processors(prefix, "", None, true)
}

/// Adds a piece for the row of a table cell, unless the last piece is the row.
fn add_row(pieces: &mut Vec<Piece>) {
    if pieces.last().and_then(Piece::tag) != Some("tr") {
        pieces.push(Piece::new(Language::Css, " ", "tr"));
    }
}

/// The pieces of a step that searches the page, and the attribute or text that it reads at its end.
fn split_step(step: &Step, is_first: bool) -> Option<(Vec<Piece>, String)> {
    let parameter = |name: &str| step.parameters.get(name).and_then(Value::as_str);
    match step.name {
        "css" => split_css(parameter("selector")?),
        "xpath" => split_xpath(parameter("expression")?, is_first),
        "jsonpath" => split_jsonpath(parameter("expression")?),
        "json_ld" if is_first => {
            let kind = parameter("type")?;
            let mut pieces = vec![Piece::new(Language::JsonLd, "", kind)];
            if let Some(expression) = parameter("expression") {
                pieces.extend(split_jsonpath(expression)?.0);
            }
            Some((pieces, String::new()))
        }
        _ => None,
    }
}

fn processor_json(step: &Step) -> Value {
    match step.parameters.is_empty() {
        true => json!({"type": step.name}),
        false => json!({"type": step.name, "parameters": step.parameters}),
    }
}

/// Converts pieces to processors, one for each run of pieces in the same language. `before` is the piece in front of
/// the first one.
fn pieces_to_processors(
    pieces: &[Piece],
    end: &str,
    before: Option<&Piece>,
    from_page: bool,
) -> Vec<Value> {
    let mut processors = Vec::new();
    let mut is_at_page = from_page;
    let runs = pieces.chunk_by(|one, next| one.can_join(next));
    let runs: Vec<&[Piece]> = runs.collect();
    for (index, run) in runs.iter().enumerate() {
        let end = if index + 1 == runs.len() { end } else { "" };
        processors.push(run_to_processor(run, end, is_at_page));
        is_at_page = false;
    }
    let is_json = |piece: &Piece| matches!(piece.language, Language::JsonPath | Language::JsonLd);
    if pieces.is_empty() {
        processors.push(match before {
            Some(piece) if is_json(piece) => {
                json!({"type": "jsonpath", "parameters": {"expression": "$"}})
            }
            _ => self_processor(end),
        });
    }
    processors
}

/// The processor that reads the row element itself, or an attribute or the text of it.
fn self_processor(end: &str) -> Value {
    let attribute = end
        .strip_prefix("::attr(")
        .and_then(|end| end.strip_suffix(')'));
    let expression = match (attribute, end) {
        (Some(name), _) => format!("./@{}", name.trim()),
        (None, "") => ".".to_owned(),
        (None, "::text") => "./text()".to_owned(),
        (None, end) => format!(".{end}"),
    };
    json!({"type": "xpath", "parameters": {"expression": expression}})
}

fn run_to_processor(run: &[Piece], end: &str, is_at_page: bool) -> Value {
    let joined = |pieces: &[Piece], gap: &str| -> String {
        let texts = pieces
            .iter()
            .enumerate()
            .map(|(index, piece)| match (piece.joint, index) {
                (" ", 0) => piece.text.clone(),
                (" ", _) => format!(" {}", piece.text),
                (joint, _) => format!("{gap}{joint}{gap}{}", piece.text),
            });
        texts.collect()
    };
    match run[0].language {
        Language::Css => {
            let scope = match run[0].joint {
                " " => "",
                _ => ":scope",
            };
            let selector = format!("{scope}{}{end}", joined(run, " "));
            json!({"type": "css", "parameters": {"selector": selector}})
        }
        Language::XPath => {
            let dot = if is_at_page { "" } else { "." };
            let expression = format!("{dot}{}{end}", joined(run, ""));
            json!({"type": "xpath", "parameters": {"expression": expression}})
        }
        Language::JsonPath => {
            let expression = format!("${}", joined(run, ""));
            json!({"type": "jsonpath", "parameters": {"expression": expression}})
        }
        Language::JsonLd => {
            let kind = &run[0].text;
            match run.len() {
                1 => json!({"type": "json_ld", "parameters": {"type": kind}}),
                _ => {
                    let expression = format!("${}", joined(&run[1..], ""));
                    json!({"type": "json_ld", "parameters": {"type": kind, "expression": expression}})
                }
            }
        }
    }
}

impl Piece {
    pub(super) fn new(language: Language, joint: &'static str, text: &str) -> Piece {
        Piece {
            language,
            joint,
            text: text.to_owned(),
        }
    }

    /// Whether one processor can select this piece and the next one.
    fn can_join(&self, next: &Piece) -> bool {
        self.language == next.language
            || (self.language == Language::JsonLd && next.language == Language::JsonPath)
    }

    /// The name of the element that the piece selects, such as `li` for `li.rating`.
    pub(super) fn tag(&self) -> Option<&str> {
        let is_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let end = self.text.find(|c| !is_name(c)).unwrap_or(self.text.len());
        let is_element = matches!(self.language, Language::Css | Language::XPath);
        (is_element && end > 0).then(|| &self.text[..end])
    }

    /// Whether the form of the piece shows that it selects each entry of a list.
    pub(super) fn repeats(&self) -> bool {
        match self.language {
            Language::JsonLd => true,
            Language::JsonPath => {
                let text = &self.text;
                let is_slice = text.contains(':') && !text.contains(['\'', '"']);
                text == "[*]" || text == ".*" || text.starts_with("[?") || is_slice
            }
            Language::Css | Language::XPath => {
                !self.picks_one()
                    && (self.tag().is_some_and(|tag| ROW_TAGS.contains(&tag))
                        || self.words().any(|word| ENTRY_WORDS.contains(&word)))
            }
        }
    }

    /// Whether the element or the name of the piece shows that it is a list, such as `ul` or `tags`.
    fn is_list(&self) -> bool {
        let is_plural = |word: &str| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
        match self.language {
            Language::JsonPath => self.repeats(),
            _ => {
                self.tag().is_some_and(|tag| LIST_TAGS.contains(&tag))
                    || self.words().any(is_plural)
            }
        }
    }

    /// Whether the piece selects one of several similar elements, by an id, a number or a content.
    fn picks_one(&self) -> bool {
        match self.language {
            Language::Css => {
                let text = without_negations(&self.text);
                let counts = [":nth-child(", ":nth-of-type(", ":nth-last-child("];
                let numbered = counts.iter().any(|count| {
                    let rest = text.split_once(count).map(|(_, rest)| rest);
                    let number = rest.and_then(|rest| rest.split_once(')'));
                    number.is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok())
                });
                let ends = [
                    ":first-",
                    ":last-",
                    ":only-",
                    "#",
                    "[id",
                    ":has(",
                    ":contains(",
                ];
                numbered || ends.iter().any(|end| text.contains(end))
            }
            _ => {
                let predicates = self.text.split('[').skip(1);
                let is_open = |predicate: &str| {
                    predicate.contains("@class") && !predicate.contains("text()")
                        || predicate.starts_with("position()>")
                        || predicate.starts_with("position() >")
                };
                predicates.into_iter().any(|predicate| !is_open(predicate))
            }
        }
    }

    /// The words in the piece's class names, or in the quoted texts of its predicates.
    fn words(&self) -> impl Iterator<Item = &str> {
        let named = match self.language {
            Language::Css => self.text.split('.').skip(1).collect::<Vec<_>>(),
            _ => self.text.split(['\'', '"']).skip(1).step_by(2).collect(),
        };
        let words = named.into_iter().map(|name| match self.language {
            Language::Css => &name[..name.find([':', '[', '#']).unwrap_or(name.len())],
            _ => name,
        });
        words.flat_map(|name| name.split(['-', '_', ' ']))
    }
}

/// Elements that are nearly always entries of a list.
const ROW_TAGS: [&str; 4] = ["tr", "li", "item", "entry"];
const LIST_TAGS: [&str; 5] = ["ul", "ol", "li", "dl", "table"];
/// Words that often name the entries of a list, and hardly ever a whole page.
const ENTRY_WORDS: [&str; 9] = [
    "item", "card", "result", "rating", "review", "comment", "hit", "teaser", "tile",
];

fn without_negations(selector: &str) -> String {
    let mut rest = selector;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(":not(") {
        kept.push_str(before);
        let mut depth = 1;
        let end = after.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    kept.push_str(rest);
    kept
}
