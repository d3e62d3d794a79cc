//! How the service is run.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use subtle::ConstantTimeEq;

use super::extender::ExtenderOptions;
use super::watch::WatchOptions;

/// What clients may ask of the service. Whatever they send, memory stays below about `calls` bodies, `answers` bytes of
/// answers and a buffer for each of `connections`, and what the cluster itself takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body in bytes.
    pub body: usize,
    /// Calls at a time, over all connections.
    pub calls: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Calls that wait for the thread that owns the cluster.
    pub waiting: usize,
    /// Plans and audits at a time, and as many snapshots that are read or written.
    pub aside: usize,
    /// How long a call may take, whatever its caller would wait.
    pub call: Duration,
    /// How long the head of a request, or a handshake, may take to come.
    pub head_time: Duration,
    /// How long a body may take to come.
    pub body_time: Duration,
    /// Bytes of answers that are on their way, over all connections; further answers are refused as busy. One that is larger
    /// than that may be on its way alone.
    pub answers: usize,
    /// How long a client may take to read an answer, or each piece of one that comes in pieces; then its connection is cut.
    pub answer_time: Duration,
    /// How long calls may go on when the service is told to end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 << 20,
            calls: 256,
            connections: 1024,
            waiting: 1024,
            aside: 2,
            call: Duration::from_secs(30),
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            answers: 512 << 20,
            answer_time: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        }
    }
}

/// A secret that callers show. It is never printed.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl Token {
    /// The first line of a file, without blanks around it.
    ///
    /// # Errors
    /// If that is shorter than 16 bytes, or holds what a header cannot.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        let token = text.lines().next().unwrap_or_default().trim();
        let good = token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic());
        if good { Ok(Self(token.as_bytes().into())) } else { Err(BadToken) }
    }

    /// Whether an `Authorization` header shows it. Takes as long for a wrong one of the same length as for the right one.
    pub fn is_shown_by(&self, header: &[u8]) -> bool {
        let scheme = header.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Bearer "));
        scheme && bool::from(header[7..].ct_eq(&self.0))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found no token, expected at least 16 printable characters without blanks on the first line")]
pub struct BadToken;

/// A certificate and what goes with it, as files in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificates, the service's own first.
    pub certificates: PathBuf,
    /// The key of that.
    pub key: PathBuf,
    /// Who signs the certificates of clients; without, clients need none.
    pub client_ca: Option<PathBuf>,
}

/// How the service is run.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Encryption, if any.
    pub tls: Option<Tls>,
    /// What callers must show, if anything.
    pub token: Option<Token>,
    /// What they may ask.
    pub limits: Limits,
    /// How the scheduler extender decides.
    pub extender: ExtenderOptions,
    /// The Kubernetes cluster that is followed, if one is; clients change nothing then.
    pub watch: Option<WatchOptions>,
}

impl ServeOptions {
    /// Whether nobody beyond this machine can change anything without being known.
    pub fn is_safe(&self) -> bool {
        let knows_clients = self.token.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        self.listen.ip().is_loopback() || knows_clients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_or_not_and_never_printed() {
        let token = Token::new("  0123456789abcdef \nmore").unwrap();
        assert!(token.is_shown_by(b"Bearer 0123456789abcdef") && token.is_shown_by(b"bearer 0123456789abcdef"));
        for header in [
            &b""[..],
            b"Bearer",
            b"Bearer ",
            b"Basic 0123456789abcdef",
            b"Bearer 0123456789abcdeF",
            b"Bearer 0123456789abcdef ",
        ] {
            assert!(!token.is_shown_by(header));
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
        for bad in ["", "short", "0123456789 abcdef", "0123456789abcdé\u{7}"] {
            assert_eq!(Token::new(bad).err(), Some(BadToken), "{bad}");
        }
    }

    #[test]
    fn beyond_this_machine_callers_must_be_known() {
        let options = |listen: &str, token: bool, client_ca: Option<&str>| ServeOptions {
            listen: listen.parse().unwrap(),
            tls: Some(Tls { certificates: "c".into(), key: "k".into(), client_ca: client_ca.map(Into::into) }),
            token: token.then(|| Token::new("0123456789abcdef").unwrap()),
            limits: Limits::default(),
            extender: ExtenderOptions::default(),
            watch: None,
        };
        assert!(options("127.0.0.1:0", false, None).is_safe() && options("[::1]:0", false, None).is_safe());
        assert!(!options("0.0.0.0:0", false, None).is_safe() && !options("10.0.0.1:1", false, None).is_safe());
        assert!(options("0.0.0.0:0", true, None).is_safe() && options("0.0.0.0:0", false, Some("ca")).is_safe());
    }
}
