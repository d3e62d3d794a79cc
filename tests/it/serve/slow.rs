//! Clients that are slow to read what they asked for.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use slotwise::cluster::{ClusterBuilder, NodeSpec};
use slotwise::evaluate::Cpu;
use slotwise::formats::write_cluster;
use slotwise::serve::grpc::generated::{GetClusterRequest, slotwise_client::SlotwiseClient};
use slotwise::serve::{ExtenderOptions, Limits, Live, ServeOptions};

/// How long a client may take to read an answer.
const TIME: Duration = Duration::from_secs(3);

/// A service with room for little more than one snapshot on its way, and the length of that: more than the buffers of a
/// connection hold.
fn service() -> (SocketAddr, usize) {
    let mut builder = ClusterBuilder::new();
    for at in 0..300_000 {
        let (name, rack) = (format!("a-node-with-a-long-name-{at}"), format!("rack-{}", at / 16));
        builder.add_node(&NodeSpec { name: &name, gpus: 8, rack: Some(&rack), ..NodeSpec::default() }).unwrap();
    }
    let cluster = builder.finish().unwrap();
    let mut text = Vec::new();
    write_cluster(&cluster, None, &mut text).unwrap();
    assert!(text.len() > 16 << 20);
    let limits = Limits { answers: text.len() + (256 << 10), answer_time: TIME, ..Limits::default() };
    let (listen, extender) = ("127.0.0.1:0".parse().unwrap(), ExtenderOptions::default());
    let options = ServeOptions { listen, tls: None, token: None, limits, extender, watch: None };
    let (told, address) = mpsc::channel();
    std::thread::spawn(move || {
        let mut live = Live::new(Box::new(Cpu::new(1).unwrap()));
        live.put(cluster);
        slotwise::serve::run(live, options, |address| told.send(address).unwrap())
    });
    (address.recv().unwrap(), text.len())
}

/// Asks for the snapshot and reads the head of the answer: its first line.
fn ask(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /v1/cluster HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (stream, String::from_utf8(head).unwrap().lines().next().unwrap().to_owned())
}

/// How many bytes come until the connection ends, or so many are there.
fn rest(stream: &mut TcpStream, most: usize) -> usize {
    let (mut all, mut buffer) = (0, vec![0; 1 << 16]);
    while all < most {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => all += n,
        }
    }
    all
}

#[test]
fn what_slow_clients_keep_waiting_is_bounded_in_bytes_and_in_time() {
    let (address, length) = service();
    // One that does not read holds all the room there is: over HTTP and gRPC others are told so, and small answers go on.
    let (mut slow, line) = ask(address);
    assert_eq!(line, "HTTP/1.1 200 OK");
    let begun = Instant::now();
    assert_eq!(ask(address).1, "HTTP/1.1 429 Too Many Requests");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(async {
        let mut client = SlotwiseClient::connect(format!("http://{address}")).await.unwrap();
        let mut pieces = client.get_cluster(GetClusterRequest {}).await.unwrap().into_inner();
        pieces.message().await.unwrap_err()
    });
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status}");
    assert_eq!(status.metadata().get("slotwise-error").unwrap(), "busy");
    let version = ureq::get(format!("http://{address}/v1/version")).call().unwrap();
    assert_eq!(version.status(), 200);
    assert!(begun.elapsed() < TIME, "too slow a machine to tell");
    // Its time over, it is cut off, and the room is free for one that reads.
    std::thread::sleep(TIME.saturating_sub(begun.elapsed()));
    let end = Instant::now() + 5 * TIME;
    let (mut quick, line) = loop {
        let asked = ask(address);
        if asked.1.contains("200") || Instant::now() > end {
            break asked;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!((line.as_str(), rest(&mut quick, length)), ("HTTP/1.1 200 OK", length));
    let got = rest(&mut slow, length);
    assert!(got < length, "all of {length} bytes came");
    // A stream over gRPC that nobody reads is cut, too.
    runtime.block_on(async {
        let mut client = SlotwiseClient::connect(format!("http://{address}")).await.unwrap();
        let mut pieces = client.get_cluster(GetClusterRequest {}).await.unwrap().into_inner();
        let first = pieces.message().await.unwrap().unwrap();
        assert!(!first.version.is_empty());
        tokio::time::sleep(2 * TIME).await;
        let mut all = first.json.len();
        let ended = loop {
            match pieces.message().await {
                Ok(Some(piece)) => all += piece.json.len(),
                other => break other,
            }
        };
        assert!(ended.is_err() && all < length, "{all} of {length} bytes came");
    });
}
