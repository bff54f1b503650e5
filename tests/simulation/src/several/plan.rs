//! The plan of a seed: the web, the crawls, the network between the dispatchers and their deaths.

use crate::dice::Dice;
use crate::names::site_name;
use crate::names::url;

use super::message::CrawlNumber;
use super::sabotage::Sabotage;
use super::slots::{DISPATCHERS, SlotMap};

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) slots: SlotMap,
    /// For each site, its pages; for each page, its links.
    pub(super) sites: Vec<Vec<Vec<Place>>>,
    pub(super) crawls: Vec<CrawlPlan>,
    pub(super) network: NetworkPlan,
    /// A dispatcher dies once in this many turns, before or after the turn's commit; 0: never.
    pub(super) deaths_in_turn: u64,
    /// The deaths between turns. Each has its time, the number of the dispatcher, and the duration.
    pub(super) deaths: Vec<(u64, usize, u64)>,
    pub(super) delay_ms: u64,
    pub(super) lease_ms: u64,
    pub(super) longest_request_ms: u64,
    /// The most tasks that a supervisor may hold.
    pub(super) queue: u64,
    pub(super) window_sites: usize,
    /// The most links in one message.
    pub(super) batch: usize,
    /// If the outbox has more links than this, the dispatcher hands out no tasks.
    pub(super) full_outbox: u64,
    /// The number of pages that a dispatcher requests when its share of a page limit is used up.
    pub(super) share: u64,
    /// A wave (a round of questions to all dispatchers) is repeated if answers are still missing after this time.
    pub(super) wave_ms: i64,
}

/// A page, by the number of its site and its own number.
pub(super) type Place = (usize, usize);

#[derive(Debug)]
pub(super) struct CrawlPlan {
    pub(super) id: &'static str,
    pub(super) home: usize,
    pub(super) seeds: Vec<String>,
    pub(super) opens_at_ms: u64,
    pub(super) most_pages: Option<u64>,
    pub(super) stops_at_ms: Option<u64>,
}

/// How messages travel between dispatchers. For example, one in `loss_once_in` messages is lost.
#[derive(Debug)]
pub(super) struct NetworkPlan {
    pub(super) loss_once_in: u64,
    pub(super) twice_once_in: u64,
    pub(super) late_once_in: u64,
    pub(super) latest_ms: u64,
    /// The longest delay of the messages of a wave (a round of questions to all dispatchers).
    pub(super) slowest_wave_ms: u64,
    /// Interruptions of the network. Each has the two dispatchers whose messages are lost, and the times of its start
    /// and its end.
    pub(super) cuts: Vec<(usize, usize, u64, u64)>,
}

impl Plan {
    pub(super) fn from_seed(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let slots = SlotMap::draw(&mut dice);
        let is_rough = !dice.once_in(4);
        let network = NetworkPlan::draw(&mut dice, is_rough);
        let deaths = if is_rough {
            draw_deaths(&mut dice)
        } else {
            Vec::new()
        };
        let sites = draw_web(&mut dice);
        let crawls = draw_crawls(&mut dice, &slots, sites.len());
        Plan {
            slots,
            sites,
            crawls,
            network,
            deaths_in_turn: if is_rough {
                dice.one_of(&[0, 0, 300, 60])
            } else {
                0
            },
            deaths,
            delay_ms: dice.one_of(&[0, 20, 200]),
            lease_ms: dice.one_of(&[2_000, 10_000]),
            longest_request_ms: 1_000,
            queue: dice.one_of(&[2, 10, 50]),
            window_sites: dice.one_of(&[2, 100]),
            batch: dice.one_of(&[1, 3, 20]),
            full_outbox: dice.one_of(&[5, 30, 1_000]),
            share: dice.one_of(&[1, 3, 10]),
            wave_ms: dice.one_of(&[500, 5_000, 30_000]),
        }
    }

    /// Draws the world of a seed, and changes it so that the sabotage probably causes a fault.
    pub(super) fn for_sabotage(sabotage: Sabotage, seed: u64) -> Plan {
        let mut plan = Plan::from_seed(seed);
        if sabotage == Sabotage::OneWaveIsEnough {
            // In this world, the crawl has only one task at a time. The task may move to another dispatcher while a
            // slow wave asks the dispatchers.
            let mut dice = Dice::new(seed ^ 0x5017);
            plan.sites = draw_chain(&mut dice, 8);
            plan.crawls.truncate(1);
            (plan.crawls[0].most_pages, plan.crawls[0].stops_at_ms) = (None, None);
            plan.network = NetworkPlan::draw(&mut dice, false);
            plan.network.slowest_wave_ms = 1_000;
            (plan.deaths_in_turn, plan.deaths) = (0, Vec::new());
            plan.delay_ms = 20;
        }
        plan
    }

    /// A plan for measurements, without faults: a web with this many sites, pages for each site, and links on each
    /// page.
    pub(super) fn for_measuring(sites: usize, pages: usize, links: usize) -> Plan {
        let mut dice = Dice::new(1);
        let slots = SlotMap::draw(&mut dice);
        let mut plan = Plan::from_seed(1);
        let page = |dice: &mut Dice| draw_places(dice, sites, pages, links);
        plan.sites = (0..sites)
            .map(|_| (0..pages).map(|_| page(&mut dice)).collect())
            .collect();
        plan.crawls = vec![CrawlPlan {
            id: CRAWLS[0],
            home: slots.owner(CRAWLS[0]),
            seeds: (0..sites).map(|site| url(site, 0)).collect(),
            opens_at_ms: 0,
            most_pages: None,
            stops_at_ms: None,
        }];
        plan.network = NetworkPlan::draw(&mut dice, false);
        plan.slots = slots;
        (plan.deaths_in_turn, plan.deaths) = (0, Vec::new());
        (plan.delay_ms, plan.queue, plan.window_sites) = (1_000, 500, 10_000);
        (plan.batch, plan.full_outbox) = (500, 100_000);
        plan
    }

    pub(super) fn owner_of(&self, site: usize) -> usize {
        self.slots.owner(&site_name(site))
    }

    pub(super) fn home(&self, crawl: CrawlNumber) -> usize {
        self.crawls[crawl].home
    }
}

pub(super) const CRAWLS: [&str; 2] = ["crawl", "another"];

fn draw_crawls(dice: &mut Dice, slots: &SlotMap, sites: usize) -> Vec<CrawlPlan> {
    let number = dice.one_of(&[1, 1, 2]);
    let ids = CRAWLS.iter().take(number);
    let mut crawl = |id: &&'static str| CrawlPlan {
        id,
        home: slots.owner(id),
        seeds: (0..sites.min(5)).map(|site| url(site, 0)).collect(),
        opens_at_ms: dice.between(0, 2_000),
        most_pages: dice.once_in(3).then(|| dice.between(1, 80)),
        stops_at_ms: dice.once_in(4).then(|| dice.log_uniform(500, 20_000)),
    };
    ids.map(&mut crawl).collect()
}

fn draw_web(dice: &mut Dice) -> Vec<Vec<Vec<Place>>> {
    let sites = dice.between(4, 16) as usize;
    match dice.once_in(3) {
        true => draw_chain(dice, sites),
        false => draw_mesh(dice, sites),
    }
}

/// A web where the first pages of all sites link to each other, and every page links to random pages.
fn draw_mesh(dice: &mut Dice, sites: usize) -> Vec<Vec<Vec<Place>>> {
    let pages = dice.one_of(&[1, 4, 12]);
    let most_links = dice.one_of(&[2, 5, 12]);
    let mut web = Vec::with_capacity(sites);
    for site in 0..sites {
        let mut page = || {
            let links = dice.between(0, most_links) as usize;
            draw_places(dice, sites, pages, links)
        };
        let mut of_site: Vec<Vec<Place>> = (0..pages).map(|_| page()).collect();
        of_site[0].push(((site + 1) % sites, 0));
        web.push(of_site);
    }
    web
}

/// A web with one chain through half of all pages, from site to site. Each page of the chain also links to a page
/// without links. So most dispatchers have nothing to do most of the time.
fn draw_chain(dice: &mut Dice, sites: usize) -> Vec<Vec<Vec<Place>>> {
    let pages = dice.one_of(&[3, 8]);
    let mut web = vec![vec![Vec::new(); 2 * pages]; sites];
    let mut places: Vec<Place> = (0..sites * pages)
        .map(|nth| (nth % sites, nth / sites))
        .collect();
    for nth in (1..places.len()).rev() {
        places.swap(nth, dice.between(0, nth as u64) as usize);
    }
    for pair in places.windows(2) {
        let (site, page) = pair[0];
        let aside = dice.between(0, sites as u64 - 1) as usize;
        web[site][page].extend([pair[1], (aside, pages + page)]);
    }
    web
}

fn draw_places(dice: &mut Dice, sites: usize, pages: usize, number: usize) -> Vec<Place> {
    let mut place = || {
        let site = dice.between(0, sites as u64 - 1) as usize;
        (site, dice.between(0, pages as u64 - 1) as usize)
    };
    (0..number).map(|_| place()).collect()
}

fn draw_deaths(dice: &mut Dice) -> Vec<(u64, usize, u64)> {
    let mut deaths = Vec::new();
    for _ in 0..dice.one_of(&[0, 1, 4, 10]) {
        let dispatcher = dice.between(0, DISPATCHERS as u64 - 1) as usize;
        let down_ms = dice.log_uniform(20, 30_000);
        deaths.push((dice.log_uniform(100, 60_000), dispatcher, down_ms));
    }
    deaths
}

impl NetworkPlan {
    fn draw(dice: &mut Dice, is_rough: bool) -> NetworkPlan {
        if !is_rough {
            return NetworkPlan {
                loss_once_in: 0,
                twice_once_in: 0,
                late_once_in: 0,
                latest_ms: 5,
                slowest_wave_ms: 5,
                cuts: Vec::new(),
            };
        }
        let mut dispatcher = || dice.between(0, DISPATCHERS as u64 - 1) as usize;
        let pairs = [(dispatcher(), dispatcher()), (dispatcher(), dispatcher())];
        let cuts = pairs.map(|(one, other)| {
            let from_ms = dice.log_uniform(100, 60_000);
            (one, other, from_ms, from_ms + dice.log_uniform(100, 60_000))
        });
        let number = dice.one_of(&[0, 1, 2]);
        let cuts = cuts.into_iter().take(number).collect();
        NetworkPlan {
            loss_once_in: dice.one_of(&[0, 100, 10]),
            twice_once_in: dice.one_of(&[0, 30, 5]),
            late_once_in: dice.one_of(&[0, 20, 4]),
            latest_ms: dice.log_uniform(50, 20_000),
            slowest_wave_ms: dice.one_of(&[5, 1_000]),
            cuts,
        }
    }
}
