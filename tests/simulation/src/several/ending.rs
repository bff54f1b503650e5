//! Detects that a crawl has ended at all dispatchers. Nobody sees all of them at one moment: each may have nothing to
//! do when it is asked, while a link is in transit between two of them. So the home asks all of them twice, in waves.
//! The second wave begins when all answers to the first have arrived. If both find nothing to do, as many links taken
//! as sent, and the same counts, then nothing has happened between them (Mattern's four counters, 1987).

use std::collections::BTreeMap;

use super::dispatcher::{Answer, Dispatcher};
use super::message::{Counts, CrawlNumber, Message};
use super::sabotage::Sabotage;
use super::slots::DISPATCHERS;

#[derive(Debug)]
pub(super) struct CountWave {
    number: u64,
    begun_ms: i64,
    counts: BTreeMap<usize, Counts>,
    /// The sum of the previous wave, if no dispatcher had anything to do in it.
    before: Option<Counts>,
}

impl Dispatcher {
    /// Begins a wave (a round of questions to all dispatchers) if one is due. No wave begins before all dispatchers
    /// have the crawl's current version, because some may not know the crawl yet.
    pub(super) fn begin_wave_if_due(&mut self, crawl: CrawlNumber, now_ms: i64) {
        let Some(row) = self.crawl(crawl) else { return };
        let may_end = row.seeds_ended || row.stopped;
        if row.over || !may_end || !self.is_in_force(crawl) {
            return;
        }
        match self.memory.waves.get(&crawl) {
            Some(wave) if now_ms < wave.begun_ms + self.plan.wave_ms => {}
            Some(wave) => self.begin_wave(crawl, wave.before, now_ms),
            None => self.begin_wave(crawl, None, now_ms),
        }
    }

    fn begin_wave(&mut self, crawl: CrawlNumber, before: Option<Counts>, now_ms: i64) {
        self.memory.waves_begun += 1;
        // The number of the wave contains the number of the dispatcher's starts, so answers to waves before a restart
        // are ignored.
        let number = (u64::from(self.life) << 32) + self.memory.waves_begun;
        let wave = CountWave {
            number,
            begun_ms: now_ms,
            counts: BTreeMap::new(),
            before,
        };
        self.memory.waves.insert(crawl, wave);
        for other in 0..DISPATCHERS {
            let wave = number;
            self.send(other, Message::CountsWanted { crawl, wave });
        }
    }

    pub(super) fn send_counts(&mut self, from: usize, crawl: CrawlNumber, wave: u64) {
        let Some(row) = self.crawl(crawl) else { return };
        let status = self.core().frontier().crawls().status(row.key);
        let status = status.expect("the database is healthy");
        let counts = Counts {
            queued: status.queued,
            leased: status.leased,
            pages: status.pages,
            sent: row.sent,
            taken: row.taken,
        };
        let message = Message::Counts {
            crawl,
            wave,
            counts,
        };
        self.send(from, message);
    }

    pub(super) fn handle_counts(
        &mut self,
        from: usize,
        crawl: CrawlNumber,
        number: u64,
        counts: Counts,
    ) {
        let Some(wave) = self.memory.waves.get_mut(&crawl) else {
            return;
        };
        if wave.number != number {
            return;
        }
        wave.counts.insert(from, counts);
        if wave.counts.len() < DISPATCHERS {
            return;
        }
        let mut sum = Counts::default();
        wave.counts.values().for_each(|counts| sum.add(*counts));
        let is_under_way = sum.have_links_under_way()
            && self.sabotage != Some(Sabotage::LinksUnderWayAreForgotten);
        let is_quiet = sum.are_quiet(self.plan.crawls[crawl].most_pages) && !is_under_way;
        let is_second =
            wave.before == Some(sum) || self.sabotage == Some(Sabotage::OneWaveIsEnough);
        wave.before = is_quiet.then_some(sum);
        if is_quiet && is_second {
            self.end_crawl(crawl);
        } else {
            // Makes this wave look old, so that the next tick begins another one.
            wave.begun_ms = i64::MIN / 2;
        }
    }

    fn end_crawl(&mut self, crawl: CrawlNumber) {
        let mut row = self.crawl(crawl).expect("it is open");
        row.over = true;
        self.put_crawl(crawl, &row);
        self.memory.waves.remove(&crawl);
    }

    pub(super) fn check_end(&mut self, crawl: CrawlNumber) {
        if self.crawl(crawl).is_some_and(|row| row.over) {
            self.memory.answers.push(Answer::Over(crawl));
        }
    }
}
