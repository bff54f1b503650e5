//! Tests that the documents read as if they had been written in English: phrases that mark a translation are no more
//! frequent than in a well-kept project of this kind. Rates are per 10,000 words of all documents together, without
//! code, headings and the changelog.

use crate::markdown::code_spans;
use crate::repository::Repository;

/// A sentence with more words than this is hard to understand at first reading.
const LONG_SENTENCE: usize = 35;

#[derive(Debug, Default, PartialEq)]
struct Counts {
    words: usize,
    /// How often `tell`, `tells`, `told` or `telling` occurs.
    tell: usize,
    /// How often `what` occurs in the middle of a sentence.
    what: usize,
    /// How often `of which` and the like occur.
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
fn plain(prose: &str) -> String {
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
    for line in plain(prose).lines() {
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

#[test]
fn the_documents_are_plain_english() {
    let mut counts = Counts::default();
    for document in Repository::read().documents() {
        if document.path != "CHANGELOG.md" {
            counts.add(&document.prose());
        }
    }
    let long = counts.long_sentences as f64 / counts.sentences as f64;
    for (what, rate, most) in [
        ("tell, told", counts.per_10_000(counts.tell), 1.0),
        ("what", counts.per_10_000(counts.what), 10.0),
        ("of which", counts.per_10_000(counts.of_which), 2.5),
        ("go on", counts.per_10_000(counts.go_on), 0.5),
        ("% of sentences over 35 words", long * 100.0, 3.0),
    ] {
        assert!(
            rate <= most,
            "`{what}`: {rate:.1}, {most} allowed; {counts:?}"
        );
    }
}

#[test]
fn turns_of_phrase_are_counted() {
    let mut counts = Counts::default();
    counts.add("What it is tells nobody. It goes on with what is left, in which `tell` [is](go on).\n\n# told\n");
    let found = (counts.tell, counts.what, counts.of_which, counts.go_on);
    assert_eq!(found, (1, 1, 1, 1), "{counts:?}");
    assert_eq!(counts.sentences, 2);
}
