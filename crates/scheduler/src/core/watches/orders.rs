//! Actions of clients on watches: add, list, show, run, pause, resume, remove.

use serde_json::{Value, json};
use webfill_api::{Refusal, RunEnd, Watch, WatchAction, WatchOrder};
use webfill_wire::keys::Rights;

use super::{MOST_FAILURES, WatchEntry};
use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::watches::Watches;
use crate::frontier::{FrontierError, StoredWatch, ignore_pruned};

/// The maximum number of watches.
const MOST_WATCHES: usize = 1_000;

impl Watches {
    /// Carries out an action on watches; the answer may be a refusal. A key that is bound to applications sees only
    /// their watches.
    pub(in crate::core) fn act_on_watches(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        action: WatchAction,
        rights: &Rights,
        now_ms: i64,
    ) -> Result<Value, FrontierError> {
        if !self.are_attended {
            return Ok(Refusal::new("$.action", "this dispatcher has no watches").to_answer());
        }
        let name = action.order.name();
        if let Some(watch) = required_watch_of(&action.order)
            && (!self.is_permitted(watch, rights) || !self.may_exist(watch, &action.order))
        {
            return Ok(self.refuse_unknown_watch(watch, rights).to_answer());
        }
        // Check the watches soon, because any action may change their due times.
        self.check_at_ms = now_ms;
        let wall_ms = cx.wall_ms(now_ms);
        let done = match action.order {
            WatchOrder::Add(watch) => self.add_watch(cx, notifications, *watch, wall_ms)?,
            WatchOrder::List => Ok(self.list_watches(rights, wall_ms)),
            WatchOrder::Show(watch, runs) => {
                self.show_watch(cx, notifications, &watch, runs, wall_ms)?
            }
            WatchOrder::Run(watch) => self.request_run(cx, &watch)?,
            WatchOrder::Pause(watch) => self.set_watch_paused(cx, &watch, true, wall_ms)?,
            WatchOrder::Resume(watch) => self.set_watch_paused(cx, &watch, false, wall_ms)?,
            WatchOrder::Remove(watch) => self.remove_watch(cx, notifications, &watch, now_ms)?,
        };
        Ok(match done {
            Err(refusal) => refusal.to_answer(),
            Ok(more) => {
                let mut answer = json!({"action": name, "server_time": wall_ms / 1_000});
                if let Some(uuid) = action.uuid {
                    answer["uuid"] = uuid.into();
                }
                if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
                    answer.extend(more);
                }
                answer
            }
        })
    }

    /// Adds a watch, or changes the one of this name. A change takes effect with the next run.
    fn add_watch(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        watch: Watch,
        now_ms: i64,
    ) -> Result<Result<Value, Refusal>, FrontierError> {
        if let Err(refusal) = self.sources.check(&watch, "$.watch") {
            return Ok(Err(refusal));
        }
        if let Some(permissions) = &notifications.permissions
            && let Err(refusal) = permissions.check(&watch, "$.watch")
        {
            return Ok(Err(refusal));
        }
        let name = watch.name.clone();
        let is_full = self.by_name.len() >= MOST_WATCHES;
        let known = self.by_name.get_mut(&name);
        let is_changed = known.is_some();
        match known {
            Some(watched) if watched.watch.app != watch.app => {
                let why = "a watch keeps its application: remove it, and add it again";
                return Ok(Err(Refusal::new("$.watch.app", why)));
            }
            Some(watched) => {
                watched.watch = watch;
                watched.plan_next_run();
            }
            None if is_full => {
                let why = format!("too many watches: at most {MOST_WATCHES}");
                return Ok(Err(Refusal::new("$", why)));
            }
            None => {
                let kept = StoredWatch {
                    json: String::new(),
                    paused: false,
                    since_ms: now_ms,
                    asked: false,
                };
                let runs = cx.frontier.watches().list_runs(&name, MOST_FAILURES)?;
                let watched = WatchEntry::new(watch, &kept, runs);
                self.by_name.insert(name.clone(), watched);
            }
        }
        let watched = &self.by_name[&name];
        cx.frontier.watches().save(&name, &watched.to_stored())?;
        let mut reply = watch_json(watched, now_ms);
        reply["changed"] = is_changed.into();
        notifications.update_reporting(cx, self, &name, now_ms)?;
        Ok(Ok(reply))
    }

    /// Whether the sender may act on this watch. The application of a watch that could not be read at the start is
    /// unknown.
    fn is_permitted(&self, watch: &str, rights: &Rights) -> bool {
        match self.by_name.get(watch) {
            Some(watched) => rights.permits_app(&watched.watch.app),
            None => !rights.is_limited_to_apps(),
        }
    }

    /// Whether a watch may exist. A watch that could not be read at the start can only be removed.
    fn may_exist(&self, watch: &str, order: &WatchOrder) -> bool {
        self.by_name.contains_key(watch) || matches!(order, WatchOrder::Remove(_))
    }

    /// The refusal of an order about a watch that does not exist. It names a watch with a similar name if the sender may
    /// know about it.
    fn refuse_unknown_watch(&self, name: &str, rights: &Rights) -> Refusal {
        let permitted = self.by_name.iter();
        let permitted = permitted.filter(|(_, watched)| rights.permits_app(&watched.watch.app));
        let names = permitted.map(|(name, _)| name.as_str());
        let edits = (name.chars().count() / 3).clamp(1, 3);
        match webfill_api::nearest_known_name(name, names, edits) {
            Some(near) => Refusal::new(
                "$.name",
                format!("no watch of this name; did you mean `{near}`?"),
            ),
            None => unknown_watch_refusal(),
        }
    }

    fn list_watches(&self, rights: &Rights, now_ms: i64) -> Value {
        let watches = self.by_name.values();
        let permitted = watches.filter(|watched| rights.permits_app(&watched.watch.app));
        let watches: Vec<Value> = permitted
            .map(|watched| watch_json(watched, now_ms))
            .collect();
        json!({"watches": watches})
    }

    fn show_watch(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        name: &str,
        runs: u64,
        now_ms: i64,
    ) -> Result<Result<Value, Refusal>, FrontierError> {
        let Some(watched) = self.by_name.get(name) else {
            return Ok(Err(unknown_watch_refusal()));
        };
        let mut shown = watch_json(watched, now_ms);
        shown["watch"] = watched.watch.without_secrets();
        if let (Value::Object(shown), Value::Object(notifications)) =
            (&mut shown, notifications.notifications_json(cx, name)?)
        {
            shown.extend(notifications);
        }
        let runs = cx.frontier.watches().list_runs(name, runs)?;
        shown["runs"] = runs.iter().map(|run| run.json()).collect();
        Ok(Ok(shown))
    }

    /// Requests a run now. The request is committed before it is answered, so that a restart does not lose it.
    fn request_run(
        &mut self,
        cx: &mut Context,
        name: &str,
    ) -> Result<Result<Value, Refusal>, FrontierError> {
        let Some(watched) = self.by_name.get_mut(name) else {
            return Ok(Err(unknown_watch_refusal()));
        };
        if watched.under_way.is_some() {
            let why = "a run of it is in progress: a watch has one at a time";
            return Ok(Err(Refusal::new("$.name", why)));
        }
        watched.is_asked = true;
        let kept = watched.to_stored();
        cx.frontier.watches().save(name, &kept)?;
        Ok(Ok(json!({"name": name})))
    }

    /// Pauses or resumes a watch. A current run finishes.
    fn set_watch_paused(
        &mut self,
        cx: &mut Context,
        name: &str,
        paused: bool,
        now_ms: i64,
    ) -> Result<Result<Value, Refusal>, FrontierError> {
        let Some(watched) = self.by_name.get_mut(name) else {
            return Ok(Err(unknown_watch_refusal()));
        };
        watched.paused = paused;
        let kept = watched.to_stored();
        let reply = watch_json(watched, now_ms);
        cx.frontier.watches().save(name, &kept)?;
        Ok(Ok(reply))
    }

    /// Removes a watch. No further tasks of its current run are handed out. Its crawl, its pages and the records of
    /// its runs stay.
    fn remove_watch(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        name: &str,
        now_ms: i64,
    ) -> Result<Result<Value, Refusal>, FrontierError> {
        if let Some(under_way) = self.current_run(name) {
            let status = cx.frontier.crawls().status(under_way.crawl).map(Some);
            let status = ignore_pruned(status, None)?;
            self.stop_handing_out_run(cx, name, (RunEnd::Stopped, None))?;
            self.end_run(
                cx,
                notifications,
                name,
                status,
                (RunEnd::Stopped, None),
                now_ms,
            )?;
        }
        self.by_name.remove(name);
        notifications.stop_reporting(cx, name)?;
        // Also removes a watch that could not be read at the start.
        match cx.frontier.watches().delete(name)? {
            true => Ok(Ok(json!({"name": name}))),
            false => Ok(Err(unknown_watch_refusal())),
        }
    }
}

/// The watch that an order names, if the order requires that it exists.
fn required_watch_of(order: &WatchOrder) -> Option<&str> {
    match order {
        WatchOrder::Add(_) | WatchOrder::List => None,
        WatchOrder::Show(name, _)
        | WatchOrder::Run(name)
        | WatchOrder::Pause(name)
        | WatchOrder::Resume(name)
        | WatchOrder::Remove(name) => Some(name),
    }
}

fn unknown_watch_refusal() -> Refusal {
    Refusal::new("$.name", "no watch of this name")
}

/// A watch, as listed. Times are seconds since the epoch.
fn watch_json(watched: &WatchEntry, now_ms: i64) -> Value {
    let state = match (&watched.under_way, watched.paused) {
        (Some(_), _) => "running",
        (None, true) => "paused",
        (None, false) => "waiting",
    };
    let next_ms = match (&watched.under_way, watched.paused) {
        (None, false) => watched.next_due_ms.map(|due_ms| due_ms.max(now_ms)),
        _ => None,
    };
    json!({
        "name": watched.watch.name,
        "app": watched.watch.app,
        "state": state,
        "paused": watched.paused,
        "schedule": watched.watch.json["schedule"],
        "time_zone": watched.watch.json.get("time_zone"),
        "next": next_ms.map(|ms| ms as f64 / 1_000.0),
        "last_run": watched.last.as_ref().map(|run| run.json()),
    })
}
