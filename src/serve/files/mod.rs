//! Files that go with the service, as text: the configuration of schedulers that ask it, and ways to run it.

use super::options::ServeOptions;

/// A file that goes with the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeFile {
    /// A `KubeSchedulerConfiguration` that asks the extender.
    SchedulerConfig,
    /// A tier of Volcano's configuration.
    VolcanoConfig,
    /// What to apply to a cluster: rights, deployment, service.
    Manifest,
    /// A systemd unit.
    SystemdUnit,
    /// How to build a container image.
    Containerfile,
    /// A board for Grafana, of what `/metrics` says.
    GrafanaBoard,
    /// The definition of the calls over gRPC.
    Proto,
}

impl ServeFile {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SchedulerConfig,
        Self::VolcanoConfig,
        Self::Manifest,
        Self::SystemdUnit,
        Self::Containerfile,
        Self::GrafanaBoard,
        Self::Proto,
    ];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SchedulerConfig => "scheduler-config",
            Self::VolcanoConfig => "volcano-config",
            Self::Manifest => "manifest",
            Self::SystemdUnit => "systemd-unit",
            Self::Containerfile => "containerfile",
            Self::GrafanaBoard => "grafana-board",
            Self::Proto => "proto",
        }
    }

    /// Its text, for a service with these options. The timeout of schedulers is a third more than what the extender takes
    /// at most, and 50 ms.
    pub fn text(self, options: &ServeOptions) -> String {
        let text = match self {
            Self::SchedulerConfig => include_str!("kube-scheduler.yaml"),
            Self::VolcanoConfig => include_str!("volcano.yaml"),
            Self::Manifest => include_str!("manifest.yaml"),
            Self::SystemdUnit => include_str!("slotwise.service"),
            Self::Containerfile => include_str!("Containerfile"),
            Self::GrafanaBoard => include_str!("grafana-board.json"),
            Self::Proto => include_str!("../grpc/slotwise.proto"),
        };
        let deadline = options.extender.deadline.as_millis();
        let tls = match &options.tls {
            None => String::new(),
            Some(tls) => {
                let client = "    certFile: /etc/kubernetes/slotwise-client.crt\n    keyFile: /etc/kubernetes/slotwise-client.key\n";
                let client = if tls.client_ca.is_some() { client } else { "" };
                format!("  enableHTTPS: true\n  tlsConfig:\n    caFile: /etc/kubernetes/slotwise-ca.crt\n{client}")
            }
        };
        text.replace("@SCHEME@", if options.tls.is_some() { "https" } else { "http" })
            .replace("@ADDRESS@", &options.listen.to_string())
            .replace("@TIMEOUT@", &(deadline + deadline / 3 + 50).to_string())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@TLS@\n", &tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::{ExtenderOptions, Limits, Tls, watch};

    #[test]
    fn every_file_is_filled_in() {
        let tls = Tls { certificates: "c".into(), key: "k".into(), client_ca: Some("ca".into()) };
        for tls in [None, Some(tls)] {
            let secure = tls.is_some();
            let options = ServeOptions {
                listen: "10.1.2.3:8888".parse().unwrap(),
                tls,
                token: None,
                limits: Limits::default(),
                extender: ExtenderOptions::default(),
                watch: None,
            };
            for file in ServeFile::ALL {
                let text = file.text(&options);
                assert!(!text.contains('@') || file == ServeFile::Manifest && !text.contains("@V"), "{text}");
            }
            let text = ServeFile::SchedulerConfig.text(&options);
            let scheme = if secure { "https" } else { "http" };
            assert!(text.contains(&format!("urlPrefix: {scheme}://10.1.2.3:8888/v1/extender\n")), "{text}");
            assert!(text.contains("httpTimeout: 250ms") && text.contains("enableHTTPS: true") == secure, "{text}");
            for document in [&text, &ServeFile::Manifest.text(&options), &ServeFile::VolcanoConfig.text(&options)] {
                for part in document.split("\n---\n") {
                    serde_saphyr::from_str::<serde_json::Value>(part).unwrap();
                }
            }
        }
    }

    /// Following needs to list and to watch, and nothing else.
    #[test]
    fn the_manifest_asks_for_the_least_rights() {
        let text = include_str!("manifest.yaml");
        let role: serde_json::Value = text
            .split("\n---\n")
            .map(|part| serde_saphyr::from_str(part).unwrap())
            .find(|part: &serde_json::Value| part["kind"] == "ClusterRole")
            .unwrap();
        let rule = |resources: &[(&str, String)]| {
            let mut groups: Vec<&str> = resources.iter().map(|(group, _)| *group).collect();
            let mut plurals: Vec<&str> = resources.iter().map(|(_, plural)| plural.as_str()).collect();
            groups.dedup();
            plurals.dedup();
            serde_json::json!({"apiGroups": groups, "resources": plurals, "verbs": ["list", "watch"]})
        };
        let followed = watch::followed();
        let (core, others) = followed.split_at(2);
        let (groups, claims) = others.split_at(3);
        assert_eq!(role["rules"], serde_json::json!([rule(core), rule(groups), rule(claims)]));
    }
}
