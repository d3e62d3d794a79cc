//! `serve`: the service.

use std::time::Duration;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::super::args::{LogFormat, ServeArgs, Watch};
use super::super::input;
use super::super::output;
use super::{Failure, Options, Talk, open_backend, write_all};
use crate::serve::{ExtenderOptions, Limits, Live, ServeFile, ServeOptions, StartError, Tls, Token, WatchOptions};

pub(super) fn run(args: &ServeArgs, options: &Options, talk: &Talk) -> Result<(), Failure> {
    let settings = settings(args)?;
    if let Some(file) = args.print {
        if matches!(file, ServeFile::SchedulerConfig | ServeFile::VolcanoConfig) && settings.token.is_some() {
            return Err(Failure::input(
                "--print: found --token-file for a scheduler, which shows none, expected --tls-client-ca",
            ));
        }
        if file == ServeFile::SystemdUnit && !settings.listen.ip().is_loopback() {
            return Err(Failure::input(
                "--print: found --listen beyond loopback, for which the unit would need your files too, expected loopback",
            ));
        }
        return write_all(options, file.text(&settings).as_bytes());
    }
    if !settings.is_safe() {
        return Err(Failure::Input(StartError::Unsafe(settings.listen).into()));
    }
    let cluster = args.cluster.as_deref().map(|origin| input::cluster(origin, None, talk)).transpose()?;
    let mut live = Live::new(open_backend(&args.evaluate, options, talk)?);
    if let Some(snapshot) = cluster {
        live.put(snapshot.cluster);
    }
    log(args)?;
    let backend = live.backend();
    let secure = settings.tls.is_some();
    crate::serve::run(live, settings, |address| {
        let scheme = if secure { "https" } else { "http" };
        tracing::info!(%address, backend, "listening on {scheme}://{address}");
    })
    .map_err(|error| match error {
        StartError::Unsafe(_) | StartError::Tls(_) | StartError::Watch(_) => Failure::Input(error.into()),
        StartError::Listen(..) | StartError::Io(_) => Failure::Failed(error.into()),
    })
}

fn settings(args: &ServeArgs) -> Result<ServeOptions, Failure> {
    let token = match &args.token_file {
        None => None,
        Some(path) => {
            let name = path.display();
            let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"));
            let token = Token::new(&text.map_err(Failure::Input)?);
            Some(token.map_err(|error| Failure::input(format_args!("{name}: {error}")))?)
        }
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => {
            Some(Tls { certificates: certificates.clone(), key: key.clone(), client_ca: args.tls_client_ca.clone() })
        }
        _ => None,
    };
    let limits = Limits {
        body: (args.max_body as usize) << 20,
        calls: args.max_calls as usize,
        call: Duration::from_millis(u64::from(args.call_timeout)),
        ..Limits::default()
    };
    let policy =
        args.extender_policy.parse().map_err(|_| Failure::input("--extender-policy: found an unknown policy"))?;
    let deadline = Duration::from_millis(u64::from(args.extender_deadline));
    let watch = args
        .watch
        .map(|Watch::Kubernetes| WatchOptions { kubeconfig: args.kubeconfig.clone(), topology: args.topology.clone() });
    let extender = ExtenderOptions { policy, deadline };
    Ok(ServeOptions { listen: args.listen, tls, token, limits, extender, watch })
}

/// Sends what the service has to say to standard error.
fn log(args: &ServeArgs) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&args.log)
        .map_err(|error| Failure::input(format_args!("--log: found {:?}: {error}", args.log)))?;
    output::log(filter, args.log_format == LogFormat::Json);
    Ok(())
}
