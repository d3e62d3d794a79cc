//! The clock of the wall jumps, forwards, backwards, and before 1970: deadlines and answers do not care.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Service;

/// Stands before the system's own clock, and adds the seconds that a file says.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, id, now);
    const char *path = getenv("JUMP");
    if (failed || id != CLOCK_REALTIME || !path) return (int)failed;
    char text[32] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atoll(text);
    close(file);
    return 0;
}
"#;

/// Compiles it, and returns where it is.
fn jumping_clock(folder: &Path) -> std::path::PathBuf {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, JUMPING).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("whoever links Rust has cc").success());
    library
}

fn decided(service: &Service) -> Vec<Value> {
    let state = service.get("/v1/page/state");
    assert_eq!(state.status, 200, "{}", state.text());
    state.json()["decisions"]["items"].as_array().unwrap().clone()
}

#[test]
fn jumps_of_the_clock_change_no_answer_and_no_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let jump = folder.path().join("jump");
    std::fs::write(&jump, "0").unwrap();
    let library = jumping_clock(folder.path());
    let environment = [("LD_PRELOAD", library.to_str().unwrap()), ("JUMP", jump.to_str().unwrap())];
    let service = Service::start_in(&["--log", "debug"], &environment);
    assert_eq!(service.put("/v1/cluster", super::snapshot(8)).status, 200);
    let seconds: [i64; 5] = [3_600, -3_600, 10 * 365 * 86_400, -80 * 365 * 86_400, 0];
    for (round, seconds) in seconds.into_iter().enumerate() {
        std::fs::write(&jump, seconds.to_string()).unwrap();
        let job = format!("j{round}");
        let place =
            json!({"queue": [{"job": job, "instances": 1, "gpus_per_instance": 8}], "commit": true}).to_string();
        let reply = service.post_with("/v1/place", place, &[("slotwise-deadline-ms", "10000")]);
        assert_eq!(reply.status, 200, "{seconds} s: {}", reply.text());
        let last = decided(&service).pop().unwrap();
        assert_eq!((&last["job"], &last["status"]), (&json!(job), &json!("placed")), "{seconds} s");
        // The clock did jump; before 1970 there is no time to tell.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let told = last["at_ms"].as_i64().unwrap() / 1_000;
        assert!(told.abs_diff((now + seconds).max(0)) < 60, "{seconds} s: {told}");
        assert_eq!((service.get("/readyz").status, service.get("/healthz").status), (200, 200), "{seconds} s");
        let metrics = service.get("/metrics").text();
        let age = metrics.lines().find_map(|line| line.strip_prefix("slotwise_state_age_seconds ")).unwrap();
        assert!((0.0..60.0).contains(&age.parse::<f64>().unwrap()), "{seconds} s: {age}");
    }
    assert_eq!(decided(&service).len(), 5);
    assert!(service.end(), "it ends as if nothing had been");
}
