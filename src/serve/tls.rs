//! Certificates.

use std::path::Path;
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::options::Tls;
use super::server::StartError;

/// What the listener needs, from files.
pub(super) fn config(tls: &Tls) -> Result<RustlsConfig, StartError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificates = certificates(&tls.certificates)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| bad(&tls.key, "a private key", &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StartError::Tls(error.to_string()))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(path)? {
                roots.add(certificate).map_err(|error| bad(path, "certificates of who signs", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| bad(path, "certificates of who signs", &error))?)
        }
    };
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| bad(&tls.key, &format!("the key of {}", tls.certificates.display()), &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(list) if list.is_empty() => {
            Err(StartError::Tls(format!("{}: found no certificate, expected some", path.display())))
        }
        Ok(list) => Ok(list),
        Err(error) => Err(bad(path, "certificates", &error)),
    }
}

fn bad(path: &Path, expected: &str, error: &impl std::fmt::Display) -> StartError {
    StartError::Tls(format!("{}: {error}, expected {expected} in PEM", path.display()))
}
