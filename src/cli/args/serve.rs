//! `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};

use super::{EvaluateArgs, integer};
use crate::formats::TopologyKeys;
use crate::serve::ServeFile;

/// `serve`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct ServeArgs {
    /// Where to listen; beyond loopback callers must be known, by --token-file or --tls-client-ca
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8888")]
    pub(in super::super) listen: SocketAddr,
    /// The cluster to begin with: anything that other commands take; without, a client puts one
    #[arg(long, value_name = "CLUSTER")]
    pub(in super::super) cluster: Option<String>,
    #[command(flatten)]
    pub(in super::super) evaluate: EvaluateArgs,
    /// A file whose first line every caller must show as its bearer token
    #[arg(long, value_name = "FILE")]
    pub(in super::super) token_file: Option<PathBuf>,
    /// The certificates of this service, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(in super::super) tls_cert: Option<PathBuf>,
    /// The key of the first of them, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(in super::super) tls_key: Option<PathBuf>,
    /// Who signs the certificates that clients must have, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(in super::super) tls_client_ca: Option<PathBuf>,
    /// The largest body in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = integer::<u32>(8..=4096))]
    pub(in super::super) max_body: u32,
    /// Calls at a time; more are told to come again
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = integer::<u32>(1..=65536))]
    pub(in super::super) max_calls: u32,
    /// How long a call may take, in milliseconds, whatever its caller would wait
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = integer::<u32>(1..=3_600_000))]
    pub(in super::super) call_timeout: u32,
    /// Follow a live cluster: nodes, pods, pod groups and claims as the API server tells; clients change nothing then
    #[arg(long, value_enum, conflicts_with = "cluster")]
    pub(in super::super) watch: Option<Watch>,
    /// For --watch: how to reach the API server [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE", requires = "watch")]
    pub(in super::super) kubeconfig: Option<PathBuf>,
    /// For --watch: the labels that say where nodes are, outermost first, or a preset [default: the first preset in use]
    #[arg(long, value_name = "LABELS", requires = "watch")]
    pub(in super::super) topology: Option<TopologyKeys>,
    /// Who decides for the scheduler extender, without moving anything
    #[arg(long, value_name = "POLICY", default_value = "best-fit", value_parser = ["best-fit", "compass", "first-fit", "worst-fit"])]
    pub(in super::super) extender_policy: String,
    /// When the extender answers, decided or not, in milliseconds; less than the scheduler's httpTimeout
    #[arg(long, value_name = "MS", default_value_t = 150, value_parser = integer::<u32>(1..=60_000))]
    pub(in super::super) extender_deadline: u32,
    /// Print a file to begin with, and end: with this address, deadline and TLS where it has a place for them
    #[arg(long, value_name = "WHAT", value_parser = file())]
    pub(in super::super) print: Option<ServeFile>,
    /// What is logged to standard error: error, warn, info, debug, or TARGET=LEVEL,…
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = log_filter)]
    pub(in super::super) log: String,
    /// How
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(in super::super) log_format: LogFormat,
}

/// What can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum Watch {
    /// A Kubernetes cluster.
    Kubernetes,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// The levels of log lines, the most silent first.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A filter of log lines. What filters them takes a level that it does not know for a target, and would be silent.
fn log_filter(text: &str) -> Result<String, String> {
    for directive in text.split(',') {
        let (target, level) =
            directive.rsplit_once('=').map_or((None, directive), |(target, level)| (Some(target), level));
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) || target == Some("") {
            return Err(format!("found {directive:?}, expected one of {}, or TARGET=LEVEL", LEVELS.join(", ")));
        }
    }
    Ok(text.to_owned())
}

fn file() -> impl TypedValueParser<Value = ServeFile> {
    let find = |word: String| ServeFile::ALL.into_iter().find(|file| file.name() == word);
    PossibleValuesParser::new(ServeFile::ALL.map(ServeFile::name)).try_map(move |word| find(word).ok_or("no such file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_levels_are_refused() {
        for good in ["info", "DEBUG", "off", "slotwise=debug", "warn,slotwise::serve=trace"] {
            assert_eq!(log_filter(good).as_deref(), Ok(good));
        }
        for bad in ["nope", "", "slotwise", "slotwise=", "=info", "info,", "slotwise=inof", "info,nope"] {
            assert!(log_filter(bad).unwrap_err().contains("expected one of off, error, warn, info"), "{bad}");
        }
    }
}
