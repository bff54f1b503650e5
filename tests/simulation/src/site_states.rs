//! The store's copy of the states of sites in trouble, which the dispatcher writes in batches. Writing is slow. If the
//! dispatcher dies meanwhile, a batch or its confirmation may be lost. Then the next dispatcher writes the states
//! again.

use webfill_scheduler::effects::SiteStatesWrite;

use crate::event::Event;
use crate::sabotage::Sabotage;
use crate::world::World;

pub(crate) fn write_site_states(world: &mut World, write: SiteStatesWrite) {
    let (life, last) = (world.coordinator.life, write.last);
    let states = &mut world.site_states;
    let stored_ms = states.dice.log_uniform(1, states.takes_ms);
    let confirmed_ms = match world.is_sabotaged_by(Sabotage::StatesAreConfirmedUnwritten) {
        true => 0,
        false => stored_ms + world.site_states.dice.between(0, 20),
    };
    let write = Box::new(write);
    world.schedule_in(stored_ms, Event::SiteStatesStored { life, write });
    world.schedule_in(confirmed_ms, Event::SiteStatesConfirmed { life, last });
}

/// Stores a batch. If the dispatcher has died meanwhile, its last batch may or may not have reached the store.
pub(crate) fn store_site_states(world: &mut World, life: u32, write: SiteStatesWrite) {
    let is_on_its_way = life == world.coordinator.life;
    if is_on_its_way && (world.coordinator.is_up() || world.site_states.dice.once_in(2)) {
        world.site_states.apply(write);
    }
}

/// Checks the copy in the store for all sites whose states the dispatcher believes to be stored.
pub(crate) fn check_site_states(world: &mut World) {
    for (site, rest) in world.coordinator.open_witness().saved_states() {
        let stored = world.site_states.in_trouble.get(&site).copied();
        if stored != rest {
            let fault = format!("the store has {stored:?} of {site}, and not {rest:?}");
            world.faults.push(fault);
        }
    }
}
