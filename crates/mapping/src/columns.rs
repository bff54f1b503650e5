//! Values that are read one at a time though they are of one field, as those of all rows of a listing: what they show
//! together of their notation, such as which mark begins a fraction.
//!
//! They are read twice: at first alone, while what each of them shows is [gathered](Columns::gather); then those that
//! depend on the others are [read again](Columns::among_all).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr;

use webfill_values::{DateEvidence, DateOrder, Dates, NumberEvidence, Numbers};

use crate::run::Processor;

/// The columns of a page, by the step of a chain that reads their values.
#[derive(Default)]
pub(crate) struct Columns {
    reading: Cell<Reading>,
    of_step: RefCell<HashMap<usize, Column>>,
    /// A value that was read alone depends on others.
    depends: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// All values of the field are before the processor.
    #[default]
    All,
    /// The values of one part, whose column is still unknown.
    Part,
    /// The values of one part, whose column is known.
    Known,
}

#[derive(Default)]
struct Column {
    numbers: NumberEvidence,
    dates: DateEvidence,
}

impl Columns {
    /// Reads a part of the values. Returns whether some of them may be read otherwise beside the others.
    pub(crate) fn gather<T>(&self, read: impl FnOnce() -> T) -> (T, bool) {
        self.depends.set(false);
        let done = self.with(Reading::Part, read);
        (done, self.depends.take())
    }

    /// Reads a part of the values beside all that were gathered.
    pub(crate) fn among_all<T>(&self, read: impl FnOnce() -> T) -> T {
        self.with(Reading::Known, read)
    }

    fn with<T>(&self, reading: Reading, read: impl FnOnce() -> T) -> T {
        let usual = self.reading.replace(reading);
        let done = read();
        self.reading.set(usual);
        done
    }

    /// Notes that what is read now is to be read again, if others of its column are still to come.
    pub(crate) fn puts_off(&self) -> bool {
        let puts_off = self.reading.get() == Reading::Part;
        self.depends.set(self.depends.get() || puts_off);
        puts_off
    }

    /// What shows how these numbers are written.
    pub(crate) fn numbers(&self, step: &dyn Processor, numbers: &Numbers) -> NumberEvidence {
        match self.reading.get() {
            Reading::All => numbers.evidence(),
            Reading::Part => {
                let own = numbers.evidence();
                self.add(step, numbers.depend_on_others(), |column| {
                    column.numbers.merge(&own);
                });
                own
            }
            Reading::Known => self.known(step, |column| column.numbers.clone()),
        }
    }

    /// Which number of these dates is the day, as far as it is shown.
    pub(crate) fn order(&self, step: &dyn Processor, dates: &Dates) -> Option<DateOrder> {
        match self.reading.get() {
            Reading::All => dates.evidence().order(),
            Reading::Part => {
                let own = dates.evidence();
                self.add(step, dates.depend_on_others(), |column| {
                    column.dates.merge(&own);
                });
                own.order()
            }
            Reading::Known => self.known(step, |column| column.dates.order()),
        }
    }

    fn add(&self, step: &dyn Processor, depends: bool, merge: impl FnOnce(&mut Column)) {
        self.depends.set(self.depends.get() || depends);
        merge(self.of_step.borrow_mut().entry(address(step)).or_default());
    }

    fn known<T: Default>(&self, step: &dyn Processor, take: impl FnOnce(&Column) -> T) -> T {
        let of_step = self.of_step.borrow();
        of_step.get(&address(step)).map(take).unwrap_or_default()
    }
}

/// A processor stays where it is as long as its mapping.
fn address(step: &dyn Processor) -> usize {
    ptr::from_ref(step).addr()
}
