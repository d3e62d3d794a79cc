//! Where output may go, and what is left if it does not get there.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;

use super::*;

/// Commands that print more than a pipe or a buffer holds, and ones that print little.
const COMMANDS: [&str; 4] = [
    "generate cluster --gpus 20000",
    "place --cluster synthetic:4000 --queue synthetic:9000",
    "audit --cluster synthetic:100 --format table",
    "devices",
];

#[test]
fn a_closed_pipe_is_no_failure() {
    for words in COMMANDS.into_iter().chain(["", "place --help"]) {
        let mut child = program()
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = text(&output.stderr).lines().filter(|line| !line.contains("note: ")).collect::<String>();
        assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{words}");
    }
}

#[test]
fn a_closed_pipe_leaves_the_snapshot_whole() {
    let folder = tempfile::tempdir().unwrap();
    let after = folder.path().join("after.json");
    let mut child = program()
        .args(["place", "--cluster", "synthetic:4000", "--queue", "synthetic:9000", "--snapshot-out"])
        .arg(&after)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(run(&format!("audit --cluster {}", after.display())).status.code(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in COMMANDS {
        let output = program().args(words.split_whitespace()).stdin(Stdio::null()).stdout(full()).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {error}");
        assert!(error.contains("cannot write standard output: No space left"), "{error}");
        let output = run(&format!("{words} --out /dev/full"));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {error}");
        assert!(error.contains("cannot write /dev/full: No space left"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let after = folder.path().join("after.json");
    let words = format!("place --cluster synthetic:400 --queue synthetic:900 --snapshot-out {}", after.display());
    let output = program().args(words.split_whitespace()).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a snapshot was left");
}

#[test]
fn an_output_that_cannot_be_made_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    for out in [format!("{path}"), format!("{path}/none/out"), format!("{path}/none/")] {
        let output = run(&format!("audit --cluster cluster.json --out {out}"));
        assert_eq!(output.status.code(), Some(1), "{out}");
        assert!(text(&output.stderr).contains(&out), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_bad_input_leaves_an_output_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::write(&out, "before").unwrap();
    let output = pipe(&format!("place --cluster cluster.json --queue - --out {}", out.display()), b"{");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(&out).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A run that has begun to make a file and waits: nobody reads what it prints.
fn begun(command: &mut Command, out: &Path) -> Child {
    let words = ["place", "--cluster", "synthetic:4000", "--queue", "synthetic:9000", "--quiet", "--snapshot-out"];
    let mut child = command.args(words).arg(out).stdout(Stdio::piped()).spawn().unwrap();
    while std::fs::read_dir(out.parent().unwrap()).unwrap().next().is_none() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn whoever_ends_the_program_finds_no_half_file() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = tempfile::tempdir().unwrap();
        // Tests that run behind nohup, or in the background of a script, inherit signals that are ignored.
        let mut listening = Command::new("env");
        listening.arg("--default-signal=INT,TERM,HUP").arg(program().get_program());
        let mut child = begun(&mut listening, &folder.path().join("out"));
        signal(&child, name);
        // The program dies of the signal, which a shell calls 130, 143 and 129.
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{name}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(program().get_program());
    let child = begun(&mut nohup, &out);
    signal(&child, "HUP");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(run(&format!("audit --cluster {}", out.display())).status.code(), Some(0));
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let (target, link) = (folder.path().join("there/out"), folder.path().join("link"));
    let other = folder.path().join("other");
    std::os::unix::fs::symlink("other", &link).unwrap();
    std::os::unix::fs::symlink("there/out", &other).unwrap();
    // Once to a file that is not there yet, once to one that is.
    for words in ["audit --cluster cluster.json", "generate queue --jobs 2"] {
        let output = run(&format!("{words} --out {}", link.display()));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(link.is_symlink() && other.is_symlink() && !target.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), run(words).stdout, "{words}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let output = run(&format!("audit --cluster cluster.json --out {}", circle.display()));
    assert_eq!(output.status.code(), Some(1));
    assert!(circle.is_symlink());
}
