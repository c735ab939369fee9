//! How a registry is reached, typed.

use std::fmt;
use std::time::Duration;

use super::SubjectNaming;
use crate::config::Secret;
use crate::error::{Code, Fault};

/// How a registry is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its addresses, tried in order.
    pub addresses: Vec<Address>,
    /// Who asks.
    pub authentication: Authentication,
    /// How subjects are named.
    pub naming: SubjectNaming,
    /// How the id of a schema is found.
    pub lookup: Lookup,
    /// Limit on one request to one address, connecting included.
    pub request_timeout: Duration,
    /// For how long a registry that does not answer is asked again; `None`: for ever.
    pub retry_for: Option<Duration>,
    /// The pause after the first failed attempt; the pauses double.
    pub first_delay: Duration,
    /// The longest pause between two attempts.
    pub longest_delay: Duration,
}

impl Settings {
    /// The defaults for these addresses: subjects named after topics, schemas registered, 30 s for
    /// a request, 5 minutes of attempts, pauses of 200 ms to 60 s.
    pub const fn new(addresses: Vec<Address>, authentication: Authentication) -> Self {
        Self {
            addresses,
            authentication,
            naming: SubjectNaming::Topic,
            lookup: Lookup::Register,
            request_timeout: Duration::from_secs(30),
            retry_for: Some(Duration::from_secs(300)),
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(60),
        }
    }
}

/// How the id of a schema is found under its subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// It is registered if the registry does not have it (`auto.register.schemas=true`).
    #[default]
    Register,
    /// The registry must have this very schema (`auto.register.schemas=false`).
    Exact,
    /// The subject's latest version stands for it, if bytes mean the same by both
    /// (`use.latest.version=true`).
    Latest,
}

/// How the registry learns who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authentication {
    /// By the user and password in each address, if it has them (`URL`).
    #[default]
    Address,
    /// By this user and password, whatever the addresses say (`USER_INFO`).
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// By a token.
    Bearer(Secret),
}

/// One address of a registry. Prints without user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    scheme: &'static str,
    user_info: Option<Secret>,
    rest: String,
}

impl Address {
    /// Reads `http(s)://[user:password@]host[:port][/path]`.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`], without the address, for it may hold a password.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let invalid =
            |what: &str| Code::ConfigInvalid.fault(format!("schema.registry.url: {what}"));
        let (scheme, rest) = ["http://", "https://"]
            .into_iter()
            .find_map(|scheme| text.trim().strip_prefix(scheme).map(|rest| (scheme, rest)))
            .ok_or_else(|| invalid("an address begins with http:// or https://"))?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        // A password may hold an at sign, a host cannot.
        let (user_info, host) = match authority.rsplit_once('@') {
            Some((user_info, host)) => (Some(Secret::new(user_info)), host),
            None => (None, authority),
        };
        if host.is_empty() || host.starts_with(':') {
            return Err(invalid("an address has no host"));
        }
        if rest.contains(['?', '#']) || rest.contains(char::is_whitespace) {
            return Err(invalid("an address has neither query, fragment nor white space"));
        }
        Ok(Self { scheme, user_info, rest: format!("{host}{}", path.trim_end_matches('/')) })
    }

    /// The address for the client: with user and password only if `authentication` takes them
    /// from here.
    pub(super) fn reveal(&self, authentication: &Authentication) -> String {
        match (&self.user_info, authentication) {
            (Some(user_info), Authentication::Address) => {
                format!("{}{}@{}", self.scheme, user_info.reveal(), self.rest)
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scheme, self.rest)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str, revealed: &str) {
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), shown);
        assert_eq!(format!("{address:?}"), format!("Address({shown})"));
        assert_eq!(address.reveal(&Authentication::Address), revealed);
        assert_eq!(address.reveal(&Authentication::Bearer(Secret::new("t"))), shown);
    }

    #[test]
    fn an_address_prints_without_its_password() {
        check("http://sr:8081", "http://sr:8081", "http://sr:8081");
        check(" https://sr/path// ", "https://sr/path", "https://sr/path");
        check("http://u:p%40@sr:1/x", "http://sr:1/x", "http://u:p%40@sr:1/x");
        check("http://u:p@ss@sr", "http://sr", "http://u:p@ss@sr");
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_it() {
        for text in
            ["", "sr:8081", "ftp://sr", "http://", "http://u:secret@", "http://:80", "http://a?b"]
        {
            let fault = Address::parse(text).unwrap_err();
            assert_eq!(fault.code(), Code::ConfigInvalid);
            assert!(!fault.to_string().contains("secret"), "{fault}");
        }
    }
}
