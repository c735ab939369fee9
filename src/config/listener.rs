//! An address on which the REST endpoint listens.

use std::fmt;

use super::key::Rejection;

/// `http://host:port`; without a host all addresses of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The host, without the brackets of an IPv6 address; empty for all addresses.
    pub host: String,
    /// The port; 0 leaves the choice to the system.
    pub port: u16,
}

impl Listener {
    /// Reads an address.
    ///
    /// # Errors
    /// It is not of the form, or asks for encryption.
    pub fn parse(text: &str) -> Result<Self, Rejection> {
        let malformed =
            || Rejection::invalid(format!("{text} is not of the form http://host:port"));
        let (scheme, rest) = text.split_once("://").ok_or_else(malformed)?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => {
                return Err(Rejection::unsupported(
                    "encrypted listeners are not built; put a proxy in front",
                ));
            }
            _ => return Err(malformed()),
        }
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(malformed)?;
        let port = port.parse().map_err(|_not_a_port: std::num::ParseIntError| malformed())?;
        let unbracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = unbracketed.unwrap_or(host);
        if host.contains(['/', '@', '[', ']']) || unbracketed.is_none() && host.contains(':') {
            return Err(malformed());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "http://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "http://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(&str, u16)>) {
        let listener = Listener::parse(text).ok();
        assert_eq!(listener.as_ref().map(|l| (l.host.as_str(), l.port)), expect);
    }

    #[test]
    fn addresses() {
        check("http://:8083", Some(("", 8083)));
        check("HTTP://localhost:8083/", Some(("localhost", 8083)));
        check("http://[::1]:0", Some(("::1", 0)));
        check("http://::1:8083", None);
        check("http://localhost", None);
        check("localhost:8083", None);
        check("http://a/b:1", None);
        check("http://:99999", None);
        check("https://:8443", None);
    }

    #[test]
    fn addresses_read_back() {
        for text in ["http://:8083", "http://[::1]:1", "http://host:2"] {
            assert_eq!(Listener::parse(text).map(|l| l.to_string()), Ok(text.to_owned()));
        }
    }
}
