//! Sends leased tasks to their supervisors.

use webfill_service::journey::{self, JOURNEY};
use webfill_wire::{DispatcherToSupervisor, Task};

use crate::core::context::Context;
use crate::dispatch::Grant;
use crate::frontier::{FrontierError, Leased};

/// Sends leased tasks to the supervisor, together with anything that it lacks: the settings of crawls, and which of the
/// site's pages need their scripts.
pub(super) fn send_tasks(
    cx: &mut Context,
    grant: &Grant,
    leased: Vec<Leased>,
) -> Result<(), FrontierError> {
    if leased.is_empty() {
        return Ok(());
    }
    let Some((peer, session)) = cx.dispatch.fleet.peer_and_session(&grant.supervisor) else {
        return Ok(());
    };
    let site = cx.dispatch.schedule.site_name(grant.site);
    let site = site.unwrap_or_default().to_owned();
    if cx
        .dispatch
        .fleet
        .forget_crawls_if_too_many(&grant.supervisor)
    {
        cx.send_to_supervisor(&peer, DispatcherToSupervisor::ForgetCrawls { session });
    }
    send_scripts(cx, grant, &site);
    let mut crawls = Vec::new();
    let mut tasks = Vec::with_capacity(leased.len());
    for task in leased {
        log_leased_task(cx, grant, &task)?;
        if cx
            .dispatch
            .fleet
            .note_crawl_sent(&grant.supervisor, task.crawl)
        {
            crawls.push(cx.crawls.settings(&mut cx.frontier, task.crawl)?);
        }
        tasks.push(task_message(cx, grant, &site, task));
    }
    let Some((peer, session, number)) = cx.dispatch.fleet.next_message_address(&grant.supervisor)
    else {
        return Ok(());
    };
    let message = DispatcherToSupervisor::Tasks {
        session,
        number,
        crawls,
        tasks,
    };
    cx.send_to_supervisor(&peer, message);
    Ok(())
}

fn task_message(cx: &Context, grant: &Grant, site: &str, task: Leased) -> Task {
    Task {
        attrs: task.attrs,
        task: task.task,
        delivery: task.delivery,
        crawl: task.crawl,
        url: task.url,
        site: site.to_owned(),
        depth: task.depth,
        wait_ms: grant.wait_ms,
        last_request_ago_ms: grant.last_request_ago_ms,
        parent: task.parent,
        records: task.records,
        priority: task.priority,
        delay_ms: grant.delay_ms,
        failed_attempts: task.failed_attempts,
        unreachable: task.unreachable,
        address_bounds: cx
            .dispatch
            .schedule
            .address_bounds(grant.site, task.delivery.number),
    }
}

fn log_leased_task(cx: &mut Context, grant: &Grant, task: &Leased) -> Result<(), FrontierError> {
    if journey::is_logged() {
        tracing::debug!(
            target: JOURNEY,
            event = "leased",
            task = task.task,
            crawl_id = cx.frontier.crawls().spec(task.crawl)?.crawl_id,
            url = task.url,
            attempt = task.delivery.number,
            supervisor = grant.supervisor,
            wait_ms = grant.wait_ms,
            "leased to a supervisor"
        );
    }
    Ok(())
}

/// Tells a supervisor which of a site's pages need their scripts, if anything is known about that.
fn send_scripts(cx: &mut Context, grant: &Grant, site: &str) {
    let Some(scripts) = cx.frontier.scripts_for_worker(grant.site, site) else {
        return;
    };
    let Some((peer, session, number)) = cx.dispatch.fleet.next_message_address(&grant.supervisor)
    else {
        return;
    };
    let message = DispatcherToSupervisor::SiteScripts {
        session,
        number,
        scripts,
    };
    cx.send_to_supervisor(&peer, message);
}
