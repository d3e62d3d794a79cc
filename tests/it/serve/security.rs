//! Who may call.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use super::{Service, snapshot};

/// A file that goes away with the test.
fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn beyond_loopback_nobody_unknown_may_call() {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"))
        .args(["serve", "--listen", "0.0.0.0:0"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--token-file") && text.contains("--tls-client-ca"), "{text}");
}

#[test]
fn a_token_is_asked_of_everyone_and_never_logged() {
    let token = "correct-horse-battery";
    let (_kept, path) = file(&format!("{token}\n"));
    let service = Service::start(&["--token-file", &path, "--log", "trace"]);
    for (request, status) in [("/v1/version", 401), ("/v1/cluster", 401), ("/healthz", 200), ("/readyz", 503)] {
        assert_eq!(service.get(request).status, status, "{request}");
    }
    assert_eq!(service.post("/v1/extender/filter", "{}").status, 401);
    assert_eq!(service.put("/v1/cluster", snapshot(1)).status, 401);
    let known = service.showing("wrong-horse-battery");
    assert_eq!(known.get("/v1/version").status, 401);
    let known = known.showing(token);
    assert_eq!(known.put("/v1/cluster", snapshot(1)).status, 200);
    assert_eq!(known.get("/v1/version").status, 200);
    // A token that is none is told before anything is opened.
    let (_kept, short) = file("short\n");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"))
        .args(["serve", "--listen", "127.0.0.1:0", "--token-file", &short])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && !text.contains("short\""), "{text}");
}

#[test]
fn the_log_holds_no_secret() {
    let token = "a-secret-of-many-letters";
    let (_kept, path) = file(token);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"))
        .args(["serve", "--listen", "127.0.0.1:0", "--token-file", &path, "--log", "trace", "--log-format", "json"])
        .args(["--backend", "cpu"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(5));
    child.kill().unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    assert!(text.contains("listening on") && !text.contains(token), "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{text}");
}

/// Who signs, and what it signed: certificate and key in PEM.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap(), key)
    }
}

/// Asks for `/healthz` over TLS, with a certificate or without; the head of the answer, or what went wrong.
fn ask(
    address: &str,
    authority: &Authority,
    client: Option<(&rcgen::Certificate, &KeyPair)>,
) -> Result<String, String> {
    use std::io::Write;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            builder.with_client_auth_cert(vec![CertificateDer::clone(certificate.der())], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if answer.is_empty() => Err(error.to_string()),
        _ => Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()),
    }
}

#[test]
fn clients_show_certificates_where_they_are_asked_for() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.sign("localhost");
    let ((_a, cert), (_b, key), (_c, ca)) =
        (file(&certificate.pem()), file(&key.serialize_pem()), file(&authority.0.pem()));
    let service = Service::start(&["--tls-cert", &cert, "--tls-key", &key]);
    assert!(service.url.starts_with("https://"));
    assert_eq!(ask(service.address(), &authority, None), Ok("HTTP/1.1 200 OK".to_owned()));
    assert!(ask(service.address(), &other, None).is_err(), "the client does not know who signed");

    let service = Service::start(&["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca]);
    let (mine, my_key) = authority.sign("me");
    let (theirs, their_key) = other.sign("them");
    assert_eq!(ask(service.address(), &authority, Some((&mine, &my_key))), Ok("HTTP/1.1 200 OK".to_owned()));
    assert!(ask(service.address(), &authority, Some((&theirs, &their_key))).is_err());
    assert!(ask(service.address(), &authority, None).is_err());

    // A key that is not the certificate's is told at the start.
    let (_d, wrong) = file(&their_key.serialize_pem());
    let output = Command::new(assert_cmd::cargo::cargo_bin!("slotwise"))
        .args(["serve", "--listen", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &wrong])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A browser on this machine reaches the service, and any page may make it send something.
#[test]
fn pages_from_elsewhere_may_not_call() {
    let service = Service::with_nodes(1, &[]);
    let cordon = r#"{"edits":[{"cordon":"n0"}]}"#;
    let call = |headers: &[(&str, &str)]| service.post_with("/v1/edits", cordon, headers).status;
    let own = service.url.clone();
    assert_eq!(call(&[("origin", "http://evil.example")]), 403);
    assert_eq!(call(&[("host", "evil.example:80"), ("origin", "http://evil.example:80")]), 403);
    assert_eq!(call(&[("origin", "null")]), 403);
    assert_eq!(call(&[("host", "evil.example"), ("user-agent", "Mozilla/5.0")]), 403);
    assert_eq!(call(&[("host", "evil.example")]), 200, "no browser sent it");
    assert_eq!((call(&[("origin", &own)]), call(&[("host", "localhost:1")]), call(&[])), (200, 200, 200));
    // Nobody has to know a path to be told that it is none.
    let (_kept, path) = file("correct-horse-battery");
    let guarded = Service::start(&["--token-file", &path]);
    assert_eq!((guarded.get("/v1/nothing").status, guarded.get("/v1/version/").status), (404, 404));
}
