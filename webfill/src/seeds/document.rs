//! A seed as a document of a dataset: `_id` is the record's id, `url` and `urls` are its links,
//! `want` may list the wanted fields, and every other member is a field.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use webfill_store::{DatasetDocument, SourceDocument, has_value};

use super::{LineContent, Seed, SeedFault, check_urls, json, printable_line};

/// How a crawl reads documents.
#[derive(Debug, Clone, Default)]
pub struct DocumentRules {
    /// Whether fields that already have a value are wanted again.
    pub refresh: bool,
    /// Whether found values are written back into the dataset.
    pub writes_back: bool,
    /// Whether values are written to the documents that are read, not to another collection.
    pub writes_to_source: bool,
    /// The database and the collection that are read, as `database.collection`.
    pub collection: String,
    /// The fields that mappings extract. With `refresh`, only these are wanted again, because no page could fill other
    /// fields.
    pub extracted: BTreeSet<String>,
}

/// Reads a document as a seed. `number` is its position in the input. Also returns the faults of its URLs.
pub fn read_document(
    document: DatasetDocument,
    number: u64,
    rules: &DocumentRules,
) -> Vec<Result<Seed, SeedFault>> {
    let DatasetDocument {
        record,
        id,
        members,
    } = document;
    let name = printable_line(record.as_bytes());
    let judged = match parse_members(record, members, rules) {
        Ok(found) => check_urls(number, found),
        Err(reason) => vec![Err(SeedFault::new(number, reason, b""))],
    };
    let of_document = |seed: Result<Seed, SeedFault>| match seed {
        Ok(seed) => Ok(Seed {
            source: (rules.writes_back && seed.id.is_some()).then(|| SourceDocument {
                collection: rules.collection.clone(),
                id: id.clone(),
                fields: seed.want.clone(),
                is_target: rules.writes_to_source,
            }),
            ..seed
        }),
        Err(fault) => Err(SeedFault {
            document: Some(name.clone()),
            ..fault
        }),
    };
    judged.into_iter().map(of_document).collect()
}

fn parse_members(
    record: String,
    mut members: Map<String, Value>,
    rules: &DocumentRules,
) -> Result<LineContent, String> {
    let mut urls = Vec::new();
    for key in ["urls", "url"] {
        if let Some(links) = members.shift_remove(key) {
            add_links(key, links, &mut urls)?;
        }
    }
    if urls.is_empty() {
        return Err(String::from("no link: `url` and `urls` are empty"));
    }
    let want = match members.shift_remove("want") {
        None | Some(Value::Null) => None,
        Some(want) => Some(json::parse_texts("want", want)?),
    };
    let mut fields = members;
    let is_wanted = |name: &str, value: &Value| match &want {
        Some(want) => want.iter().any(|wanted| wanted == name),
        None => !has_value(value) || (rules.refresh && rules.extracted.contains(name)),
    };
    let mut wanted: Vec<String> = Vec::new();
    for (name, value) in &mut fields {
        if !is_wanted(name, value) || (has_value(value) && !rules.refresh) {
            continue;
        }
        wanted.push(name.clone());
        if !has_value(value) {
            *value = Value::Null;
        }
    }
    let is_absent = |name: &String| !fields.contains_key(name);
    wanted.extend(want.into_iter().flatten().filter(is_absent));
    Ok(LineContent {
        id: Some(record),
        urls,
        fields,
        want: wanted,
        // A document's `want` stays in the dataset after it was filled. So its fields with a value are wanted again
        // only with `refresh`.
        lists_want: false,
        request: None,
    })
}

/// Adds the links of a document. They are a text, a list, or a list of lists, which projections may create. Empty texts
/// are ignored.
fn add_links(key: &str, links: Value, urls: &mut Vec<String>) -> Result<(), String> {
    match links {
        Value::Null => {}
        Value::String(url) if webfill_values::is_blank(&url) => {}
        Value::String(url) => urls.push(url),
        Value::Array(links) => {
            for link in links {
                add_links(key, link, urls)?;
            }
        }
        other => {
            let other = printable_line(other.to_string().as_bytes());
            return Err(format!("`{key}` holds {other}, expected a text"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_seeds(members: Value, rules: &DocumentRules) -> Vec<Result<Seed, SeedFault>> {
        let Value::Object(members) = members else {
            panic!("{members} is no object");
        };
        let document = DatasetDocument {
            record: String::from("42"),
            id: String::from(r#"{"$numberInt":"42"}"#),
            members,
        };
        read_document(document, 7, rules)
    }

    fn read_single_seed(members: Value, rules: &DocumentRules) -> Seed {
        let mut read = read_seeds(members, rules);
        assert_eq!(read.len(), 1, "{read:?}");
        read.remove(0).unwrap()
    }

    fn refresh_rules() -> DocumentRules {
        DocumentRules {
            refresh: true,
            writes_back: true,
            writes_to_source: true,
            collection: String::from("db.people"),
            extracted: ["name", "city"].map(String::from).into(),
        }
    }

    #[test]
    fn null_and_empty_values_are_missing_and_the_rest_is_known() {
        let members = json!({"url": "http://a.example/", "name": null, "city": "", "tags": [],
            "born": 1815, "notes": "x"});
        let seed = read_single_seed(members, &DocumentRules::default());
        assert_eq!(seed.id.as_deref(), Some("42"));
        assert_eq!(seed.urls, ["http://a.example/"]);
        assert_eq!(seed.want, ["name", "city", "tags"]);
        let fields = seed.fields.unwrap();
        assert_eq!(fields["born"], 1815);
        assert_eq!(fields["city"], Value::Null);
        assert_eq!(seed.source, None, "nothing is written back");
    }

    #[test]
    fn links_may_be_a_text_a_list_or_lists_of_lists() {
        let members = json!({"url": "http://a.example/1", "name": null,
            "urls": [null, ["http://a.example/2", ""], "http://a.example/3"]});
        let seed = read_single_seed(members, &DocumentRules::default());
        let expected = ["2", "3", "1"].map(|path| format!("http://a.example/{path}"));
        assert_eq!(seed.urls, expected);
    }

    #[test]
    fn a_document_without_a_usable_link_is_reported_by_its_id() {
        for (members, reason) in [
            (json!({"name": null}), "no link"),
            (json!({"url": null, "urls": [""]}), "no link"),
            (json!({"url": 42}), "`url` holds 42"),
            (json!({"url": "mailto:ada@a.example"}), "mailto"),
            (json!({"url": "http://a.example/", "want": 1}), "`want`"),
        ] {
            let read = read_seeds(members.clone(), &refresh_rules());
            let fault = read[0].as_ref().unwrap_err();
            assert_eq!(read.len(), 1, "{members}");
            assert_eq!(fault.document.as_deref(), Some("42"));
            assert!(fault.reason.contains(reason), "{members}: {}", fault.reason);
        }
    }

    #[test]
    fn a_bad_link_beside_a_good_one_is_reported_and_the_good_one_crawled() {
        let members = json!({"urls": ["nonsense", "http://a.example/"], "name": null});
        let read = read_seeds(members, &DocumentRules::default());
        assert_eq!(read[0].as_ref().unwrap_err().text, "nonsense");
        assert_eq!(read[1].as_ref().unwrap().urls, ["http://a.example/"]);
    }

    #[test]
    fn want_names_wanted_fields_with_or_without_a_value() {
        let members = json!({"url": "http://a.example/", "name": null, "city": null, "born": 1815,
            "want": ["city", "email", "born"]});
        let seed = read_single_seed(members, &DocumentRules::default());
        assert_eq!(
            seed.want,
            ["city", "email"],
            "what has a value is not wanted"
        );
    }

    #[test]
    fn a_refresh_wants_fields_that_a_mapping_can_extract() {
        let members = json!({"url": "http://a.example/", "name": "Ada", "notes": "x", "tel": ""});
        let seed = read_single_seed(members, &refresh_rules());
        assert_eq!(seed.want, ["name", "tel"]);
        let fields = seed.fields.unwrap();
        assert_eq!(
            json!(fields),
            json!({"name": "Ada", "notes": "x", "tel": null})
        );
        let source = seed.source.unwrap();
        assert_eq!(source.collection, "db.people");
        assert_eq!(source.id, r#"{"$numberInt":"42"}"#);
        assert_eq!(source.fields, ["name", "tel"]);
    }
}
