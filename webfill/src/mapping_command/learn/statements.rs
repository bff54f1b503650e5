//! A person's statements about pages: `--example`, `--correct` and `--reject`, each with a URL and `field=value`.

use std::collections::BTreeMap;

use webfill_learn::FieldStatement;
use webfill_service::Fault;
use webfill_urls::canonical_url;
use webfill_values::trim;

use crate::cli::MappingLearnOptions;

/// The statements, by canonical URL and then by field.
pub type PageStatements = BTreeMap<String, BTreeMap<String, FieldStatement>>;

pub fn read_statements(options: &MappingLearnOptions) -> Result<PageStatements, Fault> {
    let mut said = PageStatements::new();
    for (flag, words, is_rejected) in [
        ("--example", &options.example, false),
        ("--correct", &options.correct, false),
        ("--reject", &options.reject, true),
    ] {
        for (url, field, value) in parse_triples(flag, words)? {
            let of_page = said.entry(url.clone()).or_default();
            let of_field = of_page.entry(field.clone()).or_default();
            match (is_rejected, value.as_str()) {
                (true, "") => {
                    return Err(Fault::usage(format!(
                        "--reject {url} {field}=: no value given; for a page without a value, use --correct"
                    )));
                }
                (true, _) => of_field.rejected.push(value),
                (false, "") => of_field.absent = true,
                (false, _) => of_field.values.push(value),
            }
            if of_field.absent && !of_field.values.is_empty() {
                return Err(Fault::usage(format!(
                    "{flag} {url}: contradiction: {field} has a value and has none"
                )));
            }
        }
    }
    Ok(said)
}

/// Splits the arguments of a flag into URL, field and value. A URL applies to all values up to the next URL.
fn parse_triples(flag: &str, words: &[String]) -> Result<Vec<(String, String, String)>, Fault> {
    let mut triples = Vec::new();
    let mut url: Option<(String, bool)> = None;
    for word in words {
        if word.starts_with("http://") || word.starts_with("https://") {
            check_used(flag, url.as_ref())?;
            let parsed = canonical_url(word, None);
            let parsed =
                parsed.map_err(|refusal| Fault::usage(format!("{flag} {word}: {refusal}")))?;
            url = Some((parsed.to_string(), false));
            continue;
        }
        let Some((url, is_used)) = &mut url else {
            return Err(Fault::usage(format!(
                "{flag} {word}: expected the page's URL, then FIELD=VALUE"
            )));
        };
        let Some((field, value)) = word.split_once('=').filter(|(field, _)| !field.is_empty())
        else {
            return Err(Fault::usage(format!(
                "{flag} {url} {word}: expected FIELD=VALUE"
            )));
        };
        *is_used = true;
        triples.push((url.clone(), field.to_owned(), trim(value).to_owned()));
    }
    check_used(flag, url.as_ref())?;
    Ok(triples)
}

fn check_used(flag: &str, url: Option<&(String, bool)>) -> Result<(), Fault> {
    match url {
        Some((url, false)) => Err(Fault::usage(format!(
            "{flag} {url}: expected FIELD=VALUE after the URL"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<(String, String, String)>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse_triples("--example", &words).map_err(|fault| fault.message)
    }

    #[test]
    fn a_url_applies_to_all_values_up_to_the_next_url() {
        let read = parse(&[
            "https://a.example/1",
            "name=Ada",
            "site=https://ada.example/?q=1",
            "https://A.example:443/2",
            "name=",
        ]);
        let read = read.unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read[1].2, "https://ada.example/?q=1");
        assert_eq!(
            read[2],
            ("https://a.example/2".into(), "name".into(), String::new())
        );
    }

    #[test]
    fn incomplete_statements_are_refused_with_a_reason() {
        for (words, reported) in [
            (&["name=Ada"][..], "expected the page's URL"),
            (&["https://a.example/", "Ada"], "expected FIELD=VALUE"),
            (
                &["https://a.example/", "https://b.example/", "a=b"],
                "after the URL",
            ),
            (&["https://"], "https://"),
        ] {
            let fault = parse(words).unwrap_err();
            assert!(fault.contains(reported), "{fault}");
        }
    }
}
