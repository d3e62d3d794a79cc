//! Why a call is not answered as it was meant.

use super::version::Version;
use crate::evaluate::EvalError;
use crate::formats::FormatError;

/// Why a call is not answered as it was meant. The words are those of the wire, the same in JSON and gRPC.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody has put a snapshot yet, or the service had to drop what it held: it is a cache, to be filled again.
    #[error("there is no cluster here: put a snapshot first, also after a restart")]
    NoCluster,
    /// The call was meant for another version of the cluster.
    #[error("the call is for version {asked}, the cluster is at {current}")]
    Stale {
        /// The version that the caller knew.
        asked: Version,
        /// The version that there is.
        current: Version,
    },
    /// What was sent cannot be read.
    #[error("{0}")]
    Input(String),
    /// What was sent contradicts what is there; nothing has changed.
    #[error("edits[{at}]: {why}")]
    Refused {
        /// Which of the edits.
        at: usize,
        /// What was found and what was expected.
        why: String,
    },
    /// The cluster follows another source of truth.
    #[error("this service follows a Kubernetes cluster, which alone changes what is here")]
    Follows,
    /// More calls wait than the service keeps.
    #[error("too many calls wait already: try again later")]
    Busy,
    /// The deadline of the call has passed.
    #[error("the deadline of the call has passed")]
    Late,
    /// The service is about to end.
    #[error("the service is shutting down")]
    Closing,
    /// The service failed.
    #[error("internal fault: {0}")]
    Failed(String),
}

impl ServeError {
    /// Its word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoCluster => "no-cluster",
            Self::Stale { .. } => "stale",
            Self::Input(_) => "bad-input",
            Self::Refused { .. } => "refused",
            Self::Follows => "follows",
            Self::Busy => "busy",
            Self::Late => "late",
            Self::Closing => "closing",
            Self::Failed(_) => "failed",
        }
    }
}

impl From<FormatError> for ServeError {
    fn from(error: FormatError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<EvalError> for ServeError {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::TooLarge { .. } => Self::Input(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
