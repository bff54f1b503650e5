//! How runs of watches begin and end.

use webfill_api::{RunEnd, Watch, WatchRun};

use super::CurrentRun;
use crate::core::context::Context;
use crate::core::notifications::Notifications;
use crate::core::requests::closing::ClosingCrawls;
use crate::core::watches::Watches;
use crate::core::{crawl_writes, crawls};
use crate::effects::FeederOrder;
use crate::frontier::{CrawlStatus, FrontierError, ignore_pruned};

impl Watches {
    pub(super) fn begin_run(
        &mut self,
        cx: &mut Context,
        name: &str,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let number = cx.frontier.watches().last_run_number(name)? + 1;
        let wall_ms = cx.wall_ms(now_ms);
        let Some(watched) = self.by_name.get_mut(name) else {
            return Ok(());
        };
        let due_ms = match watched.next_due_ms {
            Some(due_ms) if due_ms <= wall_ms => due_ms,
            _ => wall_ms,
        };
        // A run must begin later than every earlier fetch, even if the machine's clock was set back.
        let ended_ms = watched.last.as_ref().and_then(|last| last.ended_ms);
        let began_ms = wall_ms.max(now_ms).max(ended_ms.unwrap_or(i64::MIN)) + 1;
        let mut run = WatchRun::new(number, due_ms, began_ms);
        run.missed = watched.watch.schedule.count_due_between(due_ms, wall_ms);
        let was_asked = std::mem::replace(&mut watched.is_asked, false);
        let (watch, kept) = (watched.watch.clone(), watched.to_stored());
        if was_asked {
            cx.frontier.watches().save(name, &kept)?;
        }
        let spec = watch.spec(began_ms);
        let crawl = match cx.frontier.crawls().open(&spec) {
            Ok(crawl) => crawl,
            Err(FrontierError::Scope(error)) => {
                return self.record_failed_start(cx, name, run, &error, now_ms);
            }
            Err(error) => return Err(error),
        };
        cx.dispatch.fleet.forget_crawl(crawl);
        // Registered with the time of the run, because a run counts as the first one if it began no later than its
        // crawl.
        crawls::register_and_backfill_crawl(cx, crawl, began_ms)?;
        // The crawl's document must be in the store, because records refer to it.
        crawl_writes::queue_crawl_write(cx, crawl, now_ms)?;
        let under_way = CurrentRun {
            crawl,
            window_over_ms: watch.window_ms.map(|window_ms| now_ms + window_ms),
            watch,
            ending: None,
            over_ms: None,
        };
        cx.frontier
            .watches()
            .record_run(name, &run, Some(under_way.to_continuation()))?;
        cx.window.next_site_ms = Some(now_ms);
        tracing::info!(
            event = "run_began",
            watch = name,
            run = number,
            "run of a watch started"
        );
        self.order_feeder(name, number);
        if let Some(watched) = self.by_name.get_mut(name) {
            watched.last = Some(run);
            watched.under_way = Some(under_way);
        }
        Ok(())
    }

    /// Records a run that failed to begin.
    fn record_failed_start(
        &mut self,
        cx: &mut Context,
        name: &str,
        mut run: WatchRun,
        why: &dyn std::fmt::Display,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        run.ended_ms = Some(run.started_ms.max(now_ms));
        run.how = Some(RunEnd::Failed);
        run.why = Some(why.to_string());
        cx.frontier.watches().record_run(name, &run, None)?;
        if let Some(watched) = self.by_name.get_mut(name) {
            watched.set_ended_run(run);
        }
        Ok(())
    }

    /// Continues a run from before the start.
    pub(super) fn resume_run(
        &mut self,
        cx: &mut Context,
        name: &str,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let watched = &self.by_name[name];
        let Some(run) = watched.last.clone() else {
            return Ok(());
        };
        let as_given = watched.watch.clone();
        let kept = cx.frontier.watches().run_under_way(name, run.number)?;
        let (began_with, ending) = kept.map_or((None, None), |kept| {
            (Watch::parse(kept.watch).ok(), kept.ending)
        });
        let watch = began_with.unwrap_or(as_given);
        let Some(crawl) = cx.frontier.crawls().find(&watch.app, name)? else {
            return self.record_failed_start(cx, name, run, &"its crawl was pruned", now_ms);
        };
        crawls::register_and_backfill_crawl(cx, crawl, now_ms)?;
        self.order_feeder(name, run.number);
        let by_window = ending
            .as_ref()
            .is_none_or(|(how, _)| *how == RunEnd::Window);
        let window_ms = watch.window_ms.filter(|_| by_window);
        let over_ms = window_ms.map(|window_ms| run.started_ms + window_ms);
        let over_ms = over_ms.filter(|over_ms| *over_ms <= now_ms);
        if let Some(watched) = self.by_name.get_mut(name) {
            watched.under_way = Some(CurrentRun {
                crawl,
                watch,
                ending,
                over_ms,
                window_over_ms: window_ms.map(|window_ms| run.started_ms + window_ms),
            });
        }
        match over_ms {
            Some(_) => self.stop_handing_out_run(cx, name, (RunEnd::Window, None)),
            None => Ok(()),
        }
    }

    fn order_feeder(&mut self, name: &str, run: u64) {
        self.fed.insert(name.to_owned());
        self.feeders.push(FeederOrder {
            watch: name.to_owned(),
            run,
        });
    }

    /// Ends a watch's run that is over. If a run must end but has tasks left, stops handing them out.
    pub(super) fn end_or_hold_run(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        closing: &ClosingCrawls,
        name: &str,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let Some(under_way) = self.current_run(name) else {
            return Ok(());
        };
        let crawl = under_way.crawl;
        let status = match cx.frontier.crawls().status(crawl) {
            Ok(status) => status,
            Err(FrontierError::UnknownCrawl(_)) => {
                let failed = (RunEnd::Failed, Some("its crawl was pruned".into()));
                return self.end_run(cx, notifications, name, None, failed, now_ms);
            }
            Err(error) => return Err(error),
        };
        let is_closing = closing.contains(crawl);
        if under_way.ending.is_some() && (status.leased > 0 || is_closing) {
            return Ok(());
        }
        if let Some(ending) = under_way.ending {
            if ending.0 == RunEnd::Window {
                // The unlinked pages, which the run has not found, stay in the queue for the next run.
                crawls::queue_unlinked_pages(cx, crawl, now_ms)?;
            }
            let status = cx.frontier.crawls().status(crawl)?;
            return self.end_run(cx, notifications, name, Some(status), ending, now_ms);
        }
        if cx.frontier.crawls().end_outcome(crawl)?.is_some() {
            return self.stop_handing_out_run(cx, name, (RunEnd::Stopped, None));
        }
        let how = match cx.crawls.is_finished(crawl, &status) {
            true => Some(RunEnd::Finished),
            false => {
                let is_reached = cx.crawls.is_limit_reached(&mut cx.frontier, crawl)?;
                is_reached.then_some(RunEnd::Budget)
            }
        };
        if let Some(how) = how {
            return match crawls::queue_unlinked_pages(cx, crawl, now_ms)? {
                true => Ok(()),
                false => self.end_run(cx, notifications, name, Some(status), (how, None), now_ms),
            };
        }
        match self.early_end_reason(cx, name, &status, now_ms)? {
            Some(how) => self.stop_handing_out_run(cx, name, (how, None)),
            None => Ok(()),
        }
    }

    /// Why a run must end though some of its tasks are left.
    fn early_end_reason(
        &mut self,
        cx: &mut Context,
        name: &str,
        status: &CrawlStatus,
        now_ms: i64,
    ) -> Result<Option<RunEnd>, FrontierError> {
        let watched = &self.by_name[name];
        let (Some(under_way), Some(run)) = (&watched.under_way, &watched.last) else {
            return Ok(None);
        };
        let window_ms = under_way.watch.window_ms;
        let wall_ms = cx.wall_ms(now_ms);
        if window_ms.is_some_and(|window_ms| wall_ms >= run.started_ms + window_ms)
            || under_way
                .window_over_ms
                .is_some_and(|over_ms| now_ms >= over_ms)
        {
            return Ok(Some(RunEnd::Window));
        }
        let may_back_off = status.leased == 0 && status.seeds_ended && status.queued > 0;
        let (crawl, patience_ms) = (under_way.crawl, under_way.watch.patience_ms());
        if may_back_off
            && crawls::common_backoff_end_ms(cx, &[crawl], now_ms, patience_ms)?.is_some()
        {
            return Ok(Some(RunEnd::BackingOff));
        }
        Ok(None)
    }

    /// Stops handing out tasks of a run. It ends when its leased tasks have come back.
    pub(super) fn stop_handing_out_run(
        &mut self,
        cx: &mut Context,
        name: &str,
        ending: (RunEnd, Option<String>),
    ) -> Result<(), FrontierError> {
        let mut watched = self.by_name.get_mut(name);
        let under_way = watched
            .as_mut()
            .and_then(|watched| watched.under_way.as_mut());
        let Some(under_way) = under_way else {
            return Ok(());
        };
        if under_way.ending.is_some() {
            return Ok(());
        }
        under_way.ending = Some(ending);
        let (crawl, kept) = (under_way.crawl, under_way.to_continuation());
        // Stored in the commit of the pause, so that a restart does not resume the run.
        if let Some(run) = watched.and_then(|watched| watched.last.clone()) {
            cx.frontier.watches().record_run(name, &run, Some(kept))?;
        }
        let held = match cx.frontier.crawls().end_outcome(crawl) {
            // The crawl is over already, so its queued tasks are being closed.
            Ok(Some(_)) => Ok(()),
            Ok(None) => cx.frontier.crawls().pause(crawl),
            Err(error) => Err(error),
        };
        ignore_pruned(held, ())
    }

    /// Records the end of a run. Tasks left in the queue are not handed out until the next run.
    pub(super) fn end_run(
        &mut self,
        cx: &mut Context,
        notifications: &mut Notifications,
        name: &str,
        status: Option<CrawlStatus>,
        (how, why): (RunEnd, Option<String>),
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        let ended_ms = cx.wall_ms(now_ms).max(now_ms);
        let Some(watched) = self.by_name.get_mut(name) else {
            return Ok(());
        };
        let under_way = watched.under_way.take();
        let Some(run) = &mut watched.last else {
            return Ok(());
        };
        // If the run's time window was over before this start of the dispatcher, the run ended with its window. Runs
        // that were due since then are made up for.
        let over_ms = under_way.as_ref().and_then(|under_way| under_way.over_ms);
        let watch = under_way.as_ref().map(|under_way| &under_way.watch);
        let schedule = &watch.unwrap_or(&watched.watch).schedule;
        run.end(over_ms.unwrap_or(ended_ms), how, why, schedule);
        if let Some(status) = &status {
            run.counts = status.counts();
        }
        let run = run.clone();
        watched.set_ended_run(run.clone());
        cx.frontier.watches().record_run(name, &run, None)?;
        tracing::info!(
            event = "run_ended",
            watch = name,
            run = run.number,
            how = how.as_str(),
            why = run.why,
            "run of a watch ended"
        );
        if let (Some(under_way), Some(status)) = (under_way, status) {
            if status.queued > 0 && how != RunEnd::Stopped {
                ignore_pruned(cx.frontier.crawls().pause(under_way.crawl), ())?;
            }
            ignore_pruned(
                crawl_writes::queue_crawl_write(cx, under_way.crawl, now_ms),
                (),
            )?;
        }
        notifications.request_run_changes(self, name);
        Ok(())
    }
}
