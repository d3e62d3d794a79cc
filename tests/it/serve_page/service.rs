//! The service as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A running service. It ends with this.
pub(super) struct Service {
    child: Child,
    origin: String,
    agent: ureq::Agent,
}

impl Service {
    /// Starts it on a free port of this machine.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotwise"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--backend", "cpu"]).args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find(|line| line.contains("listening on http://")).expect("the service says where it listens");
        let origin = said.split("listening on ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        // It must not wait for somebody to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .into();
        Self { child, origin, agent }
    }

    pub(super) fn agent(&self) -> &ureq::Agent {
        &self.agent
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// The status and the body of an answer.
    pub(super) fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.agent.get(self.url(path)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    pub(super) fn get_json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        answered(path, self.agent.post(self.url(path)).send(body.to_string()).unwrap())
    }

    pub(super) fn put(&self, path: &str, body: &Value) -> Value {
        answered(path, self.agent.put(self.url(path)).send(body.to_string()).unwrap())
    }
}

fn answered(path: &str, mut response: ureq::http::Response<ureq::Body>) -> Value {
    let body = response.body_mut().read_to_string().unwrap();
    assert_eq!(response.status(), 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that holds a token, and the folder that goes with it.
pub(super) fn token_file(token: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, token).unwrap();
    (folder, path)
}
