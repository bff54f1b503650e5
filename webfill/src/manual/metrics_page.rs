//! Generates `metrics.md`. Its tables are made from the metrics that each role serves; all other text comes from
//! `metrics_page.txt`.

use std::fmt::Write;

const TEXT: &str = include_str!("metrics_page.txt");

/// All time series of a metric with the same name.
struct Family<'p> {
    name: &'p str,
    help: &'p str,
    /// The type of the metric: `counter`, `gauge` or `histogram`.
    kind: &'p str,
    labels: Vec<&'p str>,
}

pub fn generate_page() -> String {
    let dispatcher = webfill_dispatcher::sample_metrics();
    let supervisor = webfill_supervisor::sample_metrics();
    let (dispatcher, supervisor) = (parse_families(&dispatcher), parse_families(&supervisor));
    let has = |families: &[Family<'_>], name: &str| families.iter().any(|one| one.name == name);
    let only_dispatcher = dispatcher.iter().filter(|one| !has(&supervisor, one.name));
    let only_supervisor = supervisor.iter().filter(|one| !has(&dispatcher, one.name));
    // Show the supervisor's series, because they have all labels; the dispatcher's have no label for the worker.
    let both = supervisor.iter().filter(|one| has(&dispatcher, one.name));
    TEXT.replace("{both}\n", &table(both))
        .replace("{supervisor}\n", &table(only_supervisor))
        .replace("{dispatcher}\n", &table(only_dispatcher))
}

/// Parses a page of metrics into families, in the order of the page.
fn parse_families(page: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in page.lines() {
        if let Some((name, help)) = split_after_prefix(line, "# HELP ") {
            families.push(Family {
                name,
                help,
                kind: "",
                labels: Vec::new(),
            });
            continue;
        }
        let Some(family) = families.last_mut() else {
            continue;
        };
        if let Some((_, kind)) = split_after_prefix(line, "# TYPE ") {
            family.kind = kind;
        } else if family.labels.is_empty()
            && let Some((_, labels)) = line.split_once('{')
        {
            // The sample values of labels contain no comma and no equals sign, so splitting at these is enough.
            let names = labels
                .split(',')
                .filter_map(|label| label.split('=').next());
            family.labels = names.filter(|name| *name != "le").collect();
        }
    }
    families
}

fn split_after_prefix<'l>(line: &'l str, beginning: &str) -> Option<(&'l str, &'l str)> {
    line.strip_prefix(beginning)?.split_once(' ')
}

fn table<'f>(families: impl Iterator<Item = &'f Family<'f>>) -> String {
    let mut table = "| series | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for family in families {
        let Family {
            name, help, kind, ..
        } = family;
        let labels: Vec<String> = family.labels.iter().map(|one| format!("`{one}`")).collect();
        let labels = labels.join(", ");
        let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {help} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_both_roles_have_the_same_meaning() {
        let dispatcher = webfill_dispatcher::sample_metrics();
        let supervisor = webfill_supervisor::sample_metrics();
        let supervisor = parse_families(&supervisor);
        for family in parse_families(&dispatcher) {
            if let Some(same) = supervisor.iter().find(|one| one.name == family.name) {
                assert_eq!(
                    (same.help, same.kind),
                    (family.help, family.kind),
                    "{}",
                    family.name
                );
            }
        }
    }
}
