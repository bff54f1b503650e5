//! Generates the JSON Schemas, and a page for each that lists its fields.

use std::fmt::Write;
use std::io;
use std::path::Path;

use serde_json::Value;

/// A JSON Schema, with the data for its two files.
struct Described {
    /// The name of both files: `NAME.schema.json` and `NAME.md`.
    name: &'static str,
    title: &'static str,
    /// The path of the schema file that `make reference` writes, for a link on the page.
    link: &'static str,
    /// The guide that explains the use of the format.
    guide: &'static str,
    schema: Value,
}

fn all_schemas() -> [Described; 5] {
    [
        Described {
            name: "crawl-request",
            title: "Crawl requests",
            link: "crawl-request.schema.json",
            guide: "[Crawling on demand](../how-to/demand.md) shows how to send requests",
            schema: webfill_api::crawl_request_schema(),
        },
        Described {
            name: "watch",
            title: "Watch files",
            link: "watch.schema.json",
            guide: "[Watches](../how-to/watches.md) shows how to use the file",
            schema: webfill_api::watch_schema(),
        },
        Described {
            name: "mapping",
            title: "Mapping files",
            link: "../../etl-mappings/schema.json",
            guide: "[Mappings](../../etl-mappings/README.md) explains the format with examples",
            schema: webfill_mapping::mapping_file_schema(),
        },
        Described {
            name: "golden-case",
            title: "Golden cases",
            link: "../../etl-mappings/golden/case.schema.json",
            guide: "[Golden cases](data.md#webfill-mapping-save) shows how to make one",
            schema: webfill_mapping::case_schema(),
        },
        Described {
            name: "progress",
            title: "Lines of progress",
            link: "progress.schema.json",
            guide: "[Python](../how-to/python.md) shows how a program uses them",
            schema: crate::progress::schema(),
        },
    ]
}

/// Writes the schemas and their pages to this folder.
pub fn write(folder: &Path) -> io::Result<()> {
    for described in all_schemas() {
        let text = format!("{:#}\n", described.schema);
        std::fs::write(folder.join(format!("{}.schema.json", described.name)), text)?;
        std::fs::write(
            folder.join(format!("{}.md", described.name)),
            described.generate_page(),
        )?;
    }
    Ok(())
}

impl Described {
    fn generate_page(&self) -> String {
        let Described {
            title, link, guide, ..
        } = self;
        let (schema, about) = (&self.schema, describe_meaning(&self.schema));
        let mut page = format!(
            "# {title}\n\n{about}\n\n{guide}. Editors and programs can use the \
             [JSON Schema]({link}). This page and the schema are written by `make reference`.\n"
        );
        let definitions = schema["$defs"].as_object().into_iter().flatten();
        // Processors are left out, because they have their own page with examples.
        for (name, definition) in definitions.filter(|(name, _)| *name != "processor") {
            add_section(&mut page, name, definition, schema);
        }
        match &schema["oneOf"] {
            Value::Array(kinds) if schema["$defs"].is_null() => {
                for kind in kinds {
                    let name = kind["properties"]["kind"]["const"].as_str();
                    add_section(&mut page, name.unwrap_or_default(), kind, schema);
                }
            }
            Value::Array(_) => {}
            _ => add_section(&mut page, "Fields", schema, schema),
        }
        page
    }
}

/// Adds a section with the fields of an object. `whole` is the complete schema, with the definitions that fields refer
/// to.
fn add_section(page: &mut String, heading: &str, object: &Value, whole: &Value) {
    let _ = write!(page, "\n## {heading}\n\n");
    if heading != "Fields" && !object["description"].is_null() {
        let _ = write!(page, "{}\n\n", describe_meaning(object));
    }
    if object["properties"].is_null() {
        let _ = writeln!(page, "Type: {}.", describe_type(object));
        return;
    }
    page.push_str("| field | type | meaning |\n|---|---|---|\n");
    add_rows(page, "", object, whole);
}

/// Adds a row for each property of an object, and for each property of nested objects.
fn add_rows(page: &mut String, within: &str, object: &Value, whole: &Value) {
    let required = object["required"].as_array();
    for (name, property) in object["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let mark = if is_required { "; required" } else { "" };
        let of_type = describe_type(property);
        let about = match find_definition(property, whole) {
            Some(definition) if property["description"].is_null() => describe_meaning(definition),
            _ => describe_meaning(property),
        };
        let _ = writeln!(page, "| `{within}{name}` | {of_type}{mark} | {about} |");
        add_rows(page, &format!("{within}{name}."), property, whole);
        add_rows(
            page,
            &format!("{within}{name}[]."),
            &property["items"],
            whole,
        );
    }
}

/// Finds the definition in `$defs` that a schema refers to.
fn find_definition<'s>(schema: &Value, whole: &'s Value) -> Option<&'s Value> {
    whole["$defs"].get(definition_name(schema)?)
}

fn definition_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Describes a schema, including the meanings of its single values.
fn describe_meaning(schema: &Value) -> String {
    let mut about = escape_markdown(schema["description"].as_str().unwrap_or_default());
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        if let (Some(value), Some(description)) =
            (choice["const"].as_str(), choice["description"].as_str())
        {
            let _ = write!(about, " `{value}`: {}.", escape_markdown(description));
        }
    }
    about
}

/// Describes the type of a schema with its limits: `array of string (at most 50 characters), at most 100 items`.
fn describe_type(schema: &Value) -> String {
    match definition_name(schema) {
        Some("processor") => return "[processor](processors.md)".to_owned(),
        Some(name) => return format!("[{name}](#{name})"),
        None => {}
    }
    if !schema["const"].is_null() {
        return format_code(&schema["const"]);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(format_code)
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(choices) = schema["oneOf"].as_array()
        && schema["properties"].is_null()
    {
        let is_value = choices.iter().all(|choice| !choice["const"].is_null());
        let choices: Vec<String> = choices.iter().map(describe_type).collect();
        return choices.join(if is_value { ", " } else { " or " });
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect::<Vec<_>>(),
    };
    let items = &schema["items"];
    let names: Vec<String> = names
        .into_iter()
        .map(|name| match (name, describe_limits(items)) {
            ("array", _) if items.is_null() => name.to_owned(),
            ("array", None) => format!("array of {}", describe_type(items)),
            ("array", Some(limits)) => {
                let item = items["type"].as_str().unwrap_or("value");
                format!("array of {item} ({limits})")
            }
            _ => name.to_owned(),
        })
        .collect();
    let limits = describe_limits(schema).map_or(String::new(), |limits| format!(", {limits}"));
    names.join(" or ") + &limits
}

/// Describes the limits of a value itself, without those of its items.
fn describe_limits(schema: &Value) -> Option<String> {
    let mut limits = Vec::new();
    match (
        format_number(&schema["minimum"]),
        format_number(&schema["maximum"]),
    ) {
        (Some(least), Some(most)) => limits.push(format!("{least} to {most}")),
        (Some(least), None) => limits.push(format!("at least {least}")),
        _ => {}
    }
    if let Some(most) = format_number(&schema["maxLength"]) {
        limits.push(format!("at most {most} characters"));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        limits.push(format!("matches `{}`", pattern.replace('|', "\\|")));
    }
    if let Some(most) = format_number(&schema["maxItems"]) {
        limits.push(format!("at most {most} items"));
    } else if format_number(&schema["minItems"]).is_some() {
        limits.push("not empty".to_owned());
    }
    if !schema["default"].is_null() {
        limits.push(format!("default {}", format_code(&schema["default"])));
    }
    (!limits.is_empty()).then(|| limits.join(", "))
}

fn format_number(value: &Value) -> Option<String> {
    Some(match value.as_u64() {
        Some(whole) => whole.to_string(),
        None => value.as_f64()?.to_string(),
    })
}

fn format_code(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Escapes Markdown's marks in a text, except within code spans.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut is_code = false;
    for character in text.chars() {
        is_code ^= character == '`';
        if character == '|' || (!is_code && matches!(character, '*' | '<' | '[')) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
