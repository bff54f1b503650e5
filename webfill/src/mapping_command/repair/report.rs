//! Reports what a repair would change, and writes it if requested.

use std::path::Path;

use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::BrokenMapping;
use super::evidence::Evidence;
use super::reading::{Reader, format_values};
use super::relearning::NewChains;
use crate::cli::{MappingRepairOptions, ReportFormat};
use crate::demand::table::without_control_characters;
use crate::mapping_command::difference::lines_that_differ;
use crate::mapping_command::golden::{NewCase, case_name_from_url};
use crate::mapping_command::learn::gathered::GatheredPage;
use crate::mapping_command::learn::output;
use crate::mapping_command::save::golden_folder;
use crate::mapping_command::writing::make_numbered_copy;
use crate::stdout::print;

/// The most pages from before the change, and from after it, that become golden cases. Also the most values shown for a
/// field.
const MOST_CASES: usize = 3;

#[derive(Default)]
pub struct Repair {
    /// The fields to repair, with their new chains.
    pub accepted: Vec<NewChains>,
    /// The fields that stay as they are, with the reason.
    pub refused: Vec<(String, String)>,
    /// The content of the repaired mapping file.
    pub file: Value,
}

impl Repair {
    /// Reports the changes, and writes them if requested.
    pub fn report_and_write(
        &self,
        options: &MappingRepairOptions,
        broken: &BrokenMapping,
        evidence: &Evidence,
    ) -> Result<ExitStatus, Fault> {
        let (old, new) = (format!("{:#}\n", broken.file), format!("{:#}\n", self.file));
        let reader = Reader::new("the repaired mapping", &new, &broken.name)?;
        let difference = lines_that_differ(&old, &new);
        let to = match options.apply {
            true => Some(options.file.as_path()),
            false => options.to.output.as_deref(),
        };
        let to = to.filter(|_| !self.accepted.is_empty());
        let mut written = Vec::new();
        if let Some(file) = to {
            if options.apply {
                let former = make_numbered_copy(file)?;
                written.push(format!(
                    "the former mapping is kept as {}",
                    former.display()
                ));
            }
            output::write(file, &new)?;
            written.push(format!("written to {}", file.display()));
            let cases = store_golden_cases(&golden_folder(file), broken, &reader, evidence)?;
            written.push(format!(
                "{cases} golden cases kept, for webfill mapping test --all"
            ));
        }
        let values = self.compare_values(broken, &reader, evidence);
        match options.to.format {
            ReportFormat::Json => print(format_args!("{:#}", self.json(&difference, &values)))?,
            ReportFormat::Text => print(self.text(broken, &difference, &values, &written))?,
        }
        Ok(match self.refused.is_empty() {
            true => ExitStatus::Done,
            false => ExitStatus::Error,
        })
    }

    /// For each repaired field, the former, the new and the known value on some of the pages.
    fn compare_values(
        &self,
        broken: &BrokenMapping,
        reader: &Reader,
        evidence: &Evidence,
    ) -> Vec<Value> {
        let mut rows = Vec::new();
        for NewChains { field, .. } in &self.accepted {
            let pages = evidence
                .now
                .iter()
                .zip(evidence.known_values_of_current_pages(field));
            let pages = pages.filter_map(|(page, known)| Some((page, known?)));
            for (page, known) in pages.take(MOST_CASES) {
                let read = |reader: &Reader| reader.read_values(page)?.remove(field);
                rows.push(json!({
                    "field": field,
                    "url": page.url.as_str(),
                    "old": read(&broken.reader),
                    "new": read(reader),
                    "known": known,
                }));
            }
        }
        rows
    }

    fn json(&self, difference: &str, values: &[Value]) -> Value {
        let repaired = self.accepted.iter();
        let repaired =
            repaired.map(|new| json!({"field": new.field, "confidence": new.confidence}));
        let refused = self.refused.iter();
        let refused = refused.map(|(field, why)| json!({"field": field, "why": why}));
        json!({
            "mapping": self.file,
            "repaired": repaired.collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
            "difference": difference,
            "values": values,
        })
    }

    fn text(
        &self,
        broken: &BrokenMapping,
        difference: &str,
        values: &[Value],
        written: &[String],
    ) -> String {
        let mut parts = Vec::new();
        if !difference.is_empty() {
            let name = without_control_characters(&broken.name);
            parts.push(format!("mapping {name} (- now, + repaired):\n{difference}"));
        }
        let texts = |value: &Value| serde_json::from_value::<Vec<String>>(value.clone()).ok();
        let values = values.iter().map(|one| {
            let of = |name: &str| format_values(texts(&one[name]).as_ref());
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            without_control_characters(&format!(
                "{}: {} -> {}, known is {}  {}",
                text("field"),
                of("old"),
                of("new"),
                of("known"),
                text("url")
            ))
        });
        let mut lines: Vec<String> = values.collect();
        let repaired = self.accepted.iter();
        lines.extend(repaired.map(
            |NewChains {
                 field, confidence, ..
             }| { format!("{field}: repaired, confidence {confidence:.2}") },
        ));
        let refused = self.refused.iter();
        lines.extend(refused.map(|(field, why)| {
            without_control_characters(&format!("{field}: not repaired: {why}"))
        }));
        parts.push(lines.join("\n"));
        if !written.is_empty() {
            parts.push(written.join("\n"));
        } else if !self.accepted.is_empty() {
            parts.push(String::from(
                "nothing is written: use --apply or --output FILE",
            ));
        }
        parts.join("\n\n")
    }
}

/// Stores golden cases: pages from before and after the change that the repaired mapping reads correctly.
fn store_golden_cases(
    folder: &Path,
    broken: &BrokenMapping,
    reader: &Reader,
    evidence: &Evidence,
) -> Result<usize, Fault> {
    let is_as_before = |page: &&GatheredPage| {
        let before = broken.reader.read_values(page);
        before.as_ref().is_some_and(|before| !before.is_empty())
            && before == reader.read_values(page)
    };
    let is_repaired = |page: &&GatheredPage| {
        let known = evidence.known_values_of(page);
        let Some(read) = reader.read_values(page).filter(|_| !known.is_empty()) else {
            return false;
        };
        let is_right = |(field, known): (&String, &Vec<String>)| match read.get(field) {
            Some(read) => super::are_same(known, read),
            None => !broken.declared.contains(field),
        };
        known.iter().all(is_right)
    };
    let before = evidence.before.iter().filter(is_as_before).take(MOST_CASES);
    let after = evidence.now.iter().filter(is_repaired).take(MOST_CASES);
    let mut kept = 0;
    let pages = before
        .map(|page| ("before", page))
        .chain(after.map(|page| ("after", page)));
    for (when, page) in pages {
        let Some(extraction) = reader.extract(page) else {
            continue;
        };
        let case = NewCase {
            folder,
            name: Some(&format!("{}-{when}", case_name_from_url(&page.url))),
            is_numbered: true,
            url: &page.url,
            // The stored text is UTF-8, whatever the page declares.
            content_type: Some("text/html; charset=utf-8"),
            body: page.text.as_bytes(),
            ending: "html",
            extraction: &extraction,
        };
        case.save_case()?;
        kept += 1;
    }
    Ok(kept)
}
