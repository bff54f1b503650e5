//! An action for a site of a crawl on this machine, by its state folder: through the crawl's dispatcher
//! while it runs, else in its file.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use webfill_dispatcher::Endpoints;
use webfill_dispatcher::frontier::{Frontier, FrontierConfig};
use webfill_startup::Fault;
use webfill_startup::state::{StateFolder, socket_folder};

use super::connection::Connection;
use crate::backup::require_frontier;

/// What a site can be told without a dispatcher.
const WITHOUT_DISPATCHER: [&str; 3] = ["action", "site", "wake"];

pub(super) fn act(state: &Path, action: &Value) -> Result<Value, Fault> {
    require_frontier(state)?;
    // Each of its two processes has a lock: with both nobody is at the file.
    let locks = ["crawl", "dispatcher"].map(|role| StateFolder::open(state, role));
    match locks {
        [Ok(folder), Ok(_dispatcher)] => wake_in_file(&folder, action),
        _ => {
            let folder = state.canonicalize().map_err(Fault::usage)?;
            let control = Endpoints::ipc(&socket_folder(&folder)?).control;
            Connection::on_this_machine(control)?.act(action)
        }
    }
}

fn wake_in_file(folder: &StateFolder, action: &Value) -> Result<Value, Fault> {
    let asked = action.as_object().map(Map::keys).into_iter().flatten();
    let mut other = asked.filter(|key| !WITHOUT_DISPATCHER.contains(&key.as_str()));
    if other.next().is_some() || action["wake"] != true {
        return Err(Fault::error(format!(
            "no crawl is running in {}: without one a site can only be woken (--wake)",
            folder.path().display()
        )));
    }
    let site = action["site"].as_str().unwrap_or_default().to_lowercase();
    let site = site.as_str();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since_epoch.map_or(0, |passed| passed.as_millis() as i64);
    let opened = Frontier::open(folder.path(), FrontierConfig::default(), now_ms);
    let mut frontier = opened.map_err(Fault::error)?;
    let known = frontier.site_report(site).map_err(Fault::error)?;
    let Some(known) = known else {
        return Err(Fault::error(format!(
            "no crawl in {} knows the site `{site}`: sites are registrable domains, such as `example.com`",
            folder.path().display()
        )));
    };
    let woken = frontier.wake_site(site, now_ms);
    woken
        .and_then(|()| frontier.commit())
        .map_err(Fault::error)?;
    let next = "the next crawl with this --state requests one of its pages first";
    Ok(json!({"action": "site", "site": site, "queued": known.queued, "woken": next}))
}
