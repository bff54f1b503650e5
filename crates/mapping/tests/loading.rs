//! Loading reports all errors in mapping files, with their positions.

use webfill_mapping::{MappingSet, Source};

fn load(texts: &[(&str, &str)]) -> Result<MappingSet, Vec<String>> {
    let sources = texts.iter().map(|(name, text)| Source {
        name: (*name).to_owned(),
        text: (*text).to_owned(),
    });
    MappingSet::from_sources(sources.collect())
        .map_err(|errors| errors.to_string().lines().map(str::to_owned).collect())
}

fn faults(text: &str) -> Vec<String> {
    load(&[("shop.json", text)]).err().unwrap_or_default()
}

/// A mapping where everything but `fields` is given and valid.
fn mapping_with_fields(fields: &str) -> String {
    format!(
        r#"{{"name": "shop", "url_patterns": [{{"type": "host", "pattern": "a.example"}}],
            "fields": {fields}}}"#
    )
}

#[test]
fn every_fault_of_a_file_is_reported_with_line_and_path() {
    let text = r#"{
  "nam": "shop",
  "url_patterns": [
    {"type": "regx", "pattern": "a"},
    {"type": "regex", "pattern": "a("}
  ],
  "url_parsers": [
    {"processors": [{"type": "xpaht", "parameters": {"expression": "//a"}}]}
  ],
  "fields": [
    {"name": "Price", "processors": [{"type": "trim"}]},
    {
      "name": "title",
      "processors": [
        {"type": "xpath", "parameters": {"expression": "//td["}},
        {"type": "replace", "parameters": {"fnd": "a"}},
        {"type": "first", "parameters": []},
        {"type": "date", "parameters": {"formats": ["%Y", "%H", "%q"]}}
      ]
    }
  ]
}"#;
    let expected = [
        (
            "shop.json:2: nam:",
            "unknown key `nam`, did you mean `name`?",
        ),
        ("shop.json:1:", "the key `name` is missing"),
        (
            "shop.json:4: url_patterns[0].type:",
            "unknown type of pattern \"regx\", did you mean `regex`?",
        ),
        (
            "shop.json:5: url_patterns[1].pattern:",
            "invalid regex \"a(\": unclosed group",
        ),
        (
            "shop.json:8: url_parsers[0].processors[0].type:",
            "unknown processor `xpaht`, did you mean `xpath`?",
        ),
        ("shop.json:11: fields[0].name:", "bad name \"Price\""),
        (
            "shop.json:15: fields[1].processors[0].parameters.expression:",
            "invalid XPath \"//td[\"",
        ),
        (
            "shop.json:16: fields[1].processors[1].parameters.fnd:",
            "unknown key `fnd`, did you mean `find`?",
        ),
        (
            "shop.json:16: fields[1].processors[1].parameters:",
            "the key `find` is missing",
        ),
        (
            "shop.json:17: fields[1].processors[2].parameters:",
            "expected an object, found a list",
        ),
        (
            "shop.json:18: fields[1].processors[3].parameters.formats[1]:",
            "needs at least a year",
        ),
        (
            "shop.json:18: fields[1].processors[3].parameters.formats[2]:",
            "invalid date format \"%q\"",
        ),
    ];
    let found = faults(text);
    for (place, message) in expected {
        assert!(
            found
                .iter()
                .any(|fault| fault.starts_with(place) && fault.contains(message)),
            "missing: {place} {message}\nfound:\n{}",
            found.join("\n")
        );
    }
    assert_eq!(found.len(), expected.len(), "{}", found.join("\n"));
}

#[test]
fn each_wrong_parameter_is_explained() {
    for (step, part) in [
        (
            r#"{"type": "css", "parameters": {"selector": "a::before"}}"#,
            "invalid CSS selector \"a::before\"",
        ),
        (
            r#"{"type": "css", "parameters": {"selector": "a["}}"#,
            "invalid CSS selector \"a[\"",
        ),
        (
            r#"{"type": "regex", "parameters": {"pattern": "(a)", "group": 2}}"#,
            "no group 2; its groups are 0 to 1",
        ),
        (
            r#"{"type": "regex", "parameters": {"pattern": "(?P<x>a)", "group": "y"}}"#,
            "named are x",
        ),
        (
            r#"{"type": "jsonpath", "parameters": {"expression": "store"}}"#,
            "begins with $",
        ),
        (
            r#"{"type": "nth", "parameters": {"position": 0}}"#,
            "1 is the first value",
        ),
        (
            r#"{"type": "nth", "parameters": {"position": "2"}}"#,
            "expected a whole number from -1000000 to 1000000, found \"2\"",
        ),
        (
            r#"{"type": "replace", "parameters": {"find": "a", "with": "$1", "regex": true}}"#,
            "has no group \"1\"",
        ),
        (
            r#"{"type": "replace", "parameters": {"find": "a", "with": "$ 1", "regex": true}}"#,
            "write $$ for a dollar sign",
        ),
        (
            r#"{"type": "split", "parameters": {"separator": ""}}"#,
            "the separator is empty",
        ),
        (
            r#"{"type": "map", "parameters": {"table": {"a": 1}}}"#,
            "parameters.table.a: expected a text, found 1",
        ),
        (
            r#"{"type": "map", "parameters": {"table": {"a": "b"}, "others": "drip"}}"#,
            "expected one of keep, drop, found \"drip\"",
        ),
        (
            r#"{"type": "number", "parameters": {"decimal": ",", "group": ",."}}"#,
            "neither the decimal character",
        ),
        (
            r#"{"type": "validate"}"#,
            "give at least one of type, pattern",
        ),
        (
            r#"{"type": "validate", "parameters": {"min_length": 3, "max_length": 2}}"#,
            "at least min_length",
        ),
        (
            r#"{"type": "xpath", "parameters": {"expression": "//svg:path"}}"#,
            "svg",
        ),
        (
            r#"{"type": "xpath", "parameters": {"expression": ""}}"#,
            "empty",
        ),
        (
            r#"{"type": "trim", "parameters": {"characters": null}}"#,
            "expected a text, found null",
        ),
        (r#"{"parameters": {}}"#, "the key `type` is missing"),
        (r#""trim""#, "expected an object, found a text"),
    ] {
        let text = mapping_with_fields(&format!(r#"[{{"name": "a", "processors": [{step}]}}]"#));
        let found = faults(&text);
        assert_eq!(found.len(), 1, "{step}\n{}", found.join("\n"));
        assert!(found[0].contains(part), "{step}\n{}", found[0]);
        assert!(found[0].contains("fields[0].processors[0]"), "{}", found[0]);
    }
}

#[test]
fn fields_and_mappings_have_one_name_each() {
    let twice = r#"[{"name": "a", "processors": [{"type": "first"}]},
                    {"name": "a", "processors": [{"type": "first"}]}]"#;
    assert!(faults(&mapping_with_fields(twice))[0].contains("duplicate field \"a\""));
    let one = mapping_with_fields("[]");
    let found = load(&[("a.json", &one), ("b.json", &format!("[{one}]"))])
        .err()
        .unwrap_or_default();
    assert_eq!(
        found,
        ["b.json:1: [0].name: duplicate mapping name \"shop\", also in a.json"]
    );
    let doubled = one.replacen("\"name\"", "\"name\": \"x\", \"name\"", 1);
    assert!(faults(&doubled)[0].contains("name: duplicate key"));
}

#[test]
fn a_field_has_processors_or_alternatives_and_none_of_them_empty() {
    for (field, part) in [
        (r#"{"name": "a"}"#, "either `processors` or `alternatives`"),
        (
            r#"{"name": "a", "processors": [], "alternatives": []}"#,
            "either `processors` or `alternatives`",
        ),
        (
            r#"{"name": "a", "processors": []}"#,
            "the list of processors is empty",
        ),
        (
            r#"{"name": "a", "alternatives": []}"#,
            "the list of alternatives is empty",
        ),
        (
            r#"{"name": "a", "alternatives": [[]]}"#,
            "fields[0].alternatives[0]: the list of processors is empty",
        ),
        (
            r#"{"name": "a", "processors": [{"type": "first"}], "multiple": "yes"}"#,
            "expected true or false, found a text",
        ),
        (
            r#"{"name": "a.b", "processors": [{"type": "first"}]}"#,
            "must match ^[a-z][a-z0-9_]*$",
        ),
        (
            r#"{"name": "$where", "processors": [{"type": "first"}]}"#,
            "must match ^[a-z][a-z0-9_]*$",
        ),
    ] {
        let found = faults(&mapping_with_fields(&format!("[{field}]")));
        assert_eq!(found.len(), 1, "{}", found.join("\n"));
        assert!(found[0].contains(part), "{}", found[0]);
    }
}

#[test]
fn json_that_does_not_parse_is_reported_with_line_and_column() {
    assert_eq!(
        faults("{\n  \"name\": }"),
        ["shop.json:2:11: not valid JSON: expected value"]
    );
    assert!(faults("")[0].starts_with("shop.json:1:0: not valid JSON: EOF"));
    assert!(faults(&"[".repeat(100_000))[0].contains("recursion limit exceeded"));
    assert!(faults("7")[0].contains("expected an object, found a number"));
}

#[test]
fn hostile_expressions_are_refused_and_never_overflow_the_stack() {
    let deep = "(".repeat(20_000);
    for step in [
        format!(r#"{{"type": "xpath", "parameters": {{"expression": "{deep}"}}}}"#),
        format!(r#"{{"type": "css", "parameters": {{"selector": ":not{deep}"}}}}"#),
        format!(r#"{{"type": "regex", "parameters": {{"pattern": "{deep}"}}}}"#),
        format!(r#"{{"type": "jsonpath", "parameters": {{"expression": "$[?{deep}"}}}}"#),
    ] {
        let text = mapping_with_fields(&format!(r#"[{{"name": "a", "processors": [{step}]}}]"#));
        let found = faults(&text);
        assert_eq!(found.len(), 1);
        assert!(found[0].len() < 600, "{}", found[0]);
    }
    let glob = format!(
        r#"{{"name": "a", "url_patterns": [{{"type": "glob", "pattern": "{}"}}]}}"#,
        "{a,".repeat(1300)
    );
    assert_eq!(faults(&glob).len(), 1);
}

#[test]
fn a_set_knows_its_mappings_fields_and_version() {
    let first = mapping_with_fields(r#"[{"name": "b", "processors": [{"type": "first"}]}]"#);
    let second = first.replace("shop", "other").replace("\"b\"", "\"a\"");
    let set = load(&[("1.json", &first), ("2.json", &second)]).unwrap_or_else(|_| panic!("valid"));
    assert_eq!(set.len(), 2);
    assert_eq!(
        set.field_names().into_iter().collect::<Vec<_>>(),
        ["a", "b"]
    );
    let url = "https://a.example/";
    assert_eq!(set.find(url).map(|index| set.name(index)), Some("shop"));
    assert_eq!(set.find_all(url).len(), 2);
    assert_eq!(set.find("https://b.example/"), None);
    let moved = load(&[("elsewhere/1.json", &first), ("2.json", &second)])
        .unwrap_or_else(|_| panic!("valid"));
    assert_eq!(set.version(), moved.version());
    let changed = load(&[("1.json", &first)]).unwrap_or_else(|_| panic!("valid"));
    assert_ne!(set.version(), changed.version());
}

#[test]
fn an_xpath_that_ignores_the_steps_before_it_is_a_warning() {
    let chain = |steps: &str| {
        format!(
            r#"{{"name": "shop", "url_patterns": [{{"type": "host", "pattern": "shop.example"}}],
                "fields": [{{"name": "price", "processors": [{steps}]}}]}}"#
        )
    };
    let warnings = |steps: &str| -> Vec<String> {
        let set = load(&[("shop.json", &chain(steps))]).unwrap();
        set.warnings().iter().map(ToString::to_string).collect()
    };
    let css = r#"{"type": "css", "parameters": {"selector": ".offer"}}"#;
    let xpath = |expression: &str| {
        format!(r#"{{"type": "xpath", "parameters": {{"expression": "{expression}"}}}}"#)
    };
    let found = warnings(&format!("{css}, {}", xpath("//b")));
    let warning = r#"fields[0].processors[1].parameters.expression: "//b" searches the whole page"#;
    assert!(found.len() == 1 && found[0].contains(warning), "{found:?}");
    for right in [
        format!("{css}, {}", xpath(".//b")),
        xpath("//b"),
        // This XPath searches the tree of the text that `trim` returns, not that of the page.
        format!(r#"{css}, {{"type": "trim"}}, {}"#, xpath("//b")),
    ] {
        assert_eq!(warnings(&right), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn a_name_with_capitals_is_a_warning_with_its_place() {
    let fields = r#"[{"name": "a", "processors": [
        {"type": "xpath", "parameters": {"expression": "//svg/@ViewBox | //B"}}]}]"#;
    let text = mapping_with_fields(fields);
    let set = load(&[("shop.json", &text)]).unwrap();
    let warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
    let place = "shop.json:3: fields[0].processors[0].parameters.expression:";
    assert_eq!(
        warnings,
        [
            format!(
                "{place} `ViewBox` at offset 7 finds nothing on HTML pages: write `viewBox` within SVG or \
                 MathML, `viewbox` elsewhere; only XML has capitals"
            ),
            format!(
                "{place} `B` at offset 19 finds nothing on HTML pages: write `b`; only XML has capitals"
            ),
        ]
    );
    let css = mapping_with_fields(
        r#"[{"name": "a", "processors": [{"type": "css", "parameters": {"selector": "B"}}]}]"#,
    );
    assert_eq!(load(&[("shop.json", &css)]).unwrap().warnings(), []);
}
