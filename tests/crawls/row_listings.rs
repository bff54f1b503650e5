//! Tests the rows of lists that a crawl has read completely or in part, their keys, and the names of their fields.

mod gone;
mod keys;
mod summary;

use serde_json::{Value, json};
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Web, page};
use webfill_tests::workplace::Workplace;

const HOST: &str = "shop.example";

/// A mapping's rule for reading rows. Each field is read from the elements with the class of the same name.
fn rows_rule(fields: &[&str], key: &[&str]) -> Value {
    let field = |name: &&str| {
        let selector = format!(".{name}");
        json!({"name": name, "processors": [{"type": "css", "parameters": {"selector": selector}}]})
    };
    json!({
        "dataset": "items",
        "select": [{"type": "css", "parameters": {"selector": "li.item"}}],
        "fields": fields.iter().map(field).collect::<Vec<_>>(),
        "key": key,
    })
}

fn mapping_with_rule(rule: &Value) -> Value {
    json!({
        "name": "shop",
        "url_patterns": [{"type": "host", "pattern": HOST}],
        "rows": rule,
        "url_parsers": [{"processors": [{"type": "css", "parameters": {"selector": "a.next::attr(href)"}}]}],
    })
}

/// A list page. Each of the `rows` is an object with the values of its fields.
fn list_page(rows: &[Value], next: Option<&str>) -> Page {
    let row = |row: &Value| {
        let fields = row.as_object().unwrap().iter();
        let fields = fields
            .map(|(name, value)| format!("<b class=\"{name}\">{}</b>", value.as_str().unwrap()));
        format!("<li class=\"item\">{}</li>", fields.collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    let next = next.map(|next| format!("<a class=\"next\" href=\"{next}\">next</a>"));
    page("Items").html(format!(
        "<h1>Items</h1><ul>{rows}</ul>{}",
        next.unwrap_or_default()
    ))
}

fn crawl_command(work: &Workplace, web: &Web, store: &str, seeds: &[&str]) -> Run {
    let seeds = seeds.iter().map(|path| format!("http://{HOST}{path}"));
    work.crawl_without_delay(web)
        .args(["--delay", "0", "--depth", "9"])
        .replace_flag("--store", store)
        .args(seeds)
}

fn sqlite_uri(work: &Workplace) -> String {
    format!("sqlite:{}", work.path("store.db").display())
}

fn export_items(store: &str, args: &[&str]) -> String {
    let export = Run::new(["export", "records", "--store", store, "--dataset", "items"]);
    export.args(args).finish().expect_code(0).stdout
}

/// The stored rows, in the order of their ids.
fn stored_rows(store: &str, args: &[&str]) -> Vec<Value> {
    let text = export_items(store, args);
    let mut rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    rows.sort_by_key(|row| row["_id"].to_string());
    rows
}
