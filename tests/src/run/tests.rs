use super::*;

fn shell(script: &str) -> Run {
    Run::of_program(Path::new("/bin/sh")).args(["-c", script])
}

#[test]
fn a_run_that_hangs_is_ended_with_all_its_processes() {
    let run = shell("setsid sleep 1000 & echo started; echo so >&2; sleep 2000; true");
    let mark = run.mark.clone();
    let mut running = run.time_limit(Duration::from_millis(500)).start();
    running.wait_for_role("1000", 1);
    let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.finish()));
    let message = judged.expect_err("it hangs");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(
        message.contains("did not end") && message.contains("started") && message.contains("so")
    );
    assert_eq!(process::find_marked(&mark), []);
}

#[test]
fn input_output_and_exit_code_arrive() {
    let run = shell("cat; echo problem >&2; exit 17")
        .input("hello")
        .finish()
        .expect_code(17);
    assert_eq!(
        (run.stdout.as_str(), run.one_sentence()),
        ("hello", "problem")
    );
    let silent = shell("cat").finish().expect_code(0);
    assert_eq!(silent.stdout, "", "without input there is none to read");
}

#[test]
fn one_process_of_many_can_be_killed() {
    let mut running = shell("sleep 1000; echo woken; sleep 2000").start();
    running.kill_role("1000");
    let second = running.wait_for_role("2000", 1).remove(0);
    assert!(second.peak_bytes() > 0);
    second.signal(Signal::TERM);
    let run = running.finish();
    assert_eq!(run.stdout, "woken\n");
}
