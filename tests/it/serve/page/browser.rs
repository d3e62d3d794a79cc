//! A browser without a window, driven over its debugging pipe.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// Errors of the page, and what it wrote to the console.
    pub(super) complaints: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Opens a page; `None`, after saying so, where there is no Chromium.
    pub(super) fn open(url: &str) -> Option<Self> {
        let there = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
        let Some(program) = ["chromium", "chromium-browser", "google-chrome"].iter().find(there) else {
            println!("skipped: there is no chromium");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
             --disable-component-update --disable-sync --window-size=1500,1200 --remote-debugging-pipe";
        // It reads from descriptor 3 and writes to 4. Opened for both, a pipe waits for nobody.
        let mut command = Command::new("sh");
        command.args(["-c", "exec 3<>\"$1\" 4<>\"$2\"; shift 2; exec \"$@\"", "sh"]).args([&to, &from]).arg(program);
        command
            .args(flags.split_whitespace())
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut messages = BufReader::new(File::open(from).unwrap()).split(0).map_while(Result::ok);
            messages.try_for_each(|message| sender.send(serde_json::from_slice(&message).unwrap()))
        });
        let to = OpenOptions::new().read(true).write(true).open(to).unwrap();
        let mut browser =
            Self { child, to, from: receiver, calls: 0, session: None, complaints: Vec::new(), _folder: folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.navigate", json!({"url": url}));
        Some(browser)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut said = self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if said["id"] == self.calls {
                assert!(said.get("error").is_none(), "{method}: {said}");
                return said["result"].take();
            }
            if matches!(
                said["method"].as_str(),
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded")
            ) {
                self.complaints.push(said.to_string());
            }
        }
    }

    /// The value of an expression, once it is there if it is a promise.
    pub(super) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut evaluated = self.call("Runtime.evaluate", params);
        assert!(evaluated.get("exceptionDetails").is_none(), "{expression}: {evaluated}");
        evaluated["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(super) fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        // Before the page is there, it has none of its parts.
        let attempt = format!("(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()");
        while self.eval(&attempt) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "waited for {expression}: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The words of an element.
    pub(super) fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({}).innerText", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("{selector}")).to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
