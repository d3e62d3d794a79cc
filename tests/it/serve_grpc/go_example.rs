//! The example in Go, against the program.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_in_go_does_what_it_says() {
    if Command::new("go").arg("version").output().is_err() {
        println!("skipped: there is no Go here");
        return;
    }
    let mut service = Ended(
        Command::new(env!("CARGO_BIN_EXE_slotwise"))
            .args(["serve", "--listen", "127.0.0.1:0", "--backend", "cpu"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(service.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening on ")).unwrap();
    let url = line.split_once("listening on ").unwrap().1.split_whitespace().next().unwrap();
    let output = Command::new("go")
        .args(["run", ".", url])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go-example"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let expected = "put the cluster\nbest for train-3: beside train-1\nstale\ngang on n1\ngang on n2\ngang on n3\n\
                    more is blocked: capacity\n";
    assert_eq!(told, expected);
}
