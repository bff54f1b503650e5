//! Finds who fed the crawls in a history, from the dispatcher's audit log among the logs. The audit log exists at every
//! log level, but names crawls, not URLs. A log line about the URL itself has more details.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::steps::Step;

/// The most feeders that are listed.
const MOST_FEEDERS: usize = 20;

/// The requests of one feeder to a crawl, according to the audit log.
#[derive(Debug)]
struct FeederRequests {
    first: Value,
    last: Value,
    lines: u64,
}

/// Finds the feeders of the crawls in a history.
#[derive(Debug, Default)]
pub(super) struct Feeders {
    /// The application and id of each crawl in the history.
    crawls: BTreeSet<(String, String)>,
    found: BTreeMap<[String; 5], FeederRequests>,
    pub(super) is_cut: bool,
}

impl Feeders {
    pub(super) fn new(crawls: impl IntoIterator<Item = (String, String)>) -> Feeders {
        Feeders {
            crawls: crawls.into_iter().collect(),
            ..Feeders::default()
        }
    }

    /// Adds the crawl that a log line about the URL mentions.
    pub(super) fn note_crawl(&mut self, line: &Value) {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        self.crawls.extend(text("app_id").zip(text("crawl_id")));
    }

    /// Whether a line may be an entry of the audit log about a feed.
    pub(super) fn may_be_feed_line(text: &str) -> bool {
        text.contains("\"action\":\"feed\"")
    }

    pub(super) fn note_feed(&mut self, line: &Value) {
        if line["action"] != "feed" || line["accepted"].as_u64().unwrap_or(0) == 0 {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for crawl in line["crawls"].as_array().into_iter().flatten() {
            let named = (text(&crawl["appid"]), text(&crawl["crawlid"]));
            if !self.crawls.contains(&named) {
                continue;
            }
            let [who, by, address] = ["who", "by", "address"].map(|key| text(&line[key]));
            let feeder = [named.0, named.1, who, by, address];
            self.is_cut |= self.found.len() == MOST_FEEDERS && !self.found.contains_key(&feeder);
            if self.is_cut {
                return;
            }
            let at = &line["timestamp"];
            let fed = self.found.entry(feeder).or_insert_with(|| FeederRequests {
                first: at.clone(),
                last: at.clone(),
                lines: 0,
            });
            fed.lines += 1;
            // Times in ISO 8601 sort as text. They must be compared, because files may be read in any order.
            if text(at) < text(&fed.first) {
                fed.first = at.clone();
            }
            if text(at) > text(&fed.last) {
                fed.last = at.clone();
            }
        }
    }

    /// Makes one step of the history for each feeder, at the time of its first feed.
    pub(super) fn into_steps(self, place: usize) -> Vec<Step> {
        let each = self.found.into_iter().enumerate();
        let step = |(index, ([_, crawl_id, who, by, address], fed)): (
            usize,
            ([String; 5], FeederRequests),
        )| {
            let mut line = json!({
                "timestamp": fed.first, "event": "fed", "crawl_id": crawl_id,
                "message": "URLs of its crawl were fed", "by": by,
            });
            let more = [("fed_by", who), ("address", address)];
            for (key, value) in more.into_iter().filter(|(_, value)| !value.is_empty()) {
                line[key] = value.into();
            }
            if fed.lines > 1 {
                line["last"] = fed.last;
            }
            Step::from_line("audit".into(), &line, place + index)
        };
        each.map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: &str, who: &str, accepted: u64, crawls: &[(&str, &str)]) -> Value {
        let crawls = crawls.iter();
        let crawls: Value = crawls
            .map(|(app, crawl)| json!({"appid": app, "crawlid": crawl}))
            .collect();
        json!({
            "timestamp": at, "action": "feed", "who": who, "by": "key", "address": "10.0.0.7",
            "accepted": accepted, "crawls": crawls,
        })
    }

    #[test]
    fn each_feeder_of_the_crawl_is_listed_once_at_its_first_feed() {
        let mut feeders = Feeders::new([("app".to_owned(), "c".to_owned())]);
        for line in [
            line("2026-11-23T10:00:05Z", "shop", 2, &[("app", "c")]),
            line(
                "2026-11-23T10:00:01Z",
                "shop",
                1,
                &[("app", "b"), ("app", "c")],
            ),
            line("2026-11-23T10:00:02Z", "nobody", 0, &[("app", "c")]),
            line("2026-11-23T10:00:02Z", "other", 9, &[("other", "c")]),
            line("2026-11-23T10:00:03Z", "chief", 1, &[("app", "c")]),
        ] {
            assert!(Feeders::may_be_feed_line(&line.to_string()));
            feeders.note_feed(&line);
        }
        let reported: Vec<Value> = feeders.into_steps(0).iter().map(Step::json).collect();
        let short = reported.iter().map(|step| {
            let more = &step["more"];
            [&step["at"], &more["fed_by"], &more["last"]].map(|value| value.as_str().unwrap_or("-"))
        });
        let expected = [
            ["2026-11-23T10:00:03Z", "chief", "-"],
            ["2026-11-23T10:00:01Z", "shop", "2026-11-23T10:00:05Z"],
        ];
        assert_eq!(short.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_number_of_listed_feeders_is_bounded() {
        let mut feeders = Feeders::new([("app".to_owned(), "c".to_owned())]);
        for n in 0..2 * MOST_FEEDERS {
            feeders.note_feed(&line(
                "2026-11-23T10:00:05Z",
                &format!("s{n}"),
                1,
                &[("app", "c")],
            ));
        }
        assert!(feeders.is_cut);
        assert_eq!(feeders.into_steps(0).len(), MOST_FEEDERS);
    }
}
