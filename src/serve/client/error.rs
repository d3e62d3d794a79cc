//! Why the service did not do what was asked, as its client sees it.

use tonic::{Code, Status};

use crate::serve::grpc::{ERROR_KEY, VERSION_KEY};
use crate::serve::version::Version;

/// Why the service did not do what was asked. Nothing has changed then, unless the way to the service broke: a change that
/// has an id may be sent again in any case.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service has no cluster, because it was started anew or had to drop it: put one.
    #[error("the service has no cluster: put one")]
    NoCluster,
    /// The cluster is at another version than the call was for.
    #[error("the call is for another version, the cluster is at {current}")]
    Stale {
        /// The version that there is.
        current: Version,
    },
    /// What was sent contradicts what is there; says which edit, and why.
    #[error("refused: {0}")]
    Refused(String),
    /// The service follows a Kubernetes cluster and takes no changes.
    #[error("{0}")]
    Follows(String),
    /// What was sent cannot be understood; names the column.
    #[error("bad input: {0}")]
    Input(String),
    /// Too many calls at a time: come again later.
    #[error("the service is busy")]
    Busy,
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Late,
    /// The service is about to end.
    #[error("the service is shutting down")]
    Closing,
    /// The token is missing or wrong.
    #[error("the service does not know the token")]
    Unauthenticated,
    /// The node is none that the service knows.
    #[error("found node {0:?}, expected one of the cluster")]
    UnknownNode(String),
    /// An option of the client is no good.
    #[error("{0}")]
    Options(String),
    /// There is no way to the service.
    #[error("cannot reach the service: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// Anything else, a broken connection above all.
    #[error("{0}")]
    Other(Box<Status>),
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        let text = |key| status.metadata().get(key).and_then(|value| value.to_str().ok());
        let message = || status.message().to_owned();
        let version = text(VERSION_KEY).and_then(|version| version.parse().ok());
        match (text(ERROR_KEY), status.code(), version) {
            (Some("no-cluster"), ..) => Self::NoCluster,
            (Some("stale"), _, Some(current)) => Self::Stale { current },
            (Some("refused"), ..) => Self::Refused(message()),
            (Some("follows"), ..) => Self::Follows(message()),
            (Some("bad-input"), ..) => Self::Input(message()),
            (Some("busy"), ..) => Self::Busy,
            (Some("closing"), ..) => Self::Closing,
            (Some("late"), ..) | (None, Code::DeadlineExceeded, _) => Self::Late,
            // The client ends a call itself when its time is up, and calls that cancelled; so it calls a connection that
            // breaks, too.
            (None, Code::Cancelled, _) if status.message() == "Timeout expired" => Self::Late,
            (None, Code::Unauthenticated, _) => Self::Unauthenticated,
            _ => Self::Other(Box::new(status)),
        }
    }
}
