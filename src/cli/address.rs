//! A database's address on the command line, as libpq writes it.
//!
//! Knows the parts that a command needs; what else such an address can hold is refused by name.
//! **Invariant:** a password is never part of a message.

use std::time::Duration;

use crate::config::Secret;
use crate::error::{Code, Fault};
use crate::sources::postgres::{ConnectionSettings, SslMode};

const FORM: &str = "postgres://user[:password]@host[:port]/database[?sslmode=…]";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads an address. What it does not say (certificates) is taken from `base`.
///
/// # Errors
/// `CONFIG-INVALID`: it is not of the form.
pub(super) fn parse_address(
    text: &str,
    base: Option<ConnectionSettings>,
) -> Result<ConnectionSettings, Fault> {
    let malformed = |what: &str| {
        Code::ConfigInvalid.fault(format!("--connection: {what}")).hint(format!("Write {FORM}."))
    };
    let rest = text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
        .ok_or_else(|| malformed("it does not begin with postgres://"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, host) = authority.rsplit_once('@').ok_or_else(|| malformed("it has no user"))?;
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let (host, port) = split_port(host).ok_or_else(|| malformed("its port is none"))?;
    let decode =
        |part: &str| decoded(part).ok_or_else(|| malformed("it has a malformed % sequence"));
    let (host, user) = (decode(host)?, decode(user)?);
    let database =
        Some(decode(database)?).filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
    if user.is_empty() || host.is_empty() {
        return Err(malformed("it has no user or no host"));
    }
    let password = match password {
        Some(password) => decode(password)?,
        None => environment_password(),
    };
    let sslmode = match query.split_once('=') {
        None if query.is_empty() => base.as_ref().map_or(SslMode::Prefer, |base| base.sslmode),
        Some(("sslmode", mode)) => sslmode(mode).ok_or_else(|| malformed("its sslmode is none"))?,
        _ => return Err(malformed("it can say sslmode only behind '?'")),
    };
    let certificates = base.map(|base| (base.sslrootcert, base.sslcert, base.sslkey));
    // a client certificate is the connector's role's
    let sslrootcert = certificates.and_then(|(root, ..)| root);
    Ok(ConnectionSettings {
        host,
        port,
        user,
        password: Secret::new(password),
        database,
        sslmode,
        sslrootcert,
        sslcert: None,
        sslkey: None,
        tcp_keepalive: true,
        connect_timeout: TIMEOUT,
        query_timeout: TIMEOUT,
        application_name: String::new(),
    })
}

fn split_port(host: &str) -> Option<(&str, u16)> {
    if let Some(bracketed) = host.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, port.parse().ok()?)),
            None => rest.is_empty().then_some((host, 5432)),
        };
    }
    match host.rsplit_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((host, 5432)),
    }
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn sslmode(text: &str) -> Option<SslMode> {
    Some(match text {
        "disable" => SslMode::Disable,
        "allow" => SslMode::Allow,
        "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        _ => return None,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a password among the arguments is seen by every user of the machine; libpq's variable is not"
)]
fn environment_password() -> String {
    std::env::var("PGPASSWORD").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: (&str, u16, &str, &str)) {
        let settings = parse_address(text, None).unwrap();
        let found = (
            settings.host.as_str(),
            settings.port,
            settings.user.as_str(),
            settings.database.as_str(),
        );
        assert_eq!(found, expect);
    }

    #[test]
    fn addresses_are_read_as_libpq_does() {
        check("postgres://a@h/d", ("h", 5432, "a", "d"));
        check("postgresql://a:b%40c@h:99/d?sslmode=require", ("h", 99, "a", "d"));
        check("postgres://a@[::1]:7/d", ("::1", 7, "a", "d"));
        check("postgres://a@%2Ftmp/", ("/tmp", 5432, "a", "a"));
    }

    #[track_caller]
    fn check_refused(text: &str) {
        let fault = parse_address(text, None).unwrap_err();
        assert_eq!(fault.code(), Code::ConfigInvalid);
        assert!(!fault.to_string().contains("geheim"), "{fault}");
    }

    #[test]
    fn what_is_not_understood_is_refused_without_its_password() {
        check_refused("host=h user=a password=geheim");
        check_refused("postgres://h/d");
        check_refused("postgres://a:geheim@h:port/d");
        check_refused("postgres://a:geheim%4@h/d");
        check_refused("postgres://a:geheim@h/d?sslmode=no");
        check_refused("postgres://a:geheim@h/d?target=x");
        check_refused("postgres://@h/d");
    }
}
