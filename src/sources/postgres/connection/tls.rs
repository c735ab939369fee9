//! Encryption of a connection by `database.sslmode`, with the meaning that libpq gives each mode.
//!
//! Decides in which order plain and encrypted attempts are made, and what a server's certificate
//! must prove. Knows nothing of the messages that follow. Source of the rules: the PostgreSQL
//! manual, "SSL Support" of libpq, and what libpq does beyond it: a root certificate that is given
//! makes every encrypted attempt check the chain.
//! **Invariants:** the crypto provider is chosen here, never taken from the process; handshake
//! signatures are verified in every mode, so an unchecked certificate is still the peer's own.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{self, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::certificate::Certificate;
use crate::error::{Code, Fault};
use crate::sources::postgres::{ConnectionSettings, SslMode};

/// How one attempt to connect is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Not at all.
    None,
    /// If the server offers it.
    IfOffered,
    /// Or not connected.
    Required,
}

/// The attempts of a mode, in order. The next is made only if the one before failed over
/// encryption or was turned away before a secret was sent.
pub(super) const fn attempts(mode: SslMode) -> &'static [Encryption] {
    match mode {
        SslMode::Disable => &[Encryption::None],
        SslMode::Allow => &[Encryption::None, Encryption::Required],
        SslMode::Prefer => &[Encryption::IfOffered, Encryption::None],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Encryption::Required],
    }
}

/// What the server's certificate must prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Nothing.
    Anyone,
    /// That a trusted root signed it.
    Chain,
    /// That, and that it is for this host.
    ChainAndName,
}

const fn trust(mode: SslMode, has_root: bool) -> Trust {
    match mode {
        SslMode::VerifyFull => Trust::ChainAndName,
        SslMode::VerifyCa => Trust::Chain,
        _ if has_root => Trust::Chain,
        _ => Trust::Anyone,
    }
}

/// Builds the TLS configuration that the settings ask for.
///
/// # Errors
/// A certificate or key file cannot be read or used.
pub(super) async fn client_config(
    settings: &ConnectionSettings,
) -> Result<Arc<ClientConfig>, Fault> {
    let provider = Arc::new(crypto::ring::default_provider());
    let trust = trust(settings.sslmode, settings.sslrootcert.is_some());
    let anchors = match (&settings.sslrootcert, trust) {
        (Some(path), _) => certificates(path, "database.sslrootcert").await?,
        (None, Trust::Anyone) => Vec::new(),
        (None, Trust::Chain | Trust::ChainAndName) => system_roots().await?,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(anchors.iter().cloned());
    let verifier = Arc::new(Verifier { trust, anchors, roots, provider: Arc::clone(&provider) });
    let unusable = |error: Error| Code::SourceTls.fault("cannot set up TLS").caused_by(&error);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (&settings.sslcert, &settings.sslkey) {
        (Some(cert), Some(key)) => {
            let chain = certificates(cert, "database.sslcert").await?;
            builder.with_client_auth_cert(chain, private_key(key).await?).map_err(|error| {
                Code::SourceTls
                    .fault("database.sslcert and database.sslkey cannot be used together")
                    .caused_by(&error)
            })?
        }
        (None, None) => builder.with_no_client_auth(),
        (Some(_), None) | (None, Some(_)) => {
            return Err(
                Code::SourceTls.fault("database.sslcert and database.sslkey must be set together")
            );
        }
    };
    Ok(Arc::new(config))
}

async fn read(path: &Path, key: &str) -> Result<Vec<u8>, Fault> {
    tokio::fs::read(path).await.map_err(|error| {
        Code::SourceTls.fault(format!("cannot read {key} \"{}\"", path.display())).caused_by(&error)
    })
}

async fn certificates(path: &Path, key: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let text = read(path, key).await?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => {
            Err(Code::SourceTls
                .fault(format!("{key} \"{}\" holds no PEM certificate", path.display())))
        }
    }
}

async fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Fault> {
    let text = read(path, "database.sslkey").await?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        Code::SourceTls
            .fault(format!("database.sslkey \"{}\" holds no usable PEM key", path.display()))
            .caused_by(&error)
            .hint("Give an unencrypted key in PKCS#8, PKCS#1 or SEC1 form.")
    })
}

async fn system_roots() -> Result<Vec<CertificateDer<'static>>, Fault> {
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
        .await
        .map_err(|error| Code::Internal.fault("loading root certificates").caused_by(&error))?;
    if loaded.certs.is_empty() {
        return Err(Code::SourceTls
            .fault("the system has no root certificates")
            .hint("Set database.sslrootcert to the certificate of the server's authority."));
    }
    Ok(loaded.certs)
}

/// Asks the server for encryption. `true`: the handshake may begin.
///
/// Reads exactly one byte, so that nothing that was sent in the clear can pass for encrypted data
/// (CVE-2021-23222). Protocol: manual, "SSL Session Encryption" of the message flow.
///
/// # Errors
/// The connection broke, or the answer is neither `S` nor `N`.
pub(super) async fn request<S>(stream: &mut S) -> std::io::Result<bool>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut message = bytes::BytesMut::new();
    postgres_protocol::message::frontend::ssl_request(&mut message);
    stream.write_all(&message).await?;
    stream.flush().await?;
    match stream.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        // An error text that comes now is not authenticated, so it is not shown (CVE-2024-10977).
        other => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("unexpected answer 0x{other:02x} to the request for encryption"),
        )),
    }
}

/// The name that a certificate must be for, and that is announced (SNI) if it is no address.
///
/// # Errors
/// The host's name cannot be one.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, Fault> {
    ServerName::try_from(host.to_owned()).map_err(|error| {
        Code::SourceTls
            .fault(format!("\"{host}\" cannot be the name in a certificate"))
            .caused_by(&error)
    })
}

/// The server certificate's hash for SCRAM channel binding, where one is defined.
pub(super) fn end_point_digest(certificates: Option<&[CertificateDer<'_>]>) -> Option<Vec<u8>> {
    Certificate::parse(certificates?.first()?)?.end_point_digest()
}

/// Checks what [`Trust`] demands.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    /// The trusted certificates as they were given: a server may present one of them itself.
    anchors: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn verify_chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        // A self-signed certificate given as its own root is the common home-made set-up. It
        // usually is marked as an authority, which webpki refuses for a server and OpenSSL allows.
        if self.anchors.iter().any(|anchor| anchor.as_ref() == end_entity.as_ref()) {
            let certificate = Certificate::parse(end_entity)
                .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
            return if certificate.is_valid_at(now.as_secs()) {
                Ok(())
            } else {
                Err(Error::InvalidCertificate(CertificateError::Expired))
            };
        }
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )
    }
}

/// By alternative names; by the common name if the certificate has none, as libpq still allows.
fn verify_name(end_entity: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let verdict = verify_server_name(&ParsedCertificate::try_from(end_entity)?, name);
    if verdict.is_ok() {
        return verdict;
    }
    match Certificate::parse(end_entity) {
        Some(certificate)
            if !certificate.has_alternative_names()
                && certificate.common_name().is_some_and(|pattern| match name {
                    ServerName::DnsName(host) => matches_host(pattern, host.as_ref()),
                    _ => pattern == name.to_str(),
                }) =>
        {
            Ok(())
        }
        _ => verdict,
    }
}

/// Compares without case. A pattern `*.rest` stands for one label before `rest`.
fn matches_host(pattern: &str, host: &str) -> bool {
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let (Some(suffix), Some((label, rest))) = (pattern.strip_prefix("*."), host.split_once('.'))
    else {
        return false;
    };
    !label.is_empty() && suffix.contains('.') && suffix.eq_ignore_ascii_case(rest)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trust != Trust::Anyone {
            self.verify_chain(end_entity, intermediates, now)?;
        }
        if self.trust == Trust::ChainAndName {
            verify_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_root_makes_every_mode_check_the_chain() {
        for mode in [SslMode::Allow, SslMode::Prefer, SslMode::Require] {
            assert_eq!(trust(mode, false), Trust::Anyone);
            assert_eq!(trust(mode, true), Trust::Chain);
        }
        assert_eq!(trust(SslMode::VerifyCa, false), Trust::Chain);
        assert_eq!(trust(SslMode::VerifyFull, true), Trust::ChainAndName);
    }

    #[test]
    fn only_allow_and_prefer_ever_go_on_in_the_clear() {
        for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
            assert_eq!(attempts(mode), [Encryption::Required]);
        }
        assert_eq!(attempts(SslMode::Disable), [Encryption::None]);
        assert_eq!(attempts(SslMode::Allow), [Encryption::None, Encryption::Required]);
        assert_eq!(attempts(SslMode::Prefer), [Encryption::IfOffered, Encryption::None]);
    }

    #[track_caller]
    fn check_host(pattern: &str, host: &str, expect: bool) {
        assert_eq!(matches_host(pattern, host), expect);
    }

    #[test]
    fn common_names_match_whole_hosts_or_one_label() {
        check_host("db.example.org", "DB.example.org", true);
        check_host("*.example.org", "db.example.org", true);
        check_host("*.example.org", "a.db.example.org", false);
        check_host("*.example.org", "example.org", false);
        check_host("*.org", "example.org", false);
        check_host("*", "example", false);
        check_host("db", "db2", false);
    }
}
