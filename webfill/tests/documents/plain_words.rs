//! Tests that the documents, the help of the commands (a page of the reference) and the dashboard's templates read as
//! if they had been written in English: phrases that are typical of translations are no more frequent than in a
//! well-kept project of this kind. Rates are per 10,000 words of all these texts together, without code, headings and
//! the changelog.

use std::fs;
use std::path::Path;

use crate::markdown::code_spans;
use crate::repository::Repository;

/// The most words of a sentence that is easy to understand at first reading.
const LONG_SENTENCE: usize = 35;

#[derive(Debug, Default, PartialEq)]
struct Counts {
    words: usize,
    /// The number of occurrences of `tell`, `tells`, `told` or `telling`.
    tell: usize,
    /// The number of occurrences of `what` in the middle of a sentence.
    what: usize,
    /// The number of occurrences of `of which` and similar phrases.
    of_which: usize,
    go_on: usize,
    sentences: usize,
    long_sentences: usize,
}

impl Counts {
    fn add(&mut self, prose: &str) {
        for sentence in sentences(prose) {
            let words: Vec<&str> = words(&sentence).collect();
            if words.len() > 2 {
                self.sentences += 1;
                self.long_sentences += usize::from(words.len() > LONG_SENTENCE);
            }
            self.words += words.len();
            for (at, word) in words.iter().enumerate() {
                let next = words.get(at + 1).copied().unwrap_or_default();
                match *word {
                    "tell" | "tells" | "told" | "telling" => self.tell += 1,
                    "what" if at > 0 => self.what += 1,
                    "of" | "in" | "for" | "by" | "with" | "to" | "from" | "on"
                        if next == "which" =>
                    {
                        self.of_which += 1;
                    }
                    "go" | "goes" if next == "on" => self.go_on += 1,
                    _ => {}
                }
            }
        }
    }

    fn per_10_000(&self, count: usize) -> f64 {
        count as f64 * 10_000.0 / self.words as f64
    }
}

/// The text without code, headings, and the targets of links.
fn plain_prose(prose: &str) -> String {
    let mut text = String::with_capacity(prose.len());
    let mut end = 0;
    for span in code_spans(prose) {
        text.push_str(&prose[end..span.place.start]);
        text.push('x');
        end = span.place.end;
    }
    text.push_str(&prose[end..]);
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            plain.push_str(&rest[..at]);
            rest = rest[at..]
                .find(')')
                .map_or("", |close| &rest[at + close + 1..]);
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    plain
}

/// Splits prose into sentences. Table cells, list items and paragraphs are sentences of their own.
fn sentences(prose: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for line in plain_prose(prose).lines() {
        let item = line.trim_start();
        let begins =
            item.is_empty() || item.starts_with(['-', '*', '|']) || begins_with_number(item);
        if begins {
            sentences.push(String::new());
        }
        for piece in item.split_inclusive(['.', '?', '!', ':', '|', ';']) {
            let last = sentences.last_mut().expect("there is one");
            last.push_str(piece);
            if piece.ends_with(['.', '?', '!', ':', '|', ';']) {
                sentences.push(String::new());
            }
        }
        sentences.last_mut().expect("there is one").push(' ');
    }
    sentences
}

fn begins_with_number(item: &str) -> bool {
    let digits = item.trim_start_matches(|c: char| c.is_ascii_digit());
    digits.len() < item.len() && digits.starts_with(". ")
}

fn words(sentence: &str) -> impl Iterator<Item = &str> {
    let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.filter(|word| word.starts_with(|first: char| first.is_alphabetic()))
}

/// The text of a template, without its tags, expressions and statements.
fn template_prose(template: &str) -> String {
    let mut prose = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find(['<', '{']) {
        prose.push_str(&rest[..at]);
        rest = &rest[at..];
        let close = [("{{", "}}"), ("{%", "%}"), ("{#", "#}"), ("<", ">")]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
        let end = match close {
            Some((_, close)) => rest.find(close).map_or(rest.len(), |at| at + close.len()),
            None => 1,
        };
        // The text of an inline element is a part of its sentence. The text of any other element is a separate
        // sentence.
        let is_inline = [
            "<b>", "</b>", "<a ", "</a>", "<code", "</code>", "<em>", "</em>",
        ]
        .iter()
        .any(|tag| rest.starts_with(tag));
        prose.push_str(match close {
            Some(("{{", _)) => "x",
            Some(("{%" | "{#", _)) => " ",
            _ if is_inline => "",
            _ => "\n\n",
        });
        rest = &rest[end..];
    }
    prose + rest
}

#[test]
fn documents_and_templates_are_plain_english() {
    let mut counts = Counts::default();
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/dashboard/templates");
    let mut pages = 0;
    for entry in fs::read_dir(templates).expect("the folder of templates") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            counts.add(&template_prose(&fs::read_to_string(path).expect("a text")));
            pages += 1;
        }
    }
    assert!(pages > 10, "{pages} templates");
    for document in Repository::read().documents() {
        if document.path != "CHANGELOG.md" {
            counts.add(&document.prose());
        }
    }
    let long = counts.long_sentences as f64 / counts.sentences as f64;
    for (what, rate, most) in [
        ("tell, told", counts.per_10_000(counts.tell), 0.2),
        ("what", counts.per_10_000(counts.what), 2.0),
        ("of which", counts.per_10_000(counts.of_which), 2.0),
        ("go on", counts.per_10_000(counts.go_on), 0.2),
        ("% of sentences over 35 words", long * 100.0, 1.0),
    ] {
        assert!(
            rate <= most,
            "`{what}`: {rate:.1}, {most} allowed; {counts:?}"
        );
    }
}

#[test]
fn a_template_is_read_without_its_tags() {
    let prose =
        template_prose("<p class=\"a\">Found {{ n }} in <b>two</b> rows.</p>{% if x %}<li>Done");
    let counted = sentences(&prose);
    let texts: Vec<&str> = counted
        .iter()
        .map(|s| s.trim())
        .filter(|s| !s.is_empty())
        .collect();
    assert_eq!(texts, ["Found x in two rows.", "Done"]);
}

#[test]
fn turns_of_phrase_are_counted() {
    let mut counts = Counts::default();
    counts.add("What it is tells nobody. It goes on with what is left, in which `tell` [is](go on).\n\n# told\n");
    let found = (counts.tell, counts.what, counts.of_which, counts.go_on);
    assert_eq!(found, (1, 1, 1, 1), "{counts:?}");
    assert_eq!(counts.sentences, 2);
}
