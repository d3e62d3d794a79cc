//! What nobody should send, and how slowly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Service, snapshot};

#[test]
fn malformed_bodies_are_told_what_is_wrong() {
    let service = Service::with_nodes(1, &[]);
    for (path, body, says) in [
        ("/v1/edits", "", "EOF"),
        ("/v1/edits", "{}", "missing field `edits`"),
        ("/v1/edits", r#"{"edits":[{"start":{"job":"a"}}]}"#, "missing field `gpus_per_instance`"),
        ("/v1/edits", r#"{"edits":[],"more":1}"#, "unknown field `more`"),
        ("/v1/edits", r#"{"edits":[]} x"#, "trailing"),
        ("/v1/edits", r#"{"edits":[],"version":"7"}"#, "version"),
        ("/v1/edits", r#"{"edits":[],"id":""}"#, "id"),
        ("/v1/score", r#"{"queue":[{"job":"a"}],"candidates":[]}"#, "instances"),
        ("/v1/score", r#"{"queue":[],"candidates":[{"job":"a"}]}"#, "candidate"),
        ("/v1/score", "{\"queue\":[{\"job\":\n\n7}],\"candidates\":[]}", "queue:1:"),
        ("/v1/place", r#"{"queue":[],"policy":"nope"}"#, "best-fit"),
        ("/v1/place", r#"{"queue":[],"compact":"nope"}"#, "every-event"),
        ("/v1/place", r#"{"queue":[{"remove":"nobody"}]}"#, "nobody"),
        ("/v1/place", "\u{0}", "expected value"),
    ] {
        let reply = service.post(path, body);
        let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (reply.status, reply.json()["error"].as_str()),
            (400, Some("bad-input")),
            "{path} {body}: {message}"
        );
        assert!(message.contains(says), "{path} {body}: {message}");
    }
    let bad = service.put("/v1/cluster", r#"{"nodes":[{"name":"a","gpus":99}]}"#);
    assert!(bad.status == 400 && bad.text().contains("nodes[0].gpus"), "{}", bad.text());
    assert_eq!(service.post_with("/v1/score", "{}", &[("slotwise-deadline-ms", "soon")]).status, 400);
    for (path, status, word) in [("/v1/nothing", 404, "no-such-path"), ("/v1/edits", 405, "no-such-method")] {
        let reply = service.get(path);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (status, Some(word)));
    }
    assert_eq!(service.get("/v1/version").status, 200, "the cluster is as it was");
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    let service = Service::start(&["--max-body", "8"]);
    // Eight mebibytes are what a scheduler may need to send.
    let almost = format!("{}{}", " ".repeat((8 << 20) - 4096), snapshot(1));
    assert_eq!(service.put("/v1/cluster", almost).status, 200);
    let mut stream = TcpStream::connect(service.address()).unwrap();
    write!(stream, "PUT /v1/cluster HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 9 << 20).unwrap();
    // It may close before all is sent.
    let _ = stream.write_all(&vec![b' '; 9 << 20]);
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn a_deadline_that_has_passed_gets_a_late_answer() {
    let service = Service::with_nodes(1, &[]);
    let late = service.post_with("/v1/place", r#"{"queue":[]}"#, &[("slotwise-deadline-ms", "0")]);
    assert_eq!((late.status, late.json()["error"].as_str()), (504, Some("late")));
}

#[test]
fn too_many_calls_are_told_to_come_again() {
    let service = Service::with_nodes(1, &["--max-calls", "2"]);
    // Callers begin a call and do not go on. One that comes while the question below is answered may be sent away itself, so
    // there are more and more.
    let mut slow = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(50);
    let busy = loop {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        write!(stream, "POST /v1/place HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{").unwrap();
        slow.push(stream);
        let reply = service.get("/v1/version");
        if reply.status != 200 || Instant::now() > deadline {
            break reply;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((busy.status, busy.header("retry-after")), (429, Some("1")), "{}", busy.text());
    assert_eq!(service.get("/healthz").status, 200, "the process still says that it lives");
}

#[test]
fn half_open_connections_and_rubbish_do_no_harm() {
    let service = Service::with_nodes(1, &[]);
    let mut open = Vec::new();
    for bytes in [
        &b""[..],
        b"GET",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9\r\n\r\n",
        &[0xff; 100_000],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00",
    ] {
        let mut stream = TcpStream::connect(service.address()).unwrap();
        let _ = stream.write_all(bytes);
        open.push(stream);
    }
    for _ in 0..10 {
        assert_eq!(service.get("/v1/version").status, 200);
    }
    drop(open);
    assert!(service.end());
}

#[test]
fn the_end_waits_for_calls_in_flight() {
    let service = Service::with_nodes(1, &[]);
    let mut stream = TcpStream::connect(service.address()).unwrap();
    let body = r#"{"queue":[]}"#;
    write!(stream, "POST /v1/place HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())
        .unwrap();
    // The call has begun once the service has seen its head.
    std::thread::sleep(Duration::from_millis(300));
    let ending = std::thread::spawn(move || service.end());
    std::thread::sleep(Duration::from_millis(300));
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("decisions"), "{answer}");
    assert!(ending.join().unwrap());
}
