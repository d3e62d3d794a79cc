//! Errors as gRPC has them: a code for every program, and the word for ours.

use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status};

use crate::serve::fault::ServeError;

/// The metadata that holds the word of an error.
pub const ERROR_KEY: &str = "slotwise-error";

/// The metadata that holds the version that there is, where another was asked for.
pub const VERSION_KEY: &str = "slotwise-version";

impl From<ServeError> for Status {
    fn from(error: ServeError) -> Self {
        let code = match &error {
            ServeError::NoCluster | ServeError::Refused { .. } | ServeError::Follows => Code::FailedPrecondition,
            ServeError::Stale { .. } => Code::Aborted,
            ServeError::Input(_) => Code::InvalidArgument,
            ServeError::Busy => Code::ResourceExhausted,
            ServeError::Late => Code::DeadlineExceeded,
            ServeError::Closing => Code::Unavailable,
            ServeError::Failed(_) => Code::Internal,
        };
        let mut status = Self::new(code, error.to_string());
        status.metadata_mut().insert(ERROR_KEY, MetadataValue::from_static(error.word()));
        if let ServeError::Stale { current, .. } = &error
            && let Ok(version) = current.to_string().parse::<MetadataValue<Ascii>>()
        {
            status.metadata_mut().insert(VERSION_KEY, version);
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::version::{Epoch, Version};

    #[test]
    fn every_error_has_its_code_and_its_word() {
        let version = Version { epoch: Epoch::new(), generation: 3 };
        let errors = [
            (ServeError::NoCluster, Code::FailedPrecondition, "no-cluster"),
            (ServeError::Stale { asked: version, current: version }, Code::Aborted, "stale"),
            (ServeError::Input("x".into()), Code::InvalidArgument, "bad-input"),
            (ServeError::Refused { at: 0, why: "x".into() }, Code::FailedPrecondition, "refused"),
            (ServeError::Follows, Code::FailedPrecondition, "follows"),
            (ServeError::Busy, Code::ResourceExhausted, "busy"),
            (ServeError::Late, Code::DeadlineExceeded, "late"),
            (ServeError::Closing, Code::Unavailable, "closing"),
            (ServeError::Failed("x".into()), Code::Internal, "failed"),
        ];
        for (error, code, word) in errors {
            let is_stale = matches!(error, ServeError::Stale { .. });
            let status = Status::from(error);
            let told = |key| status.metadata().get(key).map(|told| told.to_str().unwrap().to_owned());
            assert_eq!((status.code(), told(ERROR_KEY).as_deref()), (code, Some(word)));
            assert_eq!(told(VERSION_KEY), is_stale.then(|| version.to_string()));
        }
    }
}
