//! Tests of pages that have no content unless their scripts run, among other pages.

use webfill_wire::{Finding, ScriptsReport};

use super::*;
use crate::frontier::SiteLane;

fn task_with_finding(task: &Leased, finding: Finding, layout: &str) -> TaskDone {
    let found = ScriptsReport {
        finding,
        is_shell: layout.starts_with('#'),
        mapping: "shop".into(),
        layout: layout.into(),
        seen: "an empty shell".into(),
    };
    TaskDone {
        evidence: Some(found.into_evidence(&task.url, Some(200))),
        ..successful_report(task)
    }
}

fn lease(fixture: &mut Fixture, lane: Lane) -> LeaseBatch {
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 10)
        .unwrap()
        .remove(0);
    let batch = fixture.frontier.tasks().lease(site.id, 1, lane, 0).unwrap();
    fixture
        .frontier
        .sites()
        .evict(site.id, &site.clock)
        .unwrap();
    batch
}

fn complete(fixture: &mut Fixture, report: &TaskDone) -> Completion {
    let completion = fixture.frontier.tasks().complete(report, 0).unwrap();
    fixture.frontier.tasks().requeue_due_retries(1_000).unwrap();
    fixture.assert_counts_consistent();
    completion
}

#[test]
fn a_page_is_handed_on_to_a_browser_and_ends_there_once() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&first, Finding::Wanted, "#app");
    assert_eq!(complete(&mut fixture, &wanted), Completion::HandedOn);
    assert_eq!(complete(&mut fixture, &wanted), Completion::Stale);
    assert_eq!(fixture.status().queued, 2);

    let batch = lease(&mut fixture, Lane::Http);
    assert!(batch.tasks.is_empty(), "they are for a browser now");
    assert_eq!(batch.next.map(|turn| turn.lane), Some(Lane::Browser));
    for _ in 0..2 {
        let task = lease(&mut fixture, Lane::Browser).tasks.remove(0);
        let filled = task_with_finding(&task, Finding::Filled, "#app");
        let completion = complete(&mut fixture, &filled);
        assert!(matches!(completion, Completion::Counted(_)));
    }
    let status = fixture.status();
    assert_eq!((status.queued, status.done, status.pages), (0, 2, 2));
    let known = fixture.frontier.sites().scripts_of("a.org").unwrap();
    assert_eq!((known.len(), &known[0]["finding"]), (1, &"filled".into()));
    assert_eq!(known[0]["pages"], 1, "one had no browser");
}

#[test]
fn nothing_is_handed_on_where_there_is_no_browser_and_nothing_waits_for_one() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&first, Finding::Wanted, "#app");
    assert!(matches!(
        complete(&mut fixture, &wanted),
        Completion::Counted(_)
    ));

    fixture.frontier.releases().set_has_browsers(true);
    assert!(lease(&mut fixture, Lane::Http).tasks.is_empty());
    fixture.frontier.sites().take_changed_sites().unwrap();
    fixture.frontier.releases().set_has_browsers(false);
    let changed = fixture.frontier.sites().take_changed_sites().unwrap();
    assert_eq!(changed[0].next.map(|turn| turn.lane), Some(Lane::Http));
    let second = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&second, Finding::Wanted, "#app");
    assert!(matches!(
        complete(&mut fixture, &wanted),
        Completion::Counted(_)
    ));
    let crawls = [fixture.crawl];
    let reported =
        fixture
            .frontier
            .sites()
            .list_scripted_sites(&crawls, (Finding::Wanted, Some(true)), 5);
    let (sites, first) = reported.unwrap();
    assert_eq!(
        (sites, &first[0]["site"], &first[0]["pages"]),
        (1, &"a.org".into(), &2.into())
    );
}

#[test]
fn a_kind_of_pages_that_a_browser_does_not_help_goes_back_to_the_lane_http() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&first, Finding::Wanted, "#app");
    complete(&mut fixture, &wanted);
    let again = lease(&mut fixture, Lane::Browser).tasks.remove(0);
    complete(
        &mut fixture,
        &task_with_finding(&again, Finding::Empty, "#app"),
    );
    let second = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&second, Finding::Wanted, "#app");
    assert!(matches!(
        complete(&mut fixture, &wanted),
        Completion::Counted(_)
    ));
    let third = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let other = task_with_finding(&third, Finding::Wanted, "#another");
    assert_eq!(complete(&mut fixture, &other), Completion::HandedOn);
}

#[test]
fn findings_about_scripts_survive_a_restart_until_they_are_dropped() {
    let mut fixture = fixture();
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    complete(
        &mut fixture,
        &task_with_finding(&first, Finding::Wanted, "#app"),
    );
    fixture.frontier.commit().unwrap();
    drop(fixture.frontier);
    let mut frontier = Frontier::open(fixture.dir.path(), FrontierConfig::default(), 0).unwrap();
    frontier.releases().set_has_browsers(true);
    let site = frontier.sites().admit_due(i64::MAX, 10).unwrap().remove(0);
    assert_eq!(site.next.map(|turn| turn.lane), Some(Lane::Browser));
    assert_eq!(frontier.sites().scripts_of("a.org").unwrap().len(), 1);
    frontier.sites().reset_site("a.org", 1_000).unwrap();
    assert!(frontier.sites().scripts_of("a.org").unwrap().is_empty());
    let site = frontier.sites().get(site.id).unwrap().unwrap();
    assert_eq!(site.next.map(|turn| turn.lane), Some(Lane::Http));
}

#[test]
fn a_mapping_that_fits_no_page_is_not_handed_on_at_every_site() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    let mut handed_on = 0;
    for n in 0..20 {
        fixture.feed(&[&format!("http://{n}.org/")]);
        let task = lease(&mut fixture, Lane::Http).tasks.remove(0);
        let wanted = task_with_finding(&task, Finding::Wanted, "aaaaaaaa");
        if complete(&mut fixture, &wanted) == Completion::HandedOn {
            handed_on += 1;
            let again = lease(&mut fixture, Lane::Browser).tasks.remove(0);
            complete(
                &mut fixture,
                &task_with_finding(&again, Finding::Empty, "aaaaaaaa"),
            );
        }
    }
    assert_eq!(handed_on, 12);
    fixture.feed(&["http://shell.org/"]);
    let task = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&task, Finding::Wanted, "#app");
    assert_eq!(complete(&mut fixture, &wanted), Completion::HandedOn);
}

fn lane_of(fixture: &mut Fixture) -> Lane {
    fixture.frontier.sites().take_changed_sites().unwrap();
    let site = fixture
        .frontier
        .sites()
        .admit_due(i64::MAX, 10)
        .unwrap()
        .remove(0);
    let turn = fixture.frontier.sites().get(site.id).unwrap().unwrap().next;
    fixture
        .frontier
        .sites()
        .evict(site.id, &site.clock)
        .unwrap();
    turn.map(|turn| turn.lane).unwrap()
}

fn set_lane(fixture: &mut Fixture, lane: SiteLane) {
    fixture.frontier.sites().set_lane("a.org", lane).unwrap();
}

#[test]
fn the_lane_set_for_a_site_overrides_findings_and_survives_a_restart() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    assert_eq!(lane_of(&mut fixture), Lane::Http);
    set_lane(&mut fixture, SiteLane::Fixed(Lane::Browser));
    assert_eq!(lane_of(&mut fixture), Lane::Browser);
    fixture.frontier.releases().set_has_browsers(false);
    assert_eq!(lane_of(&mut fixture), Lane::Http, "nothing waits for one");
    fixture.frontier.releases().set_has_browsers(true);
    set_lane(&mut fixture, SiteLane::Auto);
    assert_eq!(lane_of(&mut fixture), Lane::Http);
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    complete(
        &mut fixture,
        &task_with_finding(&first, Finding::Filled, "#app"),
    );
    assert_eq!(lane_of(&mut fixture), Lane::Browser);
    set_lane(&mut fixture, SiteLane::Fixed(Lane::Http));
    assert_eq!(lane_of(&mut fixture), Lane::Http);
    fixture.frontier.commit().unwrap();
    drop(fixture.frontier);
    fixture.frontier = Frontier::open(fixture.dir.path(), FrontierConfig::default(), 0).unwrap();
    fixture.frontier.releases().set_has_browsers(true);
    assert_eq!(lane_of(&mut fixture), Lane::Http);
    let id = fixture.frontier.sites().admit_due(i64::MAX, 10).unwrap()[0].id;
    let scripts = fixture.frontier.scripts_for_worker(id, "a.org").unwrap();
    assert_eq!((scripts.lane, scripts.kinds.len()), (Some(Lane::Http), 1));
    fixture.frontier.sites().reset_site("a.org", 1_000).unwrap();
    let scripts = fixture.frontier.scripts_for_worker(id, "a.org").unwrap();
    assert_eq!((scripts.lane, scripts.kinds.len()), (None, 0));
}

#[test]
fn at_a_site_without_browser_only_pages_whose_mapping_wants_one_are_handed_on() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2"]);
    set_lane(&mut fixture, SiteLane::Fixed(Lane::Http));
    // A worker of an earlier release does not know the rule for this site, and reports a page that needs a browser.
    let first = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&first, Finding::Wanted, "#app");
    assert!(matches!(
        complete(&mut fixture, &wanted),
        Completion::Counted(_)
    ));
    let second = lease(&mut fixture, Lane::Http).tasks.remove(0);
    let wanted = task_with_finding(&second, Finding::Wanted, Finding::SET);
    assert_eq!(complete(&mut fixture, &wanted), Completion::HandedOn);
    let again = lease(&mut fixture, Lane::Browser).tasks.remove(0);
    assert_eq!(again.url, second.url);
}

#[test]
fn pages_rendered_in_vain_are_counted_and_need_no_browser() {
    let mut fixture = fixture();
    fixture.frontier.releases().set_has_browsers(true);
    fixture.feed(&["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    for (found, tries) in [
        (Finding::Tried, 1),
        (Finding::Tried, 2),
        (Finding::Empty, 3),
    ] {
        let task = lease(&mut fixture, Lane::Http).tasks.remove(0);
        complete(&mut fixture, &task_with_finding(&task, found, "#app"));
        let known = fixture.frontier.sites().scripts_of("a.org").unwrap();
        assert_eq!(known[0]["finding"], found.as_str());
        assert_eq!(known[0]["tries"], tries);
    }
}
