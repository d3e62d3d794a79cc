//! The service, from the outside: the program is started, and spoken to over loopback.

mod batch;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod clock;
mod extender;
mod hostile;
mod latency;
mod load;
mod metrics;
mod page;
mod plan;
mod security;
mod slow;
mod watch;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

/// A service that runs until it is dropped.
pub(crate) struct Service {
    child: Child,
    /// `http://ADDRESS:PORT`, or `https`.
    pub(crate) url: String,
    agent: ureq::Agent,
    token: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as JSON. Panics if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Service {
    /// Starts the program with these options, on a port that is free.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_in(options, &[])
    }

    /// The same, in an environment with these variables besides.
    fn start_in(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"))
            .args(["serve", "--listen", "127.0.0.1:0", "--backend", "cpu"])
            .args(options)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, url) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // The log is read to its end, or the pipe would fill up.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listening on ") {
                    let _ = told.send(rest.split_whitespace().next().unwrap_or_default().to_owned());
                }
            }
        });
        let url = url.recv_timeout(Duration::from_secs(60)).expect("the service does not say where it listens");
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        Self { child, url, agent: config.into(), token: None }
    }

    /// With a cluster of `nodes` nodes of 8 GPUs, n0 and so on, four to a rack.
    pub(crate) fn with_nodes(nodes: usize, options: &[&str]) -> Self {
        let service = Self::start(options);
        assert_eq!(service.put("/v1/cluster", snapshot(nodes)).status, 200);
        service
    }

    /// The same, with a token shown.
    #[must_use]
    pub(crate) fn showing(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        reply(request.call())
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.post_with(path, body, &[])
    }

    pub(crate) fn post_with(&self, path: &str, body: impl AsRef<[u8]>, headers: &[(&str, &str)]) -> Reply {
        self.send(self.agent.post(format!("{}{path}", self.url)), body, headers)
    }

    pub(crate) fn put(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.send(self.agent.put(format!("{}{path}", self.url)), body, &[])
    }

    fn send(
        &self,
        mut request: ureq::RequestBuilder<ureq::typestate::WithBody>,
        body: impl AsRef<[u8]>,
        headers: &[(&str, &str)],
    ) -> Reply {
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        reply(request.send(body.as_ref()))
    }

    /// `ADDRESS:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.split("://").nth(1).unwrap()
    }

    /// Ends it by SIGTERM and returns whether it ended well.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> bool {
        let id = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().success()
    }

    /// Ends it by SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reply(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut response = answer.unwrap();
    let headers = response.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned())).collect();
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
    Reply { status, headers, body }
}

/// A snapshot of empty nodes of 8 GPUs, n0 and so on, four to a rack.
pub(crate) fn snapshot(nodes: usize) -> String {
    let nodes: Vec<String> = (0..nodes).map(|n| format!(r#"{{"name":"n{n}","gpus":8,"rack":"r{}"}}"#, n / 4)).collect();
    format!(r#"{{"nodes":[{}]}}"#, nodes.join(","))
}

/// A job that starts on one node, as an edit.
pub(crate) fn start(job: &str, gpus: u8, node: &str) -> String {
    format!(r#"{{"start":{{"job":"{job}","gpus_per_instance":{gpus},"instances":[{{"node":"{node}"}}]}}}}"#)
}
