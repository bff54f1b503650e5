//! Measures sites without known values: how well their values are learned from other sites of the same vertical. A
//! vertical is a group of sites about things of one kind.
//!
//! Each generated site in turn is the unknown one; one, two or three others have all their values known. F1 is computed
//! by page for each field of each site, and the figure is the mean. Proposals with a probability of at least 0.95 are
//! filled without a question, so they are judged separately. `LEARN_PAGES` names a folder of real pages with true
//! values, as for `learning`; there the sites whose names begin alike teach each other.
//!
//!     unseen             all of it
//!     unseen --show      and the fields that are missed
//!     unseen --others    the subjects that the learner's weights were estimated on, but other sites

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use webfill_bench::made_verticals::{Kind, MEASURED, OTHERS};
use webfill_bench::sites::{Failure, LabelledPage, Site, load_labelled_sites};
use webfill_bench::{Limit, Size, Verdict, report};
use webfill_learn::{Page, Proposal, ProposedField, Teachers, common_form};
use webfill_mapping::PageKind;

/// The number of pages of a generated site.
const PAGES: usize = 12;

/// The weights were estimated on sites with lower numbers.
const FIRST_OF_OTHERS: u64 = 1_000;

/// A field is filled without a question if its confidence is at least this.
const SURE: f64 = 0.95;

/// A group of sites about things of one kind (such as books), with the fields of these things.
struct Vertical {
    name: String,
    fields: Vec<ProposedField>,
    sites: Vec<Site>,
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let shows = std::env::args().any(|word| word == "--show");
    let is_of_others = std::env::args().any(|word| word == "--others");
    let (subjects, first) = match is_of_others {
        true => (OTHERS, FIRST_OF_OTHERS),
        false => (MEASURED, 0),
    };
    let sites = first..first + size.pick(8, 5);
    let made: Vec<Vertical> = subjects
        .iter()
        .map(|vertical| Vertical {
            name: vertical.name.to_owned(),
            fields: vertical
                .fields
                .iter()
                .map(|part| proposed_field(part.column, matches!(part.kind, Kind::SomeOf(_))))
                .collect(),
            sites: sites
                .clone()
                .map(|site| vertical.site(site, PAGES))
                .collect(),
        })
        .collect();
    let mut verdicts = Vec::new();
    for taught in [1, 2, 3] {
        let judged = ProposalScores::measure(&made, taught, shows);
        println!("made verticals, {taught} taught: {}", judged.summary_text());
        judged.print_calibration();
        if taught == 3 {
            verdicts.push(verdict_at_least(
                "page F1 from three sites",
                judged.f1(),
                0.8,
            ));
        }
        let what = format!("sure values that are right, {taught} taught, share");
        verdicts.push(verdict_at_least(&what, judged.precision(), 0.95));
    }
    match std::env::var_os("LEARN_PAGES") {
        Some(folder) => {
            let real = verticals_of(load_labelled_sites(Path::new(&folder))?);
            println!(
                "LEARN_PAGES: {}",
                ProposalScores::measure(&real, 1, shows).summary_text()
            );
        }
        None => println!("unseen: LEARN_PAGES names no folder of pages with true values"),
    }
    Ok(report(&verdicts, size))
}

fn verdict_at_least(what: &str, figure: f64, least: f64) -> Verdict {
    Verdict {
        what: format!("unseen sites: {what}"),
        figure,
        limit: Limit::AtLeast(least),
    }
}

fn proposed_field(name: &str, is_list: bool) -> ProposedField {
    ProposedField {
        name: name.to_owned(),
        title: name.replace('_', " "),
        is_list,
    }
}

/// Groups sites by the first part of their names. A site that is alone in its group is left out.
fn verticals_of(sites: Vec<Site>) -> Vec<Vertical> {
    let mut by_name: BTreeMap<String, Vec<Site>> = BTreeMap::new();
    for site in sites {
        let name = site.name.split('-').next().unwrap_or_default().to_owned();
        by_name.entry(name).or_default().push(site);
    }
    by_name.retain(|_, sites| sites.len() > 1);
    let vertical = |(name, sites): (String, Vec<Site>)| {
        let all = sites.iter().flat_map(|site| &site.pages);
        let names: std::collections::BTreeSet<&String> =
            all.flat_map(|page| page.truth.keys()).collect();
        Vertical {
            fields: names
                .into_iter()
                .map(|name| proposed_field(name, false))
                .collect(),
            name,
            sites,
        }
    };
    by_name.into_iter().map(vertical).collect()
}

#[derive(Default)]
struct ProposalScores {
    f1s: Vec<f64>,
    /// The numbers of pages with a value, of pages with a proposal that is certain enough, and of such proposals that
    /// are right.
    all: usize,
    sure: usize,
    sure_right: usize,
    /// The proposals of fields, by their confidence in steps of a tenth: how many there are, the sum of their
    /// confidences, and the sum of the shares of right values.
    by_confidence: [(usize, f64, f64); 10],
}

impl ProposalScores {
    fn measure(verticals: &[Vertical], taught: usize, shows: bool) -> ProposalScores {
        let mut judged = ProposalScores::default();
        for vertical in verticals {
            let count = vertical.sites.len();
            let known: Vec<Vec<Page>> = vertical
                .sites
                .iter()
                .map(|site| {
                    let page = |page: &LabelledPage| known_page(page, &vertical.fields);
                    site.pages.iter().map(page).collect()
                })
                .collect();
            for unknown in 0..count {
                let teaching: Vec<Vec<&Page>> = (1..=taught.min(count - 1))
                    .map(|step| known[(unknown + step) % count].iter().collect())
                    .collect();
                let teachers = Teachers::new(&teaching, &vertical.fields);
                let pages: Vec<Page> = known[unknown]
                    .iter()
                    .map(|page| Page {
                        known: BTreeMap::new(),
                        ..page.clone()
                    })
                    .collect();
                let pages: Vec<&Page> = pages.iter().collect();
                let wanted: Vec<usize> = (0..vertical.fields.len()).collect();
                let proposals = teachers.propose(&pages, &wanted);
                for field in &vertical.fields {
                    let mut of_taught = teaching.iter().flatten();
                    if of_taught.any(|page| page.known.contains_key(&field.name)) {
                        let proposal = proposals.iter().find(|one| one.field == field.name);
                        let f1 = judged.score_field(&vertical.sites[unknown], field, proposal);
                        if shows && f1.is_some_and(|f1| f1 < 0.9) {
                            println!(
                                "  {} {}: {f1:?}, {:?}",
                                vertical.name,
                                vertical.sites[unknown].name,
                                proposal.map(|one| (&one.field, one.confidence, &one.values[0]))
                            );
                        }
                    }
                }
            }
        }
        judged
    }

    /// Computes F1 for a field that the site has. A proposal for a page without a value counts as wrong.
    fn score_field(
        &mut self,
        site: &Site,
        field: &ProposedField,
        proposal: Option<&Proposal>,
    ) -> Option<f64> {
        let (mut there, mut said, mut right) = (0, 0, 0);
        for (at, page) in site.pages.iter().enumerate() {
            let truth = page.truth.get(&field.name).map_or(&[][..], Vec::as_slice);
            there += usize::from(!truth.is_empty());
            let Some(proposal) = proposal.filter(|one| !one.values[at].is_empty()) else {
                continue;
            };
            said += 1;
            let is_right = is_right(&proposal.values[at], truth, field.is_list);
            right += usize::from(is_right);
            if proposal.confidence >= SURE {
                self.sure += 1;
                self.sure_right += usize::from(is_right);
            }
        }
        if let Some(proposal) = proposal.filter(|_| said > 0) {
            let step = ((proposal.confidence * 10.0) as usize).min(9);
            let (count, confidence, share) = &mut self.by_confidence[step];
            *count += 1;
            *confidence += proposal.confidence;
            *share += f64::from(right as u32) / f64::from(said as u32);
        }
        self.all += there;
        let f1 = (there > 0).then(|| 2.0 * f64::from(right as u32) / (there + said) as f64);
        self.f1s.extend(f1);
        f1
    }

    /// Shows for each step of confidence how many values are right.
    fn print_calibration(&self) {
        for (count, confidence, share) in self.by_confidence.iter().filter(|one| one.0 > 0) {
            let mean = |sum: f64| sum / *count as f64;
            println!(
                "  {count:4} fields said {:.3}, right {:.3}",
                mean(*confidence),
                mean(*share)
            );
        }
    }

    fn f1(&self) -> f64 {
        self.f1s.iter().sum::<f64>() / self.f1s.len().max(1) as f64
    }

    fn precision(&self) -> f64 {
        self.sure_right as f64 / self.sure.max(1) as f64
    }

    fn summary_text(&self) -> String {
        format!(
            "page F1 {:.3} of {} fields; at {SURE} and above {:.3} of {} values, {:.3} of them right",
            self.f1(),
            self.f1s.len(),
            self.sure as f64 / self.all.max(1) as f64,
            self.all,
            self.precision()
        )
    }
}

fn is_right(proposed: &[String], truth: &[String], is_list: bool) -> bool {
    let forms = |values: &[String]| -> std::collections::BTreeSet<String> {
        values.iter().map(|value| common_form(value)).collect()
    };
    let (proposed, truth) = (forms(proposed), forms(truth));
    match is_list {
        true => proposed == truth,
        // A real page has several true values, which are spellings of one value.
        false => proposed.is_subset(&truth),
    }
}

fn known_page(page: &LabelledPage, fields: &[ProposedField]) -> Page {
    let known = fields.iter().filter_map(|field| {
        let mut values = page.truth.get(&field.name)?.clone();
        if !field.is_list {
            values.truncate(1);
        }
        (!values.is_empty()).then(|| (field.name.clone(), values))
    });
    Page {
        url: page.url.clone(),
        kind: PageKind::Html,
        text: page.html.clone(),
        record: None,
        known: known.collect(),
        said: BTreeMap::new(),
    }
}
