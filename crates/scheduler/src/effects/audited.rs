//! An entry of the audit log: the action, its subjects, and its result.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use webfill_api::{Action, Batch, RetryAction, SiteAction, Subject, WatchOrder};
use webfill_store::iso_time;
use webfill_wire::keys::{Entry, ListChange};

use crate::control::{ControlRequest, RefusedLines};
use crate::requester::SenderInfo;

/// An action that was carried out or refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Audited {
    /// The time, by the wall clock.
    pub at_ms: i64,
    pub who: SenderInfo,
    pub audited: AuditedAction,
    pub end: ActionEnd,
}

/// The result of an audited action.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionEnd {
    Done,
    /// The action was begun. It is answered when it is in force everywhere.
    Begun,
    Refused {
        path: String,
        why: String,
    },
}

impl ActionEnd {
    /// The result that an answer shows.
    pub fn from_answer(answer: &Value) -> ActionEnd {
        let Some(error) = answer.get("error") else {
            return ActionEnd::Done;
        };
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        ActionEnd::Refused {
            path: text("path"),
            why: text("message"),
        }
    }
}

impl Audited {
    /// Whether this entry and another one of the same second may share a line of the log.
    pub fn can_share_line(&self, other: &Audited) -> bool {
        self.who == other.who
            && self.audited.can_share_line(&other.audited)
            && self.end == other.end
    }

    /// Whether the entry shares a line with similar ones of the same second.
    pub fn is_summed(&self) -> bool {
        self.audited.is_feed() || matches!(self.end, ActionEnd::Refused { .. })
    }

    pub fn format_line(&self, times: u64) -> String {
        let mut line = Map::new();
        line.insert("timestamp".into(), iso_time(self.at_ms).into());
        line.insert("action".into(), self.audited.action_name().into());
        line.insert("who".into(), json!(self.who.name.as_deref()));
        line.insert("address".into(), json!(self.who.address.as_deref()));
        line.insert("by".into(), self.who.way.as_str().into());
        let result = match &self.end {
            ActionEnd::Done => "done",
            ActionEnd::Begun => "begun",
            ActionEnd::Refused { .. } => "refused",
        };
        line.insert("result".into(), result.into());
        if let ActionEnd::Refused { path, why } = &self.end {
            line.insert("path".into(), path.as_str().into());
            line.insert("why".into(), why.as_str().into());
        }
        if times > 1 {
            line.insert("times".into(), times.into());
        }
        self.audited.add_members(&mut line);
        line.retain(|_, value| !value.is_null());
        Value::Object(line).to_string() + "\n"
    }
}

/// An action that a user carried out or attempted.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditedAction {
    Feed(FeedSums),
    Act {
        action: &'static str,
        /// The subjects of the action, under the member names that the action uses.
        about: Map<String, Value>,
    },
}

/// The sum of one or more feeds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FeedSums {
    accepted: u64,
    refused: u64,
    /// The first of the crawls that were fed, by application and id.
    crawls: Vec<(String, String)>,
    /// Whether more crawls were fed than `crawls` lists.
    has_more: bool,
}

/// The maximum number of fed crawls that a line names.
const MOST_NAMED: usize = 20;

/// The maximum number of changed entries of an allow list in one line.
const MOST_ENTRIES: usize = 100;

impl FeedSums {
    fn from_batch(batch: &Batch) -> FeedSums {
        let mut fed = FeedSums {
            refused: batch.len() as u64,
            ..FeedSums::default()
        };
        for order in &batch.crawls {
            fed.add_crawl(&order.app_id, &order.crawl_id);
        }
        fed
    }

    fn add_crawl(&mut self, app_id: &str, crawl_id: &str) {
        let mut named = self.crawls.iter();
        if named.any(|(app, crawl)| app == app_id && crawl == crawl_id) {
            return;
        }
        match self.crawls.len() < MOST_NAMED {
            true => self.crawls.push((app_id.to_owned(), crawl_id.to_owned())),
            false => self.has_more = true,
        }
    }
}

impl AuditedAction {
    /// The action of a request, for the audit log. `None` for requests outside the public language, which only this
    /// user's processes can send, and for a feed all of whose lines name applications of others.
    pub fn from_request(asked: &ControlRequest) -> Option<AuditedAction> {
        match asked {
            ControlRequest::Local(_) => None,
            ControlRequest::Feed { batch, refused, .. } => {
                let mut fed = FeedSums::from_batch(batch);
                fed.refused += refused.faulty;
                // Lines that name applications of others have an entry of their own, see `from_foreign_lines`.
                let is_foreign = fed.refused == 0 && !refused.foreign.is_empty();
                (!is_foreign).then_some(AuditedAction::Feed(fed))
            }
            ControlRequest::Act(action) => Some(AuditedAction::from_action(action)),
            // An unread feed counts as one request, because its number of requests is not known.
            ControlRequest::UnreadFeed => Some(AuditedAction::Feed(FeedSums {
                refused: 1,
                ..FeedSums::default()
            })),
        }
    }

    /// The audit entry for the lines of a feed that name other applications than the sender's; `None` if no line does.
    pub(crate) fn from_foreign_lines(refused: &RefusedLines) -> Option<AuditedAction> {
        let foreign = &refused.foreign;
        (!foreign.is_empty()).then(|| AuditedAction::Feed(FeedSums::from_batch(foreign)))
    }

    /// An action that concerns no particular crawl, site or key.
    pub fn without_subject(action: &'static str) -> AuditedAction {
        AuditedAction::Act {
            action,
            about: Map::new(),
        }
    }

    /// The actions for a changed allow list: one for each [`MOST_ENTRIES`] of its changed entries.
    pub fn from_list_change(change: &ListChange) -> Vec<AuditedAction> {
        let plain = |kind: &'static str, entries: &[Arc<Entry>]| -> Vec<(&'static str, Value)> {
            let entries = entries.iter();
            entries.map(|entry| (kind, key_json(entry))).collect()
        };
        let mut entries = plain("added", &change.added);
        entries.extend(plain("removed", &change.removed));
        entries.extend(change.changed.iter().map(|(before, now)| {
            let mut about = key_json(now);
            about["was"] = key_json(before);
            ("changed", about)
        }));
        let actions = entries.chunks(MOST_ENTRIES).map(|entries| {
            let of = |kind: &str| -> Option<Vec<&Value>> {
                let of_kind = entries.iter().filter(|(of, _)| *of == kind);
                let of_kind: Vec<_> = of_kind.map(|(_, about)| about).collect();
                (!of_kind.is_empty()).then_some(of_kind)
            };
            let about = json!({
                "added": of("added"), "removed": of("removed"), "changed": of("changed"),
            });
            AuditedAction::with_subject("keys_changed", about)
        });
        actions.collect()
    }

    pub(crate) fn from_retry(retry: &RetryAction) -> AuditedAction {
        let mut about = subject_json(&retry.subject);
        about["outcome"] = json!(retry.outcomes);
        about["status"] = json!(retry.status_codes);
        about["site"] = json!(retry.site);
        AuditedAction::with_subject("retry", about)
    }

    fn from_action(action: &Action) -> AuditedAction {
        let (action, about) = match action {
            Action::Info(question) => ("info", subject_json(&question.subject)),
            Action::Stop(subject) => ("stop", subject_json(subject)),
            Action::Pause(subject) => ("pause", subject_json(subject)),
            Action::Resume(subject) => ("resume", subject_json(subject)),
            Action::Retry(retry) => return AuditedAction::from_retry(retry),
            Action::Prune(prune) => {
                let mut about = subject_json(&prune.subject);
                about["older_than"] = json!(prune.older_than_s);
                ("prune", about)
            }
            Action::Status { .. } => ("status", json!({})),
            Action::Reload { .. } => ("reload", json!({})),
            Action::Drain { supervisor, .. } => ("drain", json!({"supervisor": supervisor})),
            Action::Site(site) => ("site", site_action_json(site)),
            Action::Sites(_) => ("sites", json!({})),
            Action::Why(_) => ("why", json!({})),
            Action::Watch(watch) => (watch.order.name(), watch_order_json(&watch.order)),
        };
        AuditedAction::with_subject(action, about)
    }

    fn with_subject(action: &'static str, about: Value) -> AuditedAction {
        let about = match about {
            Value::Object(about) => about,
            _ => Map::new(),
        };
        AuditedAction::Act { action, about }
    }

    /// For a feed: takes the number of accepted requests from its answer. All other requests were refused.
    pub fn count_answer(&mut self, answer: &Value) {
        if let AuditedAction::Feed(fed) = self {
            fed.accepted = answer["accepted"].as_u64().unwrap_or(0);
            fed.refused = fed.refused.saturating_sub(fed.accepted);
        }
    }

    pub(super) fn action_name(&self) -> &'static str {
        match self {
            AuditedAction::Feed(_) => "feed",
            AuditedAction::Act { action, .. } => action,
        }
    }

    pub(super) fn is_feed(&self) -> bool {
        matches!(self, AuditedAction::Feed(_))
    }

    pub(super) fn can_share_line(&self, other: &AuditedAction) -> bool {
        (self.is_feed() && other.is_feed()) || self == other
    }

    pub fn add(&mut self, other: &AuditedAction) {
        if let (AuditedAction::Feed(sum), AuditedAction::Feed(fed)) = (self, other) {
            sum.accepted += fed.accepted;
            sum.refused += fed.refused;
            sum.has_more |= fed.has_more;
            for (app_id, crawl_id) in &fed.crawls {
                sum.add_crawl(app_id, crawl_id);
            }
        }
    }

    /// Adds the action's members to a line.
    pub(super) fn add_members(&self, line: &mut Map<String, Value>) {
        match self {
            AuditedAction::Act { about, .. } => line.extend(about.clone()),
            AuditedAction::Feed(fed) => {
                line.insert("accepted".into(), fed.accepted.into());
                line.insert("refused".into(), fed.refused.into());
                let crawls = fed.crawls.iter();
                let crawls: Value = crawls
                    .map(|(app_id, crawl_id)| json!({"appid": app_id, "crawlid": crawl_id}))
                    .collect();
                line.insert("crawls".into(), crawls);
                if fed.has_more {
                    line.insert("more_crawls".into(), true.into());
                }
            }
        }
    }
}

fn key_json(entry: &Entry) -> Value {
    json!({
        "role": entry.role.as_str(), "name": &*entry.name, "key": entry.key.to_string(),
        "rights": entry.rights.to_string(),
    })
}

fn subject_json(subject: &Subject) -> Value {
    json!({"appid": subject.app_id, "crawlid": subject.crawl_id})
}

/// The rules that were set. A removed rule is logged as `none`, because a null member would not be logged.
fn site_action_json(site: &SiteAction) -> Value {
    fn rule_json<T: Into<Value> + Copy>(rule: Option<Option<T>>) -> Value {
        match rule {
            None => Value::Null,
            Some(None) => "none".into(),
            Some(Some(value)) => value.into(),
        }
    }
    json!({
        "site": site.site,
        "delay_ms": rule_json(site.delay_ms),
        "block_until_ms": rule_json(site.block_until_ms),
        "limit": rule_json(site.limit),
        "forget": site.forget.then_some(true),
        "wake": site.wake.then_some(true),
    })
}

fn watch_order_json(order: &WatchOrder) -> Value {
    match order {
        WatchOrder::Add(watch) => json!({"name": watch.name, "app": watch.app}),
        WatchOrder::List => json!({}),
        WatchOrder::Show(name, _)
        | WatchOrder::Run(name)
        | WatchOrder::Pause(name)
        | WatchOrder::Resume(name)
        | WatchOrder::Remove(name) => json!({"name": name}),
    }
}
