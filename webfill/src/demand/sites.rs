//! `webfill sites`: lists the states of sites in a running fleet.

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};
use webfill_store::iso_time;

use super::connection::{Connection, ConnectionOptions};
use super::table::{format_cell, table};
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct SitesOptions {
    /// Only sites that are backing off or unreachable
    #[arg(long)]
    pub backing_off: bool,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

const HEADS: [&str; 7] = [
    "site", "state", "reason", "since", "until", "queued", "evidence",
];

pub fn print_sites(options: SitesOptions) -> Result<ExitStatus, Fault> {
    let mut connection = options.connection.connect()?;
    let mut rows = Vec::new();
    let mut after = Some(0);
    while let Some(from) = after {
        let (sites, next) = request_page(&mut connection, options.backing_off, from)?;
        after = next;
        match options.json {
            true => sites.iter().try_for_each(print)?,
            false => rows.extend(sites.iter().map(site_row)),
        }
    }
    if !options.json {
        print(table(&HEADS, &rows))?;
    }
    Ok(ExitStatus::Done)
}

/// Requests one part of the list of sites. Returns these sites, and the cursor of the next part.
fn request_page(
    connection: &mut Connection,
    backing_off: bool,
    after: u64,
) -> Result<(Vec<Value>, Option<u64>), Fault> {
    let question = json!({"action": "sites", "backing_off": backing_off, "after": after});
    let mut answer = connection.send_action(&question)?;
    let sites = match answer["sites"].take() {
        Value::Array(sites) => sites,
        _ => Vec::new(),
    };
    Ok((sites, answer["next"].as_u64()))
}

fn site_row(site: &Value) -> Vec<String> {
    let time = |key: &str| match site[key].as_f64() {
        Some(seconds) => iso_time((seconds * 1_000.0) as i64),
        None if key == "until" && site["state"] == "backing_off" => String::from("it is woken"),
        None => format_cell(&Value::Null),
    };
    let evidence = match &site["evidence"] {
        Value::Object(seen) => {
            let seen = |key: &str| seen.get(key).map(format_cell).unwrap_or_default();
            format!("{}: {}", seen("url"), seen("sign"))
        }
        _ => format_cell(&Value::Null),
    };
    vec![
        format_cell(&site["site"]),
        format_cell(&site["state"]),
        format_cell(&site["reason"]),
        time("since"),
        time("until"),
        format_cell(&site["queued"]),
        evidence,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_reason_and_the_end_of_a_backoff() {
        let site = json!({
            "site": "a.org", "state": "backing_off", "reason": "robots", "since": 0.0, "until": 60.0,
            "queued": 4,
            "evidence": {"url": "http://a.org/robots.txt", "status_code": 503, "sign": "answered 503"},
        });
        let reported = site_row(&site).join("|");
        assert_eq!(
            reported,
            "a.org|backing_off|robots|1970-01-01T00:00:00.000Z|1970-01-01T00:01:00.000Z|4|\
             http://a.org/robots.txt: answered 503"
        );
        let blocked =
            json!({"site": "b.org", "state": "backing_off", "reason": "blocked", "until": null});
        assert_eq!(site_row(&blocked)[4], "it is woken");
    }
}
