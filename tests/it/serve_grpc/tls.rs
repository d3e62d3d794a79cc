//! A client that is known by its certificate.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use slotwise::evaluate::Cpu;
use slotwise::serve::{Client, ClientError, ClientOptions, ExtenderOptions, Limits, Live, ServeOptions, Tls};

use super::{nodes, run};

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Somebody who signs, and whom they signed.
    fn signed(&self, issuer: &str, name: &str) {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer_cert = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        self.write(issuer, &issuer_cert.pem());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer_cert).unwrap();
        self.write(name, &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }
}

fn serve(tls: Tls) -> String {
    let (told, address) = std::sync::mpsc::channel();
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: Some(tls),
        token: None,
        limits: Limits::default(),
        extender: ExtenderOptions::default(),
        watch: None,
    };
    std::thread::spawn(move || {
        let live = Live::new(Box::new(Cpu::new(1).unwrap()));
        slotwise::serve::run(live, options, |address| told.send(address).unwrap())
    });
    format!("https://{}", address.recv().unwrap())
}

fn options(url: &str, ca: &Path, identity: Option<(PathBuf, PathBuf)>) -> ClientOptions {
    ClientOptions {
        ca: Some(ca.to_owned()),
        identity,
        server_name: Some("localhost".to_owned()),
        ..ClientOptions::new(url)
    }
}

#[test]
fn certificates_are_asked_for_both_ways() {
    let files = Files { folder: tempfile::tempdir().unwrap() };
    files.signed("service-ca", "service");
    files.signed("client-ca", "client");
    files.signed("other-ca", "other");
    let url = serve(Tls {
        certificates: files.path("service"),
        key: files.path("service.key"),
        client_ca: Some(files.path("client-ca")),
    });
    let identity = |name: &str| Some((files.path(name), files.path(&format!("{name}.key"))));
    run(async {
        let put = async |options: &ClientOptions| Client::connect(options).await?.put(&nodes(2)).await;
        put(&options(&url, &files.path("service-ca"), identity("client"))).await.unwrap();
        for (ca, identity) in
            [("service-ca", None), ("service-ca", identity("other")), ("other-ca", identity("client"))]
        {
            let put = put(&options(&url, &files.path(ca), identity)).await;
            assert!(matches!(put, Err(ClientError::Transport(_) | ClientError::Other(_))), "{put:?}");
        }
        assert!(matches!(Client::connect(&ClientOptions::new(&url)).await, Err(ClientError::Options(_))));
    });
}
