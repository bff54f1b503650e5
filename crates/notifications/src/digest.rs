//! Composes notifications from events: JSON for programs, including a subject and a text for people. Both are limited
//! in size, and say how many events were omitted.

use serde_json::{Value, json};
use webfill_api::{About, NotificationTime, Watch};

use crate::reported::Event;

/// The most events in a notification.
const MOST_EVENTS: usize = 500;

/// The most bytes of JSON of all events in a notification.
const MOST_BYTES: usize = 256 << 10;

/// The most changes that are read for one notification, and their most bytes. The limits are lower than those for all
/// events, so that other events also fit.
pub(crate) const MOST_CHANGES: usize = 450;
pub(crate) const MOST_CHANGES_BYTES: usize = 200 << 10;

/// The most events of one kind in the text for people.
const MOST_LINES: usize = 50;

/// The most characters of an event in the text for people.
const MOST_CHARS: usize = 2_000;

/// The sections of the text for people, in their order, each with its heading.
const PARTS: [(About, &str); 5] = [
    (About::Delivery, "Notifications"),
    (About::Silence, "Silence"),
    (About::Health, "Extractions"),
    (About::Changes, "Changes"),
    (About::Runs, "Runs"),
];

/// Composes a notification. `None` if no event is among the kinds wanted in `about`.
pub fn compose(
    watch: &Watch,
    when: NotificationTime,
    about: &[About],
    events: &[Event],
    now_ms: i64,
) -> Option<Value> {
    let is_wanted = |event: &&Event| event.about == About::Delivery || about.contains(&event.about);
    let wanted: Vec<&Event> = events.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return None;
    }
    let reported = fitting_events(&wanted);
    Some(json!({
        "watch": watch.name,
        "app": watch.app,
        "when": when,
        "at": now_ms as f64 / 1_000.0,
        "subject": subject_line(watch, &wanted),
        "text": text_for_people(&wanted),
        "more": wanted.len() - reported.len(),
        "events": reported,
    }))
}

/// The events that fit into a notification. All changes are included, because no more than fit were read; an omitted
/// change would never be reported.
fn fitting_events(events: &[&Event]) -> Vec<Value> {
    let is_change = |event: &&Event| event.about == About::Changes;
    let changes: Vec<&Event> = events.iter().copied().filter(is_change).collect();
    let bytes: usize = changes.iter().map(|event| event.bytes()).sum();
    let mut room = (
        MOST_EVENTS.saturating_sub(changes.len()),
        MOST_BYTES - bytes.min(MOST_CHANGES_BYTES),
    );
    let mut fits = |event: &&Event| {
        let (things, bytes) = room;
        let left = things.checked_sub(1).zip(bytes.checked_sub(event.bytes()));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let listed = events
        .iter()
        .filter(|event| is_change(event) || fits(event));
    listed.map(event_json).collect()
}

fn event_json(event: &&Event) -> Value {
    json!({
        "about": event.about,
        "event": event.name,
        "line": truncate_line(&event.line),
        "detail": event.detail,
    })
}

/// The subject: one line without control characters, whatever the pages contain.
fn subject_line(watch: &Watch, events: &[&Event]) -> String {
    let changes = events.iter().filter(|event| event.about == About::Changes);
    let changes = changes.count();
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

fn text_for_people(events: &[&Event]) -> String {
    let mut text = String::new();
    for (about, title) in PARTS {
        let lines: Vec<&&Event> = events.iter().filter(|event| event.about == about).collect();
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("{title}\n\n"));
        for event in lines.iter().take(MOST_LINES) {
            text.push_str(&format!(
                "- {}\n",
                truncate_line(&event.line).replace('\n', "\n  ")
            ));
        }
        let left = lines.len().saturating_sub(MOST_LINES);
        if left > 0 {
            text.push_str(&format!("- and {left} more\n"));
        }
        text.push('\n');
    }
    text
}

/// Cuts a line to its limit, and replaces control characters that a terminal would obey: the text comes from pages.
fn truncate_line(line: &str) -> String {
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
    fn a_notification_says_how_much_it_leaves_out() {
        let events: Vec<Event> = (0..1_162)
            .map(|n| event(About::Health, format!("mapping m{n}")))
            .collect();
        let notification = compose(
            &watch(),
            NotificationTime::Digest,
            &[About::Health],
            &events,
            0,
        )
        .unwrap();
        assert_eq!(
            notification["events"].as_array().unwrap().len(),
            MOST_EVENTS
        );
        assert_eq!(notification["more"], 662);
        let text = notification["text"].as_str().unwrap();
        assert!(text.ends_with("m49\n- and 1112 more\n\n"), "{text}");
    }

    #[test]
    fn changes_are_reported_even_if_one_of_them_or_the_rest_is_large() {
        let about = [About::Changes, About::Health];
        let health = event(About::Health, "x".repeat(20_000));
        let mut events = vec![health; 9];
        events.push(event(About::Changes, "gone: http://a.org/\u{1b}[2J".into()));
        events.push(event(About::Changes, "y".repeat(MOST_BYTES)));
        events.push(event(About::Health, "small".into()));
        let notification = compose(&watch(), NotificationTime::Digest, &about, &events, 0).unwrap();
        let reported = notification["events"].as_array().unwrap();
        let changes = reported.iter().filter(|event| event["about"] == "changes");
        assert_eq!(changes.count(), 2);
        assert_eq!(reported.last().unwrap()["line"], "small");
        assert_eq!(notification["more"], 12 - reported.len());
        let text = notification["text"].as_str().unwrap();
        assert!(text.contains("- gone: http://a.org/ [2J\n"), "{text}");
    }

    #[test]
    fn a_notification_is_bounded_in_bytes_and_its_subject_is_one_line() {
        let huge = "x\r\nBcc: all@b.example ".repeat(10_000);
        let events = vec![event(About::Health, huge); 9];
        let notification = compose(
            &watch(),
            NotificationTime::AtOnce,
            &[About::Health],
            &events,
            0,
        )
        .unwrap();
        assert!(notification.to_string().len() < 2 * MOST_BYTES);
        let subject = notification["subject"].as_str().unwrap();
        assert!(!subject.contains(['\r', '\n']) && subject.chars().count() <= 150);
    }

    #[test]
    fn unwanted_events_are_not_reported() {
        let events = [event(About::Health, "a".into())];
        let reported =
            |about: &[About]| compose(&watch(), NotificationTime::Digest, about, &events, 0);
        assert_eq!(reported(&[About::Changes, About::Runs]), None);
        assert!(reported(&[About::Health]).is_some());
        let failed = [event(About::Delivery, "a".into())];
        assert!(
            compose(
                &watch(),
                NotificationTime::Digest,
                &[About::Runs],
                &failed,
                0
            )
            .is_some()
        );
    }
}
