//! How a command can end badly, and the exit code of each way.

use std::fmt;

use crate::evaluate::EvalError;
use crate::formats::FormatError;

/// Why a command did not end well.
#[derive(Debug)]
pub(super) enum Failure {
    /// Bad input or usage; nothing was printed.
    Input(anyhow::Error),
    /// The work failed, or it ran and found a mismatch.
    Failed(anyhow::Error),
    /// A threshold that the user set was crossed.
    Threshold(anyhow::Error),
}

impl Failure {
    /// Bad input or usage.
    pub(super) fn input(text: impl fmt::Display) -> Self {
        Self::Input(anyhow::anyhow!("{text}"))
    }

    /// Failed, for this reason.
    pub(super) fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(anyhow::anyhow!("{text}"))
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Input(_) => 2,
            Failure::Threshold(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    /// One line: the error and its causes, but those that it repeats itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Input(error) | Failure::Failed(error) | Failure::Threshold(error)) = self;
        let mut text = error.to_string();
        for cause in error.chain().skip(1).map(ToString::to_string) {
            if !text.ends_with(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text.replace('\n', " "))
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        Failure::Input(error.into())
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        Failure::Failed(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no space").context("cannot write: no space").context("no report");
        assert_eq!(Failure::Failed(error).to_string(), "no report: cannot write: no space");
    }
}
