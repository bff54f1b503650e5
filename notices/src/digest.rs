//! Notices of what is new: JSON for programs, and with it a subject and a text for people. Both are bounded,
//! and say how much was left out.

use serde_json::{Value, json};
use webfill_api::{About, NoticeTime, Watch};

use crate::told::Event;

/// So many things a notice holds at most.
const MOST_EVENTS: usize = 500;

/// So many bytes of JSON the things of a notice have at most, all together.
const MOST_BYTES: usize = 256 << 10;

/// So many things of one kind are told to people.
const MOST_LINES: usize = 50;

/// So many characters a thing has at most, for people.
const MOST_CHARS: usize = 2_000;

/// The parts of a text, in their order.
const PARTS: [(About, &str); 5] = [
    (About::Delivery, "Notices"),
    (About::Blindness, "Blindness"),
    (About::Health, "Extractions"),
    (About::Changes, "Changes"),
    (About::Runs, "Runs"),
];

/// Makes a notice; `None` if nothing of this is told to somebody who wants to know of `about`.
pub fn compose(
    watch: &Watch,
    when: NoticeTime,
    about: &[About],
    events: &[Event],
    now_ms: i64,
) -> Option<Value> {
    let is_wanted = |event: &&Event| event.about == About::Delivery || about.contains(&event.about);
    let wanted: Vec<&Event> = events.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return None;
    }
    let mut bytes = 0;
    let fits = |event: &&&Event| {
        bytes += event.detail.to_string().len() + event.line.len();
        bytes <= MOST_BYTES
    };
    let told: Vec<Value> = wanted
        .iter()
        .filter(|event| event.is_listed())
        .take(MOST_EVENTS)
        .take_while(fits)
        .map(told)
        .collect();
    Some(json!({
        "watch": watch.name,
        "app": watch.app,
        "when": when,
        "at": now_ms as f64 / 1_000.0,
        "subject": subject(watch, &wanted),
        "text": text(&wanted),
        "more": things(&wanted) - told.len(),
        "events": told,
    }))
}

fn things(events: &[&Event]) -> usize {
    events.iter().map(|event| event.things()).sum()
}

fn told(event: &&Event) -> Value {
    json!({
        "about": event.about,
        "event": event.name,
        "line": cut(&event.line),
        "detail": event.detail,
    })
}

/// One line without control characters, whatever pages say of themselves.
fn subject(watch: &Watch, events: &[&Event]) -> String {
    let changes = events.iter().filter(|event| event.about == About::Changes);
    let changes: usize = changes.map(|event| event.things()).sum();
    let mut parts = Vec::new();
    for (about, _) in PARTS {
        let first = events.iter().find(|event| event.about == about);
        let Some(first) = first else { continue };
        match about {
            About::Changes => parts.push(match changes {
                1 => String::from("1 change"),
                more => format!("{more} changes"),
            }),
            _ => parts.push(first.line.clone()),
        }
    }
    let line = format!("{}: {}", watch.name, parts.join("; "));
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(150).collect()
}

fn text(events: &[&Event]) -> String {
    let mut text = String::new();
    for (about, title) in PARTS {
        let lines: Vec<&&Event> = events.iter().filter(|event| event.about == about).collect();
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("{title}\n\n"));
        let listed = lines.iter().filter(|event| event.is_listed());
        let mut left: usize = lines.iter().map(|event| event.things()).sum();
        for event in listed.take(MOST_LINES) {
            left -= 1;
            text.push_str(&format!("- {}\n", cut(&event.line).replace('\n', "\n  ")));
        }
        if left > 0 {
            text.push_str(&format!("- and {left} more\n"));
        }
        text.push('\n');
    }
    text
}

/// Without what a terminal would obey: it comes from pages.
fn cut(line: &str) -> String {
    let is_obeyed = |c: char| c.is_control() && !['\n', '\t'].contains(&c);
    let cut = match line.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    };
    cut.replace(is_obeyed, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::MORE_CHANGES;

    fn watch() -> Watch {
        let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h"});
        Watch::parse(watch).unwrap()
    }

    fn event(about: About, line: String) -> Event {
        Event {
            about,
            name: "change",
            detail: json!({"line": line}),
            line,
        }
    }

    #[test]
    fn a_notice_says_how_much_it_leaves_out() {
        let events: Vec<Event> = (0..1_162)
            .map(|n| event(About::Changes, format!("new: http://a.org/{n}")))
            .collect();
        let notice = compose(&watch(), NoticeTime::Digest, &[About::Changes], &events, 0).unwrap();
        assert_eq!(notice["events"].as_array().unwrap().len(), MOST_EVENTS);
        assert_eq!(notice["more"], 662);
        assert_eq!(notice["subject"], "w: 1162 changes");
        let text = notice["text"].as_str().unwrap();
        assert!(text.ends_with("/49\n- and 1112 more\n\n"), "{text}");
    }

    #[test]
    fn what_is_counted_only_counts() {
        let mut events = vec![event(About::Changes, "gone: http://a.org/\u{1b}[2J".into())];
        events.push(Event {
            about: About::Changes,
            name: MORE_CHANGES,
            line: "and 7 more".into(),
            detail: json!({"more": 7}),
        });
        let notice = compose(&watch(), NoticeTime::Digest, &[About::Changes], &events, 0).unwrap();
        assert_eq!(notice["subject"], "w: 8 changes");
        assert_eq!(notice["more"], 7);
        assert_eq!(notice["events"].as_array().unwrap().len(), 1);
        assert_eq!(
            notice["text"],
            "Changes\n\n- gone: http://a.org/ [2J\n- and 7 more\n\n"
        );
    }

    #[test]
    fn a_notice_is_bounded_in_bytes_and_its_subject_is_one_line() {
        let huge = "x\r\nBcc: all@b.example ".repeat(10_000);
        let events = vec![event(About::Health, huge); 9];
        let notice = compose(&watch(), NoticeTime::AtOnce, &[About::Health], &events, 0).unwrap();
        assert!(notice.to_string().len() < 2 * MOST_BYTES);
        let subject = notice["subject"].as_str().unwrap();
        assert!(!subject.contains(['\r', '\n']) && subject.chars().count() <= 150);
    }

    #[test]
    fn who_does_not_want_to_know_is_not_told() {
        let events = [event(About::Health, "a".into())];
        let told = |about: &[About]| compose(&watch(), NoticeTime::Digest, about, &events, 0);
        assert_eq!(told(&[About::Changes, About::Runs]), None);
        assert!(told(&[About::Health]).is_some());
        let failed = [event(About::Delivery, "a".into())];
        assert!(compose(&watch(), NoticeTime::Digest, &[About::Runs], &failed, 0).is_some());
    }
}
