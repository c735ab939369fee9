//! Encryption and authentication against a server with certificates and access rules of its own.

use std::path::Path;

use tidegate::error::{Code, Fault};
use tidegate::sources::postgres::connection::{Connection, Purpose};
use tidegate::sources::postgres::{ConnectionSettings, SslMode};

use super::cluster::{Certificate, Cluster, RSA};

const MODES: [SslMode; 6] = [
    SslMode::Disable,
    SslMode::Allow,
    SslMode::Prefer,
    SslMode::Require,
    SslMode::VerifyCa,
    SslMode::VerifyFull,
];

const ACCESS: &str = "\
    hostssl   all only_tls      127.0.0.1/32 scram-sha-256\n\
    hostnossl all only_plain    127.0.0.1/32 scram-sha-256\n\
    host      all by_md5        127.0.0.1/32 md5\n\
    host      all by_clear_text 127.0.0.1/32 password\n\
    hostssl   all by_cert       127.0.0.1/32 cert\n\
    host      all by_scram      127.0.0.1/32 scram-sha-256\n";

const ROLES: &str = "\
    SET password_encryption = 'scram-sha-256'; \
    CREATE ROLE by_scram LOGIN REPLICATION PASSWORD 'sécret'; \
    CREATE ROLE only_tls LOGIN REPLICATION PASSWORD 'sécret'; \
    CREATE ROLE only_plain LOGIN REPLICATION PASSWORD 'sécret'; \
    CREATE ROLE by_clear_text LOGIN REPLICATION PASSWORD 'sécret'; \
    SET password_encryption = 'md5'; \
    CREATE ROLE by_md5 LOGIN REPLICATION PASSWORD 'sécret'; \
    CREATE ROLE by_cert LOGIN REPLICATION";

fn certificates(directory: &Path) {
    let made = |name, common_name, names, authority, key: &'static [&'static str]| {
        Certificate { name, common_name, names, authority, key }.create(directory);
    };
    made("ca", "Authority", None, None, RSA);
    made("other_ca", "Other Authority", None, None, RSA);
    made("good", "db", Some("DNS:localhost,IP:127.0.0.1"), Some("ca"), RSA);
    made("elsewhere", "elsewhere.example", Some("DNS:elsewhere.example"), Some("ca"), RSA);
    let curve = &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-sha384"];
    made("only_cn", "localhost", None, Some("ca"), curve);
    made("self_signed", "localhost", None, None, RSA);
    made("ed25519", "localhost", Some("DNS:localhost"), None, &["-newkey", "ed25519"]);
    made("client", "by_cert", None, Some("ca"), RSA);
}

async fn cluster(name: &str) -> Option<Cluster> {
    let conf = "ssl = on\nssl_cert_file = '../good.pem'\nssl_key_file = '../good.key'\n\
                ssl_ca_file = '../ca.pem'\n";
    let cluster = Cluster::start(name, conf, ACCESS, certificates).await?;
    cluster.execute(ROLES).await;
    Some(cluster)
}

/// Presents another certificate.
fn present(cluster: &Cluster, name: &str) {
    cluster
        .restart_with(&format!("ssl_cert_file = '../{name}.pem'\nssl_key_file = '../{name}.key'"));
}

/// Connects both ways and tells whether the server sees the sessions encrypted.
async fn is_encrypted(settings: &ConnectionSettings) -> Result<bool, Fault> {
    let mut seen = Vec::new();
    for purpose in [Purpose::Control, Purpose::Replication] {
        let mut connection = Connection::open(settings, purpose).await?;
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        seen.push(connection.query_one("looking", sql).await?.is_true(0)?);
    }
    assert_eq!(seen[0], seen[1]);
    Ok(seen[0])
}

async fn check(
    cluster: &Cluster,
    (user, password): (&str, &str),
    (mode, root): (SslMode, Option<&str>),
    expect: Result<bool, Code>,
) {
    let mut settings = cluster.settings(user, password);
    settings.sslmode = mode;
    settings.sslrootcert = root.map(|name| cluster.directory.join(name).with_extension("pem"));
    let outcome = is_encrypted(&settings).await;
    let code = outcome.as_ref().map(|seen| *seen).map_err(Fault::code);
    assert_eq!(code, expect, "{user} {mode:?} {root:?}: {:?}", outcome.map_err(|f| f.to_string()));
}

const SCRAM: (&str, &str) = ("by_scram", "sécret");

#[tokio::test]
async fn every_mode_means_what_libpq_means_by_it() {
    use SslMode::{Allow, Disable, Prefer, Require, VerifyCa, VerifyFull};
    let Some(cluster) = cluster("modes").await else { return };

    // A certificate for this host, signed by the authority.
    for mode in MODES {
        let encrypted = !matches!(mode, Disable | Allow);
        check(&cluster, SCRAM, (mode, Some("ca")), Ok(encrypted)).await;
    }
    let refused = Err(Code::SourceTls);
    for mode in [Require, VerifyCa, VerifyFull] {
        check(&cluster, SCRAM, (mode, Some("other_ca")), refused).await;
    }
    check(&cluster, SCRAM, (Prefer, Some("other_ca")), Ok(false)).await;
    check(&cluster, SCRAM, (Require, None), Ok(true)).await;
    check(&cluster, SCRAM, (Require, Some("no_such_file")), refused).await;
    // The system's authorities do not know ours.
    check(&cluster, SCRAM, (VerifyFull, None), refused).await;

    present(&cluster, "elsewhere");
    check(&cluster, SCRAM, (Require, None), Ok(true)).await;
    check(&cluster, SCRAM, (VerifyCa, Some("ca")), Ok(true)).await;
    check(&cluster, SCRAM, (VerifyFull, Some("ca")), refused).await;

    present(&cluster, "only_cn");
    check(&cluster, SCRAM, (VerifyFull, Some("ca")), Ok(true)).await;

    present(&cluster, "self_signed");
    check(&cluster, SCRAM, (VerifyFull, Some("self_signed")), Ok(true)).await;
    check(&cluster, SCRAM, (VerifyFull, Some("ca")), refused).await;

    // No channel binding is defined for this kind of certificate.
    present(&cluster, "ed25519");
    check(&cluster, SCRAM, (Require, None), Ok(true)).await;

    cluster.restart_with("ssl = off");
    for mode in [Require, VerifyCa, VerifyFull] {
        check(&cluster, SCRAM, (mode, Some("ca")), refused).await;
    }
    for mode in [Disable, Allow, Prefer] {
        check(&cluster, SCRAM, (mode, None), Ok(false)).await;
    }
}

#[tokio::test]
async fn every_method_authenticates_and_refuses_a_wrong_password() {
    use SslMode::{Allow, Disable, Prefer, Require};
    let Some(cluster) = cluster("methods").await else { return };
    let denied = Err(Code::SourceAuthentication);
    for user in ["by_scram", "by_md5", "by_clear_text"] {
        for (mode, encrypted) in [(Disable, false), (Require, true)] {
            check(&cluster, (user, "sécret"), (mode, None), Ok(encrypted)).await;
            check(&cluster, (user, "guess"), (mode, None), denied).await;
            check(&cluster, (user, ""), (mode, None), denied).await;
        }
    }
    // Access rules that turn one kind of connection away before a password is asked.
    check(&cluster, ("only_tls", "sécret"), (Disable, None), denied).await;
    check(&cluster, ("only_tls", "sécret"), (Allow, None), Ok(true)).await;
    check(&cluster, ("only_plain", "sécret"), (Prefer, None), Ok(false)).await;
    check(&cluster, ("only_plain", "sécret"), (Require, None), denied).await;
    check(&cluster, ("no_such_role", "sécret"), (Prefer, None), denied).await;
}

#[tokio::test]
async fn unix_sockets_are_never_encrypted() {
    let access = "";
    let Some(cluster) = Cluster::start("unix", "", access, |_| {}).await else { return };
    let mut settings = cluster.settings("postgres", "");
    settings.host = cluster.directory.to_str().expect("a path in UTF-8").to_owned();
    settings.sslmode = SslMode::VerifyFull;
    assert!(!is_encrypted(&settings).await.expect("connected"));
    settings.port += 1;
    let fault = is_encrypted(&settings).await.expect_err("no such socket");
    assert_eq!(fault.code(), Code::SourceUnreachable);
    assert!(fault.message().contains(".s.PGSQL."), "{fault}");
}

#[tokio::test]
async fn client_certificates_are_presented() {
    let Some(cluster) = cluster("client_certificates").await else { return };
    let mut settings = cluster.settings("by_cert", "");
    settings.sslmode = SslMode::VerifyFull;
    settings.sslrootcert = Some(cluster.directory.join("ca.pem"));
    let fault = is_encrypted(&settings).await.expect_err("no certificate");
    assert_eq!(fault.code(), Code::SourceAuthentication);
    settings.sslcert = Some(cluster.directory.join("client.pem"));
    let fault = is_encrypted(&settings).await.expect_err("no key");
    assert_eq!(fault.code(), Code::SourceTls);
    settings.sslkey = Some(cluster.directory.join("client.key"));
    assert!(is_encrypted(&settings).await.expect("authenticated"));
    // Signed by an authority that the server does not know.
    settings.sslcert = Some(cluster.directory.join("self_signed.pem"));
    settings.sslkey = Some(cluster.directory.join("self_signed.key"));
    let fault = is_encrypted(&settings).await.expect_err("unknown authority");
    assert_eq!(fault.code(), Code::SourceTls, "{fault}");
}
