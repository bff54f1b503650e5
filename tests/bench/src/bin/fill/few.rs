//! Measures small tables, as most tables are: ten pages of each site. Some sites are generated. Real ones come from the
//! folder that `LEARN_PAGES` names.

use std::collections::BTreeMap;
use std::path::Path;

use webfill_bench::made_verticals::MEASURED;
use webfill_bench::sites::{Failure, Site, load_labelled_sites};
use webfill_bench::{Limit, Verdict};

use crate::calibration::Calibration;
use crate::catalogue::Catalogue;
use crate::judging::{self, FillQuality};
use crate::running::fill;
use crate::{DIRTY, Draw, SPARSE, USUAL, create_folder, web};

/// The number of pages of a generated site, and the number of sites of each kind.
const PAGES: usize = 10;
const SITES: u64 = 2;

/// The quality that webfill reaches at present on small tables, for one way to spoil them.
pub struct Reached {
    draw: Draw,
    coverage: f64,
    precision: f64,
    wrong_listed: f64,
}

/// The quality that webfill reaches on generated sites.
pub const ON_MADE: [Reached; 3] = [
    Reached {
        draw: USUAL,
        coverage: 0.8,
        precision: 0.985,
        wrong_listed: 0.8,
    },
    Reached {
        draw: SPARSE,
        coverage: 0.2,
        precision: 0.97,
        wrong_listed: 0.0,
    },
    Reached {
        draw: DIRTY,
        coverage: 0.7,
        precision: 0.98,
        wrong_listed: 0.7,
    },
];

/// The quality that webfill reaches on real sites.
pub const ON_REAL: [Reached; 3] = [
    Reached {
        draw: USUAL,
        coverage: 0.95,
        precision: 0.992,
        wrong_listed: 0.97,
    },
    Reached {
        draw: SPARSE,
        coverage: 0.4,
        precision: 0.985,
        wrong_listed: 0.0,
    },
    Reached {
        draw: DIRTY,
        coverage: 0.85,
        precision: 0.985,
        wrong_listed: 0.85,
    },
];

/// A catalogue for each kind of generated things.
pub fn made_catalogues() -> Vec<Catalogue> {
    let of_kind = |vertical: &&webfill_bench::made_verticals::Vertical| {
        let sites: Vec<Site> = (0..SITES).map(|site| vertical.site(site, PAGES)).collect();
        Catalogue::of_sites(vertical.name, &sites)
    };
    MEASURED.iter().map(|vertical| of_kind(&vertical)).collect()
}

/// A catalogue for each group of sites whose names have the same first part, such as `book` in `book-1`.
pub fn real_catalogues(folder: &Path) -> Result<Vec<Catalogue>, Failure> {
    let mut kinds: BTreeMap<String, Vec<Site>> = BTreeMap::new();
    for site in load_labelled_sites(folder)? {
        let kind = site.name.split('-').next().unwrap_or_default().to_owned();
        kinds.entry(kind).or_default().push(site);
    }
    let catalogues = kinds
        .iter()
        .map(|(kind, sites)| Catalogue::of_sites(kind, sites));
    Ok(catalogues.collect())
}

/// Spoils each table in each way, fills it, and judges the results.
pub fn measure(
    name: &str,
    catalogues: &[Catalogue],
    reached: &[Reached],
    draws: u64,
    shows: bool,
    folder: &Path,
) -> Result<Vec<Verdict>, Failure> {
    let address = web::serve(catalogues.iter().flat_map(|one| &one.things))?;
    let mut verdicts = Vec::new();
    for one in reached {
        let mut all = FillQuality::default();
        let mut calibration = Calibration::default();
        println!("{name}, {}:", one.draw.name);
        for draw in 1..=draws {
            for catalogue in catalogues {
                let table = catalogue.draw_table(one.draw.deleted, one.draw.wrong, draw);
                let of_draw = folder.join(format!("{name}-{}-{draw}", catalogue.name));
                let folder = create_folder(&of_draw, &one.draw)?;
                fill(&table, &folder, &address, None)?;
                all.add(&FillQuality::compare_with_truth(&table, &folder)?);
                calibration.add_table(&table, &folder)?;
                if shows {
                    judging::print_mistakes(&table, &folder)?;
                }
            }
        }
        all.print();
        calibration.print();
        verdicts.extend(one.verdicts(name, &all));
    }
    Ok(verdicts)
}

impl Reached {
    fn verdicts(&self, name: &str, judged: &FillQuality) -> Vec<Verdict> {
        let verdict = |what: &str, figure, limit| Verdict {
            what: format!("{name}, {}: {what}", self.draw.name),
            figure,
            limit,
        };
        vec![
            verdict(
                "gaps filled",
                judged.coverage(),
                Limit::AtLeast(self.coverage),
            ),
            verdict(
                "of fields that the site knows",
                judged.coverage_of_known_fields(),
                Limit::None,
            ),
            verdict(
                "filled values that are right",
                judged.precision(),
                Limit::AtLeast(self.precision),
            ),
            verdict("rows completed", judged.completed_row_share(), Limit::None),
            verdict(
                "wrong ones listed",
                judged.wrong_listed_share(),
                Limit::AtLeast(self.wrong_listed),
            ),
            verdict(
                "right ones listed",
                judged.right_listed_share(),
                Limit::AtMost(0.005),
            ),
        ]
    }
}
