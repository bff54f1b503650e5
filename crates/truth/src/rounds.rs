//! Learns about sites and records by expectation maximisation: two steps alternate.
//!
//! The first step computes the probability of each value from the precision of each cell and the share of wrong
//! records. The second step counts precisions and errors again, from these probabilities. A record may be contradicted
//! by other sites, other kinds of anchors or a search of the page. Then a page that disagrees with the record does not
//! count as wrong.

use crate::cells::weigh_kinds;
use crate::evidence::FieldShape;
use crate::foreign::Pages;
use crate::index::Index;
use crate::model::{Counts, Frequencies, Model};
use crate::{copies, several, single};

const ROUNDS: usize = 25;
/// After these rounds, sites are compared with each other to find copies.
const COMPARED_AFTER: [usize; 4] = [2, 5, 10, 18];

impl Model {
    pub fn learn(index: &Index) -> Model {
        let frequencies = Frequencies::new(index);
        let mut model = Model::new(index, &frequencies);
        for round in 1..=ROUNDS {
            model.run_round(index, &frequencies);
            if COMPARED_AFTER.contains(&round) {
                model.votes = copies::vote_weights(index, &model);
            }
        }
        model
    }

    fn run_round(&mut self, index: &Index, frequencies: &Frequencies) {
        let mut counts = Counts::new(index);
        let mut cells = index.cells.clone();
        self.records.compared.fill(0.0);
        self.records.wrong.fill(0.0);
        let mut records = Vec::new();
        for item in &index.items {
            // If one site reads the item and no known value was held out, nothing shows how often the site is right.
            let measured =
                item.sites > 1 || index.known_values(item).iter().any(|known| known.held_out);
            if !measured && index.known_values(item).is_empty() {
                continue;
            }
            let right = match index.shape(item) {
                FieldShape::Single => {
                    single::expectation_step(index, self, item, &mut counts, &mut records)
                }
                FieldShape::Several => {
                    several::expectation_step(index, self, item, &mut counts, &mut records)
                }
            };
            if !measured {
                continue;
            }
            for (place, (reading, right)) in index.readings_of(item).iter().zip(right).enumerate() {
                if reading.leads {
                    // A reading counts by the probability that its page belongs to the row. On a page of another row,
                    // an extraction chain that reads another value is not wrong.
                    let own = f64::from(self.own[item.readings.start + place]);
                    let right = right.min(own);
                    let wrong = own - right;
                    let cell = &mut cells[reading.cell as usize];
                    cell.trials += own;
                    cell.right += right;
                    counts.right[reading.pattern as usize] += right;
                    counts.wrong[reading.pattern as usize] += wrong;
                    counts.fits_right[reading.fit as usize] += right;
                    counts.fits_wrong[reading.fit as usize] += wrong;
                }
            }
        }
        for (field, wrong) in records {
            self.records.compared[field as usize] += 1.0;
            self.records.wrong[field as usize] += wrong;
        }
        weigh_kinds(&mut cells, index.sites.len(), index.shapes.len());
        self.cells = cells;
        self.weigh_patterns(&counts, frequencies);
        self.records.update();
        self.update(index, &counts);
        self.compare_pages(index);
    }

    fn compare_pages(&mut self, index: &Index) {
        let mut pages = std::mem::replace(&mut self.pages, Pages::new());
        pages.compare_with_records(index, self);
        for item in &index.items {
            for (place, reading) in item.readings.clone().zip(index.readings_of(item)) {
                self.own[place] = pages.probability_of_own_page(index, self, item, reading) as f32;
            }
        }
        self.pages = pages;
    }
}
