use super::*;

fn project() -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("books.webfill");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("table.txt"), "books.csv").unwrap();
    let doubt = |key: &str| {
        json!({"key": key, "row": 2, "id": "b", "column": "year", "known": "1", "page": "2",
            "confidence": 0.9, "url": null, "excerpt": null, "doubt": {"id": key}})
    };
    let doubts = ["a", "b", "c"].map(doubt);
    let review = json!({"total": 3, "doubts": doubts});
    fs::write(own.join("review.json"), review.to_string()).unwrap();
    let tables = Tables::new(vec![folder.path().to_owned()]);
    let project = tables.get("books").unwrap();
    (folder, project)
}

fn new_answer(doubt: &Doubt, decision: Decision) -> Answer<'_> {
    Answer {
        key: &doubt.key,
        row: doubt.row,
        column: &doubt.column,
        decision,
        by: &Value::Null,
        doubt: &doubt.doubt,
        value: None,
    }
}

#[test]
fn answers_about_cells_count_until_a_run_has_read_them() {
    let (_folder, project) = project();
    let doubt = json!({"id": "z"});
    let answer = |decision, value| Answer {
        key: "own",
        row: 9,
        column: "title",
        decision,
        by: &Value::Null,
        doubt: &doubt,
        value,
    };
    project
        .append_answer(&answer(Decision::Accept, Some("Emma")))
        .unwrap();
    let review = project.read_review().unwrap();
    let of_cell = review.answer_of_cell(9, "title").unwrap();
    assert_eq!(of_cell.value.as_deref(), Some("Emma"));
    assert_eq!(review.count_accepted(), 0, "it is no listed doubt");
    let read = fs::metadata(project.answers_path()).unwrap().len();
    let answers = project.folder.join("answers.json");
    fs::write(answers, json!({"reviewed": read}).to_string()).unwrap();
    assert_eq!(
        project.read_review().unwrap().answer_of_cell(9, "title"),
        None
    );
    project
        .append_answer(&answer(Decision::Reject, None))
        .unwrap();
    let review = project.read_review().unwrap();
    assert!(!review.answer_of_cell(9, "title").unwrap().is_accepted);
    project
        .append_answer(&answer(Decision::Undo, None))
        .unwrap();
    assert_eq!(
        project.read_review().unwrap().answer_of_cell(9, "title"),
        None
    );
}

#[test]
fn answers_are_kept_and_taken_back_in_their_order() {
    let (_folder, project) = project();
    let answer = |place: usize, decision| {
        let doubt = project.read_review().unwrap().doubts[place].clone();
        project
            .append_answer(&new_answer(&doubt, decision))
            .unwrap();
    };
    answer(0, Decision::Accept);
    answer(2, Decision::Reject);
    let review = project.read_review().unwrap();
    assert_eq!(
        (
            review.count_accepted(),
            review.count_rejected(),
            review.count_open()
        ),
        (1, 1, 1)
    );
    assert_eq!(review.next_open_position(0), Some(1));
    assert_eq!(review.next_open_position(2), Some(1));
    assert_eq!(review.last_answered().unwrap().key, "c");
    answer(2, Decision::Undo);
    let review = project.read_review().unwrap();
    assert_eq!(review.last_answered().unwrap().key, "a");
    assert_eq!(review.next_open_position(2), Some(2));
    answer(0, Decision::Reject);
    assert_eq!(project.read_review().unwrap().count_accepted(), 0);
}

#[test]
fn a_run_counts_as_running_while_it_holds_its_lock() {
    let (_folder, project) = project();
    let state = project.folder.join("state");
    fs::create_dir(&state).unwrap();
    // A process with this id is alive, but it is another program that got the same id.
    let overview = json!({"stage": "running", "process": std::process::id()});
    fs::write(project.folder.join("overview.json"), overview.to_string()).unwrap();
    let stage = || project.read_overview().unwrap().unwrap()["stage"].clone();
    assert_eq!(stage(), "interrupted");
    let lock = File::create(state.join("fill.lock")).unwrap();
    assert_eq!(stage(), "interrupted");
    lock.lock().unwrap();
    assert_eq!(stage(), "running");
    drop(lock);
    assert_eq!(stage(), "interrupted");
}

/// A power loss during a write has left a line without a line end.
#[test]
fn a_line_without_its_end_is_no_answer_and_is_overwritten() {
    let (_folder, project) = project();
    let doubts = project.read_review().unwrap().doubts;
    project
        .append_answer(&new_answer(&doubts[0], Decision::Accept))
        .unwrap();
    let whole = fs::read(project.answers_path()).unwrap();
    let torn = [&whole[..], &whole[..20]].concat();
    fs::write(project.answers_path(), torn).unwrap();
    assert_eq!(project.read_review().unwrap().count_accepted(), 1);
    project
        .append_answer(&new_answer(&doubts[1], Decision::Reject))
        .unwrap();
    let review = project.read_review().unwrap();
    assert_eq!((review.count_accepted(), review.count_rejected()), (1, 1));
}
