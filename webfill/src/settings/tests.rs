use toml::Value;

use super::names::*;
use super::table::Kind;
use super::*;

fn overlay_variables(variables: &[(&str, &str)]) -> Result<Table, Fault> {
    let mut table = Table::new();
    let owned = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    apply_variables(&mut table, owned).map(|()| table)
}

#[test]
fn every_setting_has_an_environment_variable() {
    let written = toml::to_string(&Settings::default()).unwrap();
    let table: Table = written.parse().unwrap();
    for (name, value) in &table {
        let paths: Vec<String> = match value {
            Value::Table(section) => section.keys().map(|key| format!("{name}.{key}")).collect(),
            _ => vec![name.clone()],
        };
        for path in paths {
            assert!(
                settings_with_variables().any(|(known, _)| known == path),
                "{path} has no entry in webfill/src/settings/table.rs"
            );
        }
    }
    for (path, kind) in settings_with_variables() {
        let example = match (path, kind) {
            ("politeness.clock", _) => "shared",
            ("supervisor.lane", _) => "browser",
            (_, Kind::Text | Kind::List | Kind::Lines) => "x",
            (_, Kind::Switch) => "true",
            _ => "7",
        };
        let table =
            overlay_variables(&[(&format!("{PREFIX}{}", variable_name(path)), example)]).unwrap();
        let read: Result<Settings, _> = table.try_into();
        assert!(read.is_ok(), "{path}: {read:?}");
    }
}

#[test]
fn environment_variables_override_the_settings_file() {
    let mut table: Table = "[politeness]\ndelay = 3.0".parse().unwrap();
    let variable = ("WEBFILL_POLITENESS_DELAY".to_owned(), "0.5".to_owned());
    apply_variables(&mut table, std::iter::once(variable)).unwrap();
    let settings: Settings = table.try_into().unwrap();
    assert_eq!(settings.politeness.delay, 0.5);
}

#[test]
fn an_invalid_file_is_refused_with_its_line_number_but_without_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("webfill.toml");
    for wrong in [
        "proxy = http://me:hidden@proxy",
        "proxy = \"http://me:hidden@proxy",
        "proxy \"http://me:hidden@proxy\"",
    ] {
        std::fs::write(&file, format!("state = \"s\"\n[fetch]\n{wrong}\n")).unwrap();
        let refusal = Settings::load(Some(&file)).unwrap_err().message;
        assert!(refusal.contains("webfill.toml: line 3: "), "{refusal}");
        assert!(!refusal.contains("hidden"), "{refusal}");
    }
}

#[test]
fn an_unknown_variable_is_refused_with_a_suggestion() {
    let message = |name: &str| overlay_variables(&[(name, "1")]).unwrap_err().message;
    assert_eq!(
        message("WEBFILL_POLITNESS_DELAY"),
        "WEBFILL_POLITNESS_DELAY: unknown variable, did you mean WEBFILL_POLITENESS_DELAY?"
    );
    assert_eq!(
        message("WEBFILL_RECORD"),
        "WEBFILL_RECORD: unknown variable, did you mean WEBFILL_RECORDS?"
    );
    assert_eq!(
        message("WEBFILL_COLOUR"),
        "WEBFILL_COLOUR: unknown variable"
    );
}

#[test]
fn an_unknown_key_of_the_file_is_refused_with_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("webfill.toml");
    let message = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let refusal = Settings::load(Some(&file)).unwrap_err().message;
        let reported = refusal.split_once("webfill.toml: ").unwrap().1;
        reported.to_owned()
    };
    assert_eq!(
        message("state = \"s\"\n[politeness]\ndelai = 1.0"),
        "line 3: politeness.delai: unknown key, did you mean politeness.delay?"
    );
    assert_eq!(
        message("[politness]\ndelay = 1.0"),
        "line 1: politness: unknown key, did you mean politeness?"
    );
    let far = message("[politeness]\ncolour = \"red\"");
    assert!(far.contains("colour") && far.contains("max_delay"), "{far}");
    assert_eq!(
        message("[politeness]\n\ndelay = \"long\""),
        "line 3: invalid type: string \"long\", expected f64 in `politeness.delay`"
    );
}

#[test]
fn unknown_names_and_wrong_values_are_refused() {
    assert!(overlay_variables(&[("WEBFILL_POLITENESS_DELY", "1")]).is_err());
    let wrong = overlay_variables(&[("WEBFILL_WORKER_CONCURRENCY", "many")]).unwrap_err();
    assert!(wrong.message.contains("many") && wrong.message.contains("whole number"));
    assert!(
        "polite = 1"
            .parse::<Table>()
            .unwrap()
            .try_into::<Settings>()
            .is_err()
    );
}
