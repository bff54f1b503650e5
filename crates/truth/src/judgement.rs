//! The result of [`estimate`](crate::estimate): values with their confidence, precisions of layouts, wrong records, and
//! which fields may be filled.

use crate::cells::Cell;
use crate::evidence::FieldShape;
use crate::index::{Index, Item};
use crate::interval::{Interval, wilson_interval};
use crate::model::Model;
use crate::{several, single};

/// All conclusions from the evidence.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The judgement of each item that a page claims a value for, sorted by number.
    pub items: Vec<ItemJudgement>,
    /// Known values of records that pages contradict, the most doubtful first.
    pub doubts: Vec<Doubt>,
    /// The precision of each layout for each field that it claims values for, sorted by layout and field.
    pub precisions: Vec<Precision>,
    /// For each field, the share of wrong values among the known values that were compared with a page.
    pub record_errors: Vec<Interval>,
    cells: Vec<Cell>,
}

/// The truth about one item, as far as pages show it.
#[derive(Debug, Clone)]
pub struct ItemJudgement {
    pub item: u32,
    pub field: u32,
    /// The values to choose if only the pages count, not the record's own value; the most certain first. A list has all
    /// values with a probability above one half, or else the most probable one. Other fields have one value.
    pub chosen: Vec<JudgedValue>,
    /// The other claimed values, the most probable first.
    pub rejected: Vec<JudgedValue>,
    /// The probability that exactly the chosen values are true. For a list, values that no extraction chain reads are
    /// not considered.
    pub confidence: f64,
}

/// A value that pages claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedValue {
    pub value: u32,
    /// The probability that the value is true.
    pub confidence: f64,
    /// How many sites and how many pages claim the value, and by how many kinds of anchors, summed over sites.
    pub sites: u32,
    pub pages: u32,
    pub anchors: u32,
}

/// A known value that a page contradicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    pub item: u32,
    pub field: u32,
    pub known: u32,
    /// The most probable value that the record does not have. For a list, there may be no such value.
    pub instead: Option<u32>,
    /// The probability that the record is wrong, not the page.
    pub surely: f64,
}

/// The precision of a layout for a field: the share of its readings that are right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    pub site: u32,
    pub layout: u32,
    pub field: u32,
    /// How many readings were compared with the truth, as known from held-out values or other sites.
    pub measured: f64,
    /// How many of these readings are probably right.
    pub right: f64,
    /// The expected precision and its 95 % bounds. With few measurements, they are close to those of similar layouts
    /// and fields.
    pub interval: Interval,
}

/// Whether a field of a layout may be filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    pub fill: bool,
    pub why: DecisionReason,
    pub precision: Precision,
    /// The probability that the precision is at least the required one.
    pub certainty: f64,
}

/// The reason for a [`Decision`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionReason {
    /// The layout is precise enough, with the required certainty.
    Precise,
    /// The layout may be precise enough, but too few values were measured.
    TooFewMeasured,
    /// The measurements suggest that the layout is not precise enough.
    NotPrecise,
    /// The layout claims no value of the field.
    NothingRead,
}

impl Judgement {
    /// A known value with at least this probability of being wrong counts as a likely error.
    pub const DOUBTED: f64 = 0.5;
    /// How probable it must be that a layout is precise enough before it fills a field. For a required precision of
    /// .95, three measured values usually suffice if all agree.
    pub const CERTAINTY: f64 = 0.9;

    pub(crate) fn new(index: &Index, model: &Model) -> Judgement {
        let items = index
            .items
            .iter()
            .map(|item| judge_item(index, model, item))
            .collect();
        let mut doubts: Vec<Doubt> = Vec::new();
        for item in &index.items {
            doubts.extend(find_doubts(index, model, item));
        }
        doubts.sort_by(|a, b| {
            b.surely
                .total_cmp(&a.surely)
                .then((a.item, a.known).cmp(&(b.item, b.known)))
        });
        Judgement {
            items,
            doubts,
            precisions: model
                .units
                .iter()
                .map(|cell| precision_of_cell(index, cell))
                .collect(),
            record_errors: (0..index.shapes.len())
                .map(|field| {
                    wilson_interval(model.records.wrong[field], model.records.compared[field])
                })
                .collect(),
            cells: model.units.clone(),
        }
    }

    /// The judgement of one item; `None` if no page claims a value of it.
    pub fn item(&self, item: u32) -> Option<&ItemJudgement> {
        let place = self
            .items
            .binary_search_by_key(&item, |judged| judged.item)
            .ok()?;
        Some(&self.items[place])
    }

    /// The doubts about records that are more likely wrong than the page, the most doubtful first.
    pub fn likely_errors(&self) -> &[Doubt] {
        let end = self
            .doubts
            .partition_point(|doubt| doubt.surely >= Self::DOUBTED);
        &self.doubts[..end]
    }

    /// Whether the values that a layout reads for a field may fill gaps. At least the share `wished` of them should be
    /// right.
    pub fn decide_fill(&self, layout: u32, field: u32, wished: f64) -> Decision {
        let place = self
            .cells
            .binary_search_by_key(&(layout, field), |cell| (cell.layout, cell.field));
        let Ok(place) = place else {
            return Decision {
                fill: false,
                why: DecisionReason::NothingRead,
                precision: Precision {
                    site: 0,
                    layout,
                    field,
                    measured: 0.0,
                    right: 0.0,
                    interval: wilson_interval(0.0, 0.0),
                },
                certainty: 0.0,
            };
        };
        let cell = &self.cells[place];
        let certainty = cell.probability_at_least(wished);
        let fill = certainty >= Self::CERTAINTY && cell.mean() >= wished;
        let why = if fill {
            DecisionReason::Precise
        } else if cell.right >= wished * cell.trials {
            DecisionReason::TooFewMeasured
        } else {
            DecisionReason::NotPrecise
        };
        Decision {
            fill,
            why,
            precision: self.precisions[place],
            certainty,
        }
    }
}

fn precision_of_cell(index: &Index, cell: &Cell) -> Precision {
    Precision {
        site: index.sites[cell.site as usize],
        layout: cell.layout,
        field: cell.field,
        measured: cell.trials,
        right: cell.right,
        interval: cell.interval(),
    }
}

/// The values of an item with their probabilities, judged by its pages alone, in the order of their numbers.
fn values_by_pages(index: &Index, model: &Model, item: &Item) -> Vec<(u32, f64)> {
    match index.shape(item) {
        FieldShape::Single => single::posterior(index, model, item, None).values,
        FieldShape::Several => several::posterior(index, model, item, false),
    }
}

/// The values of an item with their probabilities, judged by its pages and its record.
fn values_by_pages_and_record(index: &Index, model: &Model, item: &Item) -> Vec<(u32, f64)> {
    match index.shape(item) {
        FieldShape::Single => {
            single::posterior(index, model, item, index.known_values(item).first()).values
        }
        FieldShape::Several => several::posterior(index, model, item, true),
    }
}

fn judge_item(index: &Index, model: &Model, item: &Item) -> ItemJudgement {
    let shape = index.shape(item);
    let mut judged: Vec<JudgedValue> = values_by_pages(index, model, item)
        .into_iter()
        .map(|(value, confidence)| count_support(index, item, value, confidence))
        .collect();
    judged.sort_by(|a, b| {
        b.confidence
            .total_cmp(&a.confidence)
            .then(a.value.cmp(&b.value))
    });
    let chosen = match shape {
        FieldShape::Single => 1,
        FieldShape::Several => judged
            .partition_point(|judged| judged.confidence >= 0.5)
            .max(1),
    };
    let rejected = judged.split_off(chosen.min(judged.len()));
    let confidence = match shape {
        FieldShape::Single => judged[0].confidence,
        FieldShape::Several => confidence_of_list(index, model, item, &judged, &rejected),
    };
    ItemJudgement {
        item: item.number,
        field: item.field,
        chosen: judged,
        rejected,
        confidence,
    }
}

/// The probability that exactly the chosen values of a list are true. It starts from the probability that the layout
/// reads a list correctly. Evidence on this item (other extraction chains, other sites, the form of values) changes the
/// odds of the values. The odds of the list change by the same factor.
fn confidence_of_list(
    index: &Index,
    model: &Model,
    item: &Item,
    chosen: &[JudgedValue],
    rejected: &[JudgedValue],
) -> f64 {
    /// How far probabilities stay away from 0 and 1 at least, so that the odds are finite.
    const BOUND: f64 = 1e-5;
    let bounded = |probability: f64| probability.clamp(BOUND, 1.0 - BOUND);
    let odds = |probability: f64| bounded(probability) / (1.0 - bounded(probability));
    let (mut usual, mut unit, mut own) = (1.0, 0.0_f64, 0.0_f64);
    for value in chosen {
        let mut best = 0.0_f64;
        for (place, reading) in index.readings_of(item).iter().enumerate() {
            if reading.value == value.value {
                // A page of another row makes all values of the list wrong at once. So the probability that the page
                // belongs to the row (`own`) counts once, not for each value.
                let is_own = f64::from(model.own[item.readings.start + place]);
                let cell = reading.cell as usize;
                best = best.max(model.cells[cell].mean() * is_own);
                unit = unit.max(model.units[cell].mean());
                own = own.max(is_own);
            }
        }
        usual *= best;
    }
    let all = chosen
        .iter()
        .map(|judged| judged.confidence)
        .product::<f64>()
        * rejected
            .iter()
            .map(|judged| 1.0 - judged.confidence)
            .product::<f64>();
    let confidence = odds(unit) * odds(all) / odds(usual);
    own * confidence / (1.0 + confidence)
}

fn count_support(index: &Index, item: &Item, value: u32, confidence: f64) -> JudgedValue {
    let mut judged = JudgedValue {
        value,
        confidence,
        sites: 0,
        pages: 0,
        anchors: 0,
    };
    for reading in index
        .readings_of(item)
        .iter()
        .filter(|reading| reading.value == value)
    {
        judged.sites += 1;
        judged.pages += reading.pages;
        judged.anchors += reading.anchors;
    }
    judged
}

/// The known values of an item that the reading of at least one site contradicts.
fn find_doubts(index: &Index, model: &Model, item: &Item) -> Vec<Doubt> {
    let record = index.known_values(item);
    if record.is_empty() {
        return Vec::new();
    }
    let values = values_by_pages_and_record(index, model, item);
    let listed = |value: u32| record.iter().any(|known| known.value == value);
    let instead = values
        .iter()
        .filter(|(value, _)| !listed(*value))
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map(|(value, _)| *value);
    let readings = index.readings_of(item);
    let agreeing = |value: u32| {
        readings
            .iter()
            .filter(|reading| reading.leads && reading.value == value)
            .count()
    };
    values
        .iter()
        .filter(|(value, _)| listed(*value) && agreeing(*value) < item.sites as usize)
        .map(|(value, right)| Doubt {
            item: item.number,
            field: item.field,
            known: *value,
            instead,
            surely: 1.0 - right,
        })
        .collect()
}
