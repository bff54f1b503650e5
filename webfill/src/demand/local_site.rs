//! Changes a site of a crawl that was started on this machine. The user names the crawl by its state folder. While the
//! crawl runs, its dispatcher carries out the action; otherwise this command changes the dispatcher's file.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use webfill_dispatcher::Endpoints;
use webfill_scheduler::frontier::{Frontier, FrontierConfig, FrontierError, SiteLane};
use webfill_service::Fault;
use webfill_service::state::{StateFolder, socket_folder};

use super::connection::Connection;
use crate::backup::require_frontier;

/// The members of an action that this command can carry out itself while no dispatcher is running.
const WITHOUT_DISPATCHER: [&str; 4] = ["action", "site", "wake", "lane"];

pub(super) fn apply_action_locally(state: &Path, action: &Value) -> Result<Value, Fault> {
    require_frontier(state)?;
    // The state folder has a lock of `webfill crawl` and one of its dispatcher. Whoever holds both is the only user of
    // the dispatcher's file.
    let locks = ["crawl", "dispatcher"].map(|role| StateFolder::open(state, role));
    match locks {
        [Ok(folder), Ok(_dispatcher)] => apply_action_to_frontier(&folder, action),
        _ => {
            let folder = state.canonicalize().map_err(Fault::usage)?;
            let control = Endpoints::ipc(&socket_folder(&folder)?).control;
            Connection::connect_locally(control)?.send_action(action)
        }
    }
}

fn apply_action_to_frontier(folder: &StateFolder, action: &Value) -> Result<Value, Fault> {
    let asked = action.as_object().map(Map::keys).into_iter().flatten();
    let mut other = asked.filter(|key| !WITHOUT_DISPATCHER.contains(&key.as_str()));
    let lane = action["lane"].as_str().and_then(SiteLane::from_name);
    let wakes = action["wake"] == true;
    if other.next().is_some() || !(wakes || lane.is_some()) {
        return Err(Fault::error(format!(
            "no crawl is running in {}: only --wake and --lane work without one",
            folder.path().display()
        )));
    }
    let site = action["site"].as_str().unwrap_or_default().to_lowercase();
    let site = site.as_str();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since_epoch.map_or(0, |passed| passed.as_millis() as i64);
    let opened = Frontier::open(folder.path(), FrontierConfig::default(), now_ms);
    let mut frontier = opened.map_err(Fault::error)?;
    let known = frontier
        .site_states()
        .find_report(site)
        .map_err(Fault::error)?;
    let Some(known) = known else {
        return Err(Fault::error(format!(
            "unknown site `{site}` in {}: expected a registrable domain, such as `example.com`",
            folder.path().display()
        )));
    };
    change_site(&mut frontier, site, wakes.then_some(now_ms), lane).map_err(Fault::error)?;
    let mut answer = json!({"action": "site", "site": site, "queued": known.queued});
    if wakes {
        answer["woken"] = "the next crawl with this --state requests one of its pages first".into();
    }
    if let Some(lane) = lane {
        answer["lane"] = lane.as_str().into();
    }
    Ok(answer)
}

fn change_site(
    frontier: &mut Frontier,
    site: &str,
    wake_at_ms: Option<i64>,
    lane: Option<SiteLane>,
) -> Result<(), FrontierError> {
    if let Some(now_ms) = wake_at_ms {
        frontier.site_states().end_backoff(site, now_ms)?;
    }
    if let Some(lane) = lane {
        frontier.sites().set_lane(site, lane)?;
    }
    frontier.commit()
}
