//! `webfill mapping test --all`: runs the golden cases of mappings.

use std::sync::Arc;

use serde_json::{Value, json};
use webfill_mapping::{Engine, Limits, MappingSet};
use webfill_service::{ExitStatus, Fault};

use super::difference::lines_that_differ;
use super::fetching::PageProvider;
use super::golden::{Case, Difference, cases_of};
use super::page::Page;
use super::save::{compared_parts, golden_folder};
use crate::cli::{MappingTestOptions, TrialFormat};
use crate::demand::table::without_control_characters;
use crate::mapping_files::load_files;
use crate::stdout::print;

pub fn run(options: &MappingTestOptions) -> Result<ExitStatus, Fault> {
    let set = Arc::new(load_files(&options.file)?);
    let folder = golden_folder(&options.file);
    let cases = cases_of(&folder, set.names())?;
    if cases.is_empty() {
        return Err(Fault::usage(format!(
            "{}: no golden case of these mappings: create one with webfill mapping save",
            folder.display()
        )));
    }
    let count = cases.len();
    let mut run = CaseRun {
        engine: Engine::new(Arc::clone(&set), Limits::default()),
        fetching: PageProvider::open(&options.web, &options.file, &[])?,
        set,
        differing: Vec::new(),
    };
    for case in cases {
        run.run_case(case);
    }
    match options.format {
        Some(TrialFormat::Json) => {
            print(format_args!(
                "{:#}",
                json!({"cases": count, "differing": run.differing})
            ))?;
        }
        _ => print(run.format_report(count))?,
    }
    Ok(match run.differing.is_empty() {
        true => ExitStatus::Done,
        false => ExitStatus::Error,
    })
}

struct CaseRun<'o> {
    set: Arc<MappingSet>,
    engine: Engine,
    fetching: PageProvider<'o>,
    /// The cases that differ. Each is an object with `case`, and either `error` or `expected`, `found` and perhaps
    /// `rows`.
    differing: Vec<Value>,
}

impl CaseRun<'_> {
    fn run_case(&mut self, path: std::path::PathBuf) {
        let shown = path.display().to_string();
        match self.run_and_compare(path) {
            Ok(None) => {}
            Ok(Some(Difference {
                expected,
                found,
                rows,
            })) => {
                let mut differing = json!({"case": shown, "expected": expected, "found": found});
                if !rows.is_empty() {
                    differing["rows"] = json!(rows);
                }
                self.differing.push(differing);
            }
            Err(fault) => self
                .differing
                .push(json!({"case": shown, "error": fault.message})),
        }
    }

    fn run_and_compare(&mut self, path: std::path::PathBuf) -> Result<Option<Difference>, Fault> {
        let case = Case::read(path)?;
        let page = Page::read(&case.page()?, &mut self.fetching)?;
        let Some(index) = self.set.find(case.url.as_str()) else {
            return Ok(case.difference(None));
        };
        let extraction = page.extract(&self.engine, index, compared_parts());
        Ok(case.difference(Some(&extraction.map_err(Fault::error)?)))
    }

    fn format_report(&self, count: usize) -> String {
        let mut parts: Vec<String> = self.differing.iter().map(format_differing_case).collect();
        let cases = match count {
            1 => "1 golden case".to_owned(),
            count => format!("{count} golden cases"),
        };
        parts.push(match self.differing.len() {
            0 => format!("{cases}, all as expected"),
            1 => format!("{cases}, 1 differs"),
            differing => format!("{cases}, {differing} differ"),
        });
        parts.join("\n\n")
    }
}

/// Removes the rows from a result. They are compared one by one, because otherwise one missing value in a row would
/// make all rows appear different.
fn without_rows(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(members) = result.as_object_mut() {
        members.remove("rows");
    }
    result
}

fn format_differing_case(differing: &Value) -> String {
    let case = differing["case"].as_str().unwrap_or_default();
    let case = without_control_characters(case);
    match differing["error"].as_str() {
        Some(error) => without_control_characters(&format!("{case}: cannot run: {error}")),
        None => {
            let [expected, found] =
                ["expected", "found"].map(|name| format!("{:#}", without_rows(&differing[name])));
            let lines = lines_that_differ(&expected, &found);
            let of_rows = differing["rows"].as_array().into_iter().flatten();
            let of_rows = of_rows
                .filter_map(Value::as_str)
                .map(without_control_characters);
            let head = format!("{case} differs (- expected, + found):");
            let lines = (!lines.is_empty()).then_some(lines);
            let lines = std::iter::once(head).chain(lines).chain(of_rows);
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}
