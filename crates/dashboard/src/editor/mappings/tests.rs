use serde_json::json;

use super::*;

fn mapping(name: &str, expression: &str) -> Value {
    json!({
        "name": name,
        "url_patterns": [{"type": "host", "pattern": "people.example"}],
        "fields": [{"name": "name", "processors": [
            {"type": "xpath", "parameters": {"expression": expression}}
        ]}],
    })
}

fn new(file: &str) -> Edited {
    Edited {
        file: file.into(),
        place: None,
        version: None,
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_faulty_mapping_changes_nothing_and_the_fault_names_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    let refused = folder.save(&new("people.json"), &mapping("people", "//td["));
    let Err(NotSaved::Faults(faults)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        faults[0].path,
        "fields[0].processors[0].parameters.expression"
    );
    assert_eq!(faults[0].file, None);
    assert!(file_names(dir.path()).is_empty());
}

#[test]
fn former_versions_are_kept_and_their_number_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    folder
        .save(&new("people.json"), &mapping("people", "//p0"))
        .unwrap();
    for number in 1..=FORMER_VERSIONS + 3 {
        let (_, edited) = folder.find("people").unwrap();
        let saved = folder.save(&edited, &mapping("people", &format!("//p{number}")));
        let former = fs::read_to_string(saved.unwrap().former.unwrap()).unwrap();
        assert!(former.contains(&format!("//p{}\"", number - 1)), "{former}");
    }
    let names = file_names(dir.path());
    assert_eq!(names.len(), FORMER_VERSIONS + 1, "{names:?}");
    assert!(!names.contains(&"people.json.3".to_owned()));
    assert!(names.contains(&"people.json.13".to_owned()));
}

#[test]
fn a_former_version_that_cannot_be_dropped_makes_no_save_fail() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    folder
        .save(&new("people.json"), &mapping("people", "//p"))
        .unwrap();
    // A folder with this name cannot be removed as if it were a file.
    fs::create_dir(dir.path().join("people.json.1")).unwrap();
    for number in 0..=FORMER_VERSIONS {
        let (_, edited) = folder.find("people").unwrap();
        let expression = format!("//p{number}");
        folder
            .save(&edited, &mapping("people", &expression))
            .unwrap();
        assert!(
            folder
                .find("people")
                .unwrap()
                .0
                .to_string()
                .contains(&expression)
        );
    }
}

#[test]
fn changes_by_others_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    folder
        .save(&new("people.json"), &mapping("people", "//p"))
        .unwrap();
    let (_, edited) = folder.find("people").unwrap();
    let by_hand = "{\"name\": \"people\", \"url_patterns\": [{\"type\": \"host\", \"pattern\": \"a.example\"}]}";
    fs::write(dir.path().join("people.json"), by_hand).unwrap();
    for edited in [edited, new("people.json")] {
        let refused = folder.save(&edited, &mapping("people", "//q")).unwrap_err();
        assert!(matches!(refused, NotSaved::Changed(_)), "{refused}");
    }
    assert_eq!(
        fs::read_to_string(dir.path().join("people.json")).unwrap(),
        by_hand
    );
}

#[test]
fn of_two_who_save_at_once_one_is_refused() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        folder
            .save(&new("people.json"), &mapping("people", "//p"))
            .unwrap();
        let (_, edited) = folder.find("people").unwrap();
        let save = |expression: &'static str| {
            let (folder, edited) = (folder.clone(), edited.clone());
            std::thread::spawn(move || folder.save(&edited, &mapping("people", expression)).is_ok())
        };
        let savers = ["//a", "//b", "//c"].map(save);
        let saved = savers.map(|saver| saver.join().unwrap());
        assert_eq!(saved.iter().filter(|saved| **saved).count(), 1);
        assert_eq!(file_names(dir.path()), ["people.json", "people.json.1"]);
    }
}

#[test]
fn a_name_used_in_another_file_is_a_fault_and_faults_of_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    folder
        .save(&new("m.json"), &mapping("people", "//p"))
        .unwrap();
    for file in ["a.json", "z.json"] {
        let refused = folder
            .save(&new(file), &mapping("people", "//p"))
            .unwrap_err();
        assert!(matches!(refused, NotSaved::Faults(_)), "{refused}");
    }
    fs::write(dir.path().join("b.json"), "{").unwrap();
    fs::write(dir.path().join("c.json"), b"\xff").unwrap();
    folder
        .save(&new("z.json"), &mapping("places", "//p"))
        .unwrap();
    assert_eq!(folder.list().len(), 2);
}

#[test]
fn a_mapping_of_a_list_is_checked_and_saved_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    let list = json!([mapping("a", "//a"), mapping("b", "//b")]);
    fs::write(dir.path().join("list.json"), list.to_string()).unwrap();
    let (_, edited) = folder.find("b").unwrap();
    assert_eq!(edited.place, Some(1));
    let checked = folder.check(&edited, &mapping("b", "//b["));
    assert_eq!(
        checked.faults[0].path,
        "fields[0].processors[0].parameters.expression"
    );
    let checked = folder.check(&edited, &mapping("a", "//b"));
    assert_eq!(checked.faults[0].path, "name");
    folder.save(&edited, &mapping("b", "//c")).unwrap();
    let text = fs::read_to_string(dir.path().join("list.json")).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole, json!([mapping("a", "//a"), mapping("b", "//c")]));
}

#[test]
fn file_names_that_lead_out_of_the_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    for name in [
        "../x.json",
        "x",
        ".x.json",
        "schema.json",
        "a/b.json",
        ".json",
        "x.json.1",
        "ü.json",
    ] {
        let refused = folder
            .save(&new(name), &mapping("people", "//p"))
            .unwrap_err();
        assert!(matches!(refused, NotSaved::Name(_)), "{name}: {refused}");
    }
    assert!(file_names(dir.path()).is_empty());
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("people.json");
    fs::write(&path, "old").unwrap();
    // This is the state after a power loss before the rename. The hidden file must not count as a mapping.
    fs::write(dir.path().join(".people.json.part-1"), "half a").unwrap();
    assert_eq!(MappingSet::sources_of_dir(dir.path()).0.len(), 1);
    fs::create_dir(
        dir.path()
            .join(format!(".people.json.part-{}", std::process::id())),
    )
    .unwrap();
    write_whole(&path, b"new").unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}
