//! `webfill fill`: completes a table from the pages that its rows link to, and proves each value.
//!
//!     table ─► plan ─► sample ─► fetch ─► learn ─► read ─► judge
//!                                  ▲                         │ what is worth fetching
//!                                  └──────── fetch ◄─────────┤
//!                                                            ▼
//!                              filled table, evidence, doubts, summary
//!
//! Each stage may be run again: stored pages are not requested again, existing mappings are used unchanged, and
//! everything else is computed from these. So the same command resumes after any interruption, and gives the same
//! outputs.

mod by_fleet;
mod casing;
mod clock_style;
mod collection;
mod deciding;
mod doubts;
mod evidence;
mod excerpt;
mod file_form;
mod form;
mod former;
mod judgement;
mod known;
mod learning;
mod likeness;
mod linked;
mod mappings;
mod nouns;
mod number_style;
mod options;
mod overview;
mod pages;
mod placeholders;
mod plan;
mod project;
mod reading;
mod report;
mod review;
mod sample;
mod shortened_lists;
mod stored_page;
mod summary;
mod table;
mod tally;
mod transient_ends;
mod typography;
mod unseen;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault, log, signals};

use self::collection::Collection;
use self::deciding::State;
use self::doubts::Answers;
pub use self::doubts::open_doubts;
use self::evidence::Sources;
use self::judgement::Verdict;
use self::mappings::Mappings;
use self::nouns::count_with_noun;
pub use self::options::FillOptions;
use self::overview::{Overview, Stage, Step};
use self::pages::Pages;
use self::plan::Plan;
pub use self::project::Project;
use self::reading::Readings;
use self::report::Report;
use self::summary::Summary;
use self::table::{Change, Refused, Table};
use self::tally::Tallies;
use crate::cli::ProgressStyle;
use crate::mapping_command::learn::run_on_thread;
use crate::mapping_command::writing::{require_writable, write_atomically};
use crate::settings::Settings;
use crate::stdout::print;

/// The most rounds of fetching and learning. Rounds fetch the sample, the remaining pages, pages of other layouts, and
/// pages behind links.
const MOST_ROUNDS: usize = 8;

/// The most links that are followed from one page.
const MOST_BEHIND: usize = 10;

pub fn run(options: FillOptions) -> Result<ExitStatus, Fault> {
    run_on_thread("fill", move || match options.table.clone() {
        Some(table) => {
            options::require_file_name(&table)?;
            let project = Project::new(&table);
            Fill::prepare(options, project, &table)?.run()
        }
        None => run_on_collection(options),
    })
}

/// Completes a MongoDB collection, through a copy of its documents.
fn run_on_collection(options: FillOptions) -> Result<ExitStatus, Fault> {
    let project = Project::for_collection(&options.collection.table_file_name()?);
    project.require_own_folder()?;
    let collection = options.collection.open(!options.dry_run)?;
    if options.dry_run {
        let name = format!("webfill-fill-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).map_err(|error| Fault::unwritable(&folder, &error))?;
        let copy = folder.join(options.collection.table_file_name()?);
        let copied = collection.copy_documents(&project, &copy);
        let planned = copied.and_then(|()| Fill::prepare(options, project, &copy)?.run());
        // If the temporary folder cannot be removed, it only takes up space.
        let _ = std::fs::remove_dir_all(&folder);
        return planned;
    }
    let lock = project.open()?;
    let copy = project.copy_file();
    collection.copy_documents(&project, &copy)?;
    let mut fill = Fill::prepare(options, project, &copy)?;
    fill.lock = Some(lock);
    fill.collection = Some(collection);
    fill.run()
}

/// A table that was read, with valid settings.
struct Fill {
    options: FillOptions,
    settings: Settings,
    project: Project,
    table: Table,
    answers: Answers,
    /// The values that a person has accepted, by row and column.
    accepted: BTreeMap<(u64, usize), Change>,
    /// The lock of the project. For a collection, it is held from before the copy is made.
    lock: Option<StateFolder>,
    /// The collection that the table was copied from, and that values are written back to.
    collection: Option<Collection>,
}

impl Fill {
    fn prepare(options: FillOptions, project: Project, path: &Path) -> Result<Fill, Fault> {
        let settings = options.web.settings(&project)?;
        let mut table = Table::read(path, &options)?;
        print(&table.understanding)?;
        project.require_own_folder()?;
        let bad_rows = project.bad_rows_file();
        table.report_faults(&match options.dry_run {
            true => String::from("which are listed without --dry-run"),
            false => format!("all of them in {}", bad_rows.display()),
        });
        if table.understanding.urls.is_empty() {
            return Err(Fault::usage(match table.rows.is_empty() {
                true => "the table has no rows to complete",
                false => "the table has no column of links: name it with --url",
            }));
        }
        let mut answers = doubts::load_answers(&project, options.doubts.as_deref())?;
        let accepted = doubts::apply_answers(&mut table, &mut answers);
        Ok(Fill {
            options,
            settings,
            project,
            table,
            answers,
            accepted,
            lock: None,
            collection: None,
        })
    }

    fn run(mut self) -> Result<ExitStatus, Fault> {
        let mut pages = Pages::open(&self.options.web, &self.project)?;
        pages.allow_http(&self.table);
        let plan = Plan::new(
            &self.table,
            self.options.check,
            usize::from(self.options.sample),
            match self.options.web.dispatcher {
                // The delay of a fleet is not known here.
                Some(_) => None,
                None => Some(self.settings.politeness.delay()),
            },
            |url| pages.is_settled(url),
        );
        print(plan.text())?;
        if self.options.dry_run {
            return Ok(ExitStatus::Done);
        }
        if self.options.web.dispatcher.is_none() {
            self.settings.require_contact()?;
        }
        if let Some(report) = &self.options.report {
            require_writable(report)?;
        }
        signals::install_handlers();
        let _lock = match self.lock.take() {
            Some(lock) => lock,
            None => self.project.open()?,
        };
        let _log = log::start(&self.project.logs_folder(), "fill", &self.settings.log)?;
        let bad_rows: String = self
            .table
            .faults
            .iter()
            .map(|fault| format!("{fault}\n"))
            .collect();
        write_atomically(&self.project.bad_rows_file(), bad_rows.as_bytes())?;
        let wishes = serde_json::json!({
            "id": self.options.id,
            "urls": self.options.url,
            "fields": self.options.fields,
            "keep": self.options.keep,
        });
        write_atomically(&self.project.wishes_file(), wishes.to_string().as_bytes())?;
        doubts::save_answers(&self.project, &self.answers)?;
        self.overview(&pages)
            .write(&self.project, Stage::Running, None, None)?;
        let (mappings, readings, verdict) = self.fill_until_done(&mut pages)?;
        self.finish(&pages, &mappings, &readings, verdict)
    }

    /// Fetches, learns and reads in rounds, until no more gaps can be filled.
    fn fill_until_done(
        &self,
        pages: &mut Pages<'_>,
    ) -> Result<(Mappings, Readings, Verdict), Fault> {
        let (table, project, precision) = (&self.table, &self.project, self.options.precision);
        let most = usize::from(self.options.sample);
        let mut mappings = Mappings::load(project)?;
        let mut sample = sample::choose_links(table, most);
        // A site without known values can be learned only with the help of other sites.
        let knowing = sample::sites_with_known_values(table);
        sample.retain(|&link| {
            let link = &table.links[link as usize];
            knowing.contains(&*link.site)
                || mappings.covers(&link.url)
                || unseen::is_worth_a_sample(&knowing, &link.site)
        });
        self.report_step(Step::Fetch, pages, None);
        self.fetch(pages, sample.iter().copied())?;
        self.report_step(Step::Learn, pages, None);
        if learning::learn_unmapped_pages(table, project, pages, &mappings, &sample)? {
            mappings = Mappings::load(project)?;
        }
        let withdrawn = unseen::rejected_fields(&self.answers);
        let outdated = unseen::outdated_sites(table, pages, &mappings, &withdrawn);
        if !outdated.is_empty() {
            learning::learn(table, project, pages, &mappings, &outdated)?;
            mappings = Mappings::load(project)?;
            // If a site is still outdated (its proposed fields have known values now, or a person has rejected them),
            // nothing could be learned for it. Remove its former mappings, because they are wrong.
            for site in unseen::outdated_sites(table, pages, &mappings, &withdrawn).keys() {
                mappings.remove(site)?;
            }
            mappings = Mappings::load(project)?;
        }
        let mut proposed = BTreeSet::new();
        let mut readings = Readings::new();
        let mut rounds = 0;
        loop {
            self.report_step(Step::Read, pages, None);
            reading::read_pages(table, pages, &mappings, &mut readings)?;
            let others =
                learning::pages_of_other_layouts(table, project, pages, &mappings, &readings, most);
            if learning::relearn(table, project, pages, &mappings, &others)? {
                mappings = Mappings::load(project)?;
                reading::read_pages(table, pages, &mappings, &mut readings)?;
            }
            if unseen::propose_fields(table, project, pages, &mappings, &withdrawn, &mut proposed)?
            {
                mappings = Mappings::load(project)?;
                reading::read_pages(table, pages, &mappings, &mut readings)?;
            }
            self.report_step(Step::Judge, pages, None);
            let verdict = judgement::decide_values(table, pages, &mappings, &readings, precision);
            let tallies = Tallies::from_verdict(table, &verdict);
            self.overview(pages)
                .write(project, Stage::Running, Some(&tallies), None)?;
            self.report_step(Step::Fetch, pages, Some(&tallies));
            let mut worth = verdict.fields_worth_fetching(&mappings, precision);
            worth.extend(unseen::fields_worth_fetching(table, &mappings, precision));
            let before = pages.requested;
            self.fetch(pages, self.links_worth_fetching(pages, &worth).into_iter())?;
            pages.fetch(&self.links_to_follow(pages, &readings, &worth))?;
            rounds += 1;
            if pages.requested == before || rounds == MOST_ROUNDS {
                return Ok((mappings, readings, verdict));
            }
        }
    }

    /// Prints which step begins, if the progress is printed for programs.
    fn report_step(&self, step: Step, pages: &Pages<'_>, tallies: Option<&Tallies>) {
        if self.options.web.progress == ProgressStyle::Json {
            self.overview(pages).print_step(step, tallies);
        }
    }

    fn overview<'o>(&'o self, pages: &'o Pages<'o>) -> Overview<'o> {
        Overview {
            table: &self.table,
            pages,
            precision: self.options.precision,
        }
    }

    fn fetch(&self, pages: &mut Pages<'_>, links: impl Iterator<Item = u32>) -> Result<(), Fault> {
        let urls: Vec<String> = links
            .map(|link| self.table.links[link as usize].url.clone())
            .collect();
        pages.fetch(&urls)
    }

    /// The links whose pages are worth fetching: those of rows with gaps that will probably be filled, and of rows to
    /// check.
    fn links_worth_fetching(
        &self,
        pages: &Pages<'_>,
        worth: &BTreeSet<(String, usize)>,
    ) -> Vec<u32> {
        let table = &self.table;
        let most = usize::from(self.options.sample);
        let to_check = sample::links_to_check(table, self.options.check, most);
        // For each site of the table's links, the fields worth filling. If its links redirect to another site, the
        // fields of that site count.
        let mut fields: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
        for link in table.links.iter() {
            let target = pages.site_of(link);
            if seen.insert((&*link.site, target.clone())) {
                let of_target = worth.iter().filter(|(site, _)| *site == target);
                let of_link = fields.entry(&link.site).or_default();
                of_link.extend(of_target.map(|(_, field)| *field));
            }
        }
        let is_wanted = |place: &u32| {
            let Some(fields) = fields.get(&*table.links[*place as usize].site) else {
                return false;
            };
            let mut rows = table.links.rows_of(*place).iter();
            let is_worth = |field: usize| fields.contains(&field);
            rows.any(|&row| table.rows[row as usize].gaps().any(is_worth))
                || (to_check.contains(place) && !fields.is_empty())
        };
        (0..table.links.len() as u32).filter(is_wanted).collect()
    }

    /// Links on rows' pages that may lead to values missing on those pages.
    fn links_to_follow(
        &self,
        pages: &Pages<'_>,
        readings: &Readings,
        worth: &BTreeSet<(String, usize)>,
    ) -> Vec<String> {
        let mut behind = BTreeSet::new();
        for row in &self.table.rows {
            for &link in &row.links {
                let link = &self.table.links[link as usize];
                let target = pages.target(&link.url);
                let Some(reading) = target.and_then(|(url, _)| readings.get(url)) else {
                    continue;
                };
                let site = pages.site_of(link);
                let is_read = |field| reading.fields.iter().any(|one| one.field == field);
                let is_worth = |field| worth.contains(&(site.clone(), field));
                if row.gaps().any(|field| !is_read(field) && is_worth(field)) {
                    // Links that are also links of rows are left out, because their pages are fetched anyway.
                    let others = reading
                        .links
                        .iter()
                        .filter(|url| !self.table.links.is_link_of_row(url));
                    behind.extend(others.take(MOST_BEHIND).cloned());
                }
            }
        }
        behind.into_iter().collect()
    }

    /// Writes all output files, and prints the summary.
    fn finish(
        &self,
        pages: &Pages<'_>,
        mappings: &Mappings,
        readings: &Readings,
        mut verdict: Verdict,
    ) -> Result<ExitStatus, Fault> {
        self.report_step(Step::Write, pages, None);
        let mut changes: HashMap<(u64, usize), Change> = HashMap::new();
        let mut rejected = Refused::new();
        for cell in verdict
            .cells
            .iter()
            .filter(|cell| cell.state == State::Filled)
        {
            let field = &self.table.fields[cell.field];
            let row = self.table.rows[cell.row as usize].number;
            let answered = self.answers.rejected.get(&(row, field.column));
            if answered.is_some_and(|values| reading::agrees(values, &cell.values)) {
                rejected.insert((row, field.column), String::from("you have rejected it"));
                continue;
            }
            let change = Change {
                values: field.distinct(&cell.values),
                old: Vec::new(),
                is_accepted: false,
            };
            changes.insert((row, field.column), change);
        }
        changes.extend(self.accepted.clone());
        // The filled table comes first, because it shows which values do not fit their column.
        let filled = self.project.filled_table_file();
        let mut refused = self.table.write_filled(&filled, &changes)?;
        refused.extend(rejected);
        verdict.note_refused(&self.table, &refused);
        let verdict = &verdict;
        let sources = Sources {
            table: &self.table,
            pages,
            mappings,
            readings,
        };
        let doubtful = doubts::cells_to_review(&self.table, verdict, &self.answers);
        let questions = doubtful.iter().filter(|cell| cell.is_proposed).count();
        evidence::write_evidence(&self.project, &sources, verdict)?;
        doubts::write_doubts(&self.project, &sources, &doubtful, &self.answers)?;
        // Writing to the collection comes last, so that each written value has its evidence.
        let written = match &self.collection {
            Some(collection) => {
                let count = collection.write_back(&self.project)?;
                format!("{} to {}", count_with_noun(count, "value"), collection.name)
            }
            None => filled.display().to_string(),
        };
        let tallies = Tallies::from_verdict(&self.table, verdict);
        if let Some(file) = &self.options.report {
            let report = Report {
                sources: &sources,
                project: &self.project,
                verdict,
                tallies: &tallies,
                doubtful: &doubtful,
                precision: self.options.precision,
            };
            report.write(file)?;
        }
        let summary = Summary {
            table: &self.table,
            project: &self.project,
            pages,
            tallies: &tallies,
            report: self.options.report.as_deref(),
            written,
            doubts: doubtful.len() - questions,
            questions,
            accepted: self.accepted.len(),
            idle_answers: self.answers.idle,
        };
        let stage = match pages.cut_short {
            Some(_) => Stage::CutShort,
            None => Stage::Complete,
        };
        self.overview(pages)
            .write(&self.project, stage, Some(&tallies), Some(doubtful.len()))?;
        self.report_step(Step::Done, pages, Some(&tallies));
        print(summary.text())?;
        Ok(pages.cut_short.unwrap_or(ExitStatus::Done))
    }
}
