//! The store's copy of the states of sites in trouble. The dispatcher's store writer is slow, and dies with the
//! dispatcher: before a batch is in the store, or before its confirmation arrives. The next dispatcher writes the
//! states again.

use std::collections::BTreeMap;

use webfill_scheduler::effects::SiteStatesWrite;
use webfill_store::{SitePhase, SiteState};

use crate::dice::Dice;
use crate::sabotage::Sabotage;
use crate::world::{Event, World};

/// When the backoff of a site ends, by the dispatcher's clock.
type BackoffEnd = i64;

pub(crate) const UNREACHABLE: BackoffEnd = -1;
pub(crate) const UNTIL_WOKEN: BackoffEnd = i64::MAX;

#[derive(Debug)]
pub(crate) struct SiteStates {
    dice: Dice,
    /// The maximum time that the store takes for a batch.
    takes_ms: u64,
    in_trouble: BTreeMap<String, BackoffEnd>,
}

impl SiteStates {
    pub(crate) fn new(seed: u64) -> SiteStates {
        let mut dice = Dice::new(seed ^ 0x57A7);
        SiteStates {
            takes_ms: dice.one_of(&[20, 200, 60_000]),
            dice,
            in_trouble: BTreeMap::new(),
        }
    }

    /// How long the store takes for the next batch.
    pub(crate) fn takes_ms(&mut self) -> u64 {
        self.dice.log_uniform(1, self.takes_ms)
    }

    pub(crate) fn apply(&mut self, write: SiteStatesWrite) {
        for state in write.in_trouble {
            let rest = backoff_of(&state);
            self.in_trouble.insert(state.site, rest);
        }
        for site in write.open {
            self.in_trouble.remove(&site);
        }
    }
}

fn backoff_of(state: &SiteState) -> BackoffEnd {
    match state.phase {
        SitePhase::Unreachable => UNREACHABLE,
        SitePhase::BackingOff => state.until_ms.unwrap_or(UNTIL_WOKEN),
    }
}

impl World {
    pub(crate) fn write_site_states(&mut self, write: SiteStatesWrite) {
        let (life, last) = (self.coordinator.life, write.last);
        let states = &mut self.site_states;
        let stored_ms = states.dice.log_uniform(1, states.takes_ms);
        let confirmed_ms = match self.is_sabotaged_by(Sabotage::StatesAreConfirmedUnwritten) {
            true => 0,
            false => stored_ms + self.site_states.dice.between(0, 20),
        };
        let write = Box::new(write);
        self.schedule_in(stored_ms, Event::SiteStatesStored { life, write });
        self.schedule_in(confirmed_ms, Event::SiteStatesConfirmed { life, last });
    }

    /// Stores a batch. If the dispatcher has died meanwhile, its last write may or may not have reached the store.
    pub(crate) fn store_site_states(&mut self, life: u32, write: SiteStatesWrite) {
        let is_on_its_way = life == self.coordinator.life;
        if is_on_its_way && (self.coordinator.is_up() || self.site_states.dice.once_in(2)) {
            self.site_states.apply(write);
        }
    }

    /// Checks the store's copy for the sites whose states the dispatcher believes to be written.
    pub(crate) fn check_site_states(&mut self) {
        for (site, rest) in self.coordinator.open_witness().saved_states() {
            let stored = self.site_states.in_trouble.get(&site).copied();
            if stored != rest {
                let fault = format!("the store has {stored:?} of {site}, and not {rest:?}");
                self.faults.push(fault);
            }
        }
    }
}
