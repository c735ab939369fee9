//! What the TLS layer needs from an X.509 certificate and rustls does not tell.
//!
//! Reads the few DER elements that channel binding (RFC 5929) and the server's own naming habits
//! ask for. Knows no sockets and judges nothing: trust is `tls`'s matter.
//! **Invariant:** malformed input yields `None`, never a panic.

use ring::digest::{self, Algorithm};

const INTEGER: u8 = 0x02;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT Version`.
const VERSION: u8 = 0xa0;
/// `[3] EXPLICIT Extensions`.
const EXTENSIONS: u8 = 0xa3;
/// `GeneralName.dNSName` and `GeneralName.iPAddress` (RFC 5280, 4.2.1.6).
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// id-ce-subjectAltName, 2.5.29.17.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// pkcs-1, 1.2.840.113549.1.1.
const PKCS_1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// ansi-X9-62 signatures, 1.2.840.10045.4.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// Elements in distinguished encoding, one after the other.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element's tag and content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            // Four bytes hold every length that a handshake message can carry.
            if count == 0 || count > 4 {
                return None;
            }
            let (digits, rest) = rest.split_at_checked(count)?;
            (digits.iter().fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The next element's content, if it has the expected tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// Skips the next element if it has this tag.
    fn skip_optional(&mut self, tag: u8) -> Option<()> {
        if self.0.first() == Some(&tag) {
            self.next()?;
        }
        Some(())
    }
}

/// The parts of a certificate that are of use here.
pub(super) struct Certificate<'a> {
    der: &'a [u8],
    signature_algorithm: &'a [u8],
    validity: &'a [u8],
    subject: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Finds the parts.
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut certificate = Der(Der(der).expect(SEQUENCE)?);
        let mut body = Der(certificate.expect(SEQUENCE)?);
        let signature_algorithm = Der(certificate.expect(SEQUENCE)?).expect(OBJECT_ID)?;
        body.skip_optional(VERSION)?;
        body.expect(INTEGER)?;
        body.expect(SEQUENCE)?; // the algorithm once more
        body.expect(SEQUENCE)?; // issuer
        let validity = body.expect(SEQUENCE)?;
        let subject = body.expect(SEQUENCE)?;
        body.expect(SEQUENCE)?; // public key
        let mut extensions: &[u8] = &[];
        while let Some((tag, content)) = body.next() {
            if tag == EXTENSIONS {
                extensions = Der(content).expect(SEQUENCE)?;
            }
        }
        Some(Self { der, signature_algorithm, validity, subject, extensions })
    }

    /// The certificate's hash for `tls-server-end-point`, by RFC 5929, 4.1: the hash of the
    /// signature's algorithm, SHA-256 in place of MD5 and SHA-1. `None` where that is not
    /// defined (Ed25519) or not agreed upon by all servers (RSASSA-PSS): no binding then.
    pub(super) fn end_point_digest(&self) -> Option<Vec<u8>> {
        let algorithm = end_point_algorithm(self.signature_algorithm)?;
        Some(digest::digest(algorithm, self.der).as_ref().to_vec())
    }

    /// The subject's first common name.
    pub(super) fn common_name(&self) -> Option<&'a str> {
        let mut names = Der(self.subject);
        while let Some(set) = names.expect(SET) {
            let mut attribute = Der(Der(set).expect(SEQUENCE)?);
            if attribute.expect(OBJECT_ID)? == COMMON_NAME {
                return std::str::from_utf8(attribute.next()?.1).ok();
            }
        }
        None
    }

    /// Whether the certificate names hosts or addresses as alternative names. If it does, its
    /// common name is not a host's name (RFC 6125, 6.4.4).
    pub(super) fn has_alternative_names(&self) -> bool {
        let mut extensions = Der(self.extensions);
        while let Some(extension) = extensions.expect(SEQUENCE) {
            let mut parts = Der(extension);
            if parts.expect(OBJECT_ID) != Some(SUBJECT_ALT_NAME) {
                continue;
            }
            // Between the id and the octet string may stand the critical flag.
            while let Some((_, content)) = parts.next() {
                let mut names = Der(Der(content).expect(SEQUENCE).unwrap_or_default());
                while let Some((tag, _)) = names.next() {
                    if matches!(tag, DNS_NAME | IP_ADDRESS) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Whether the certificate is valid at a time in seconds since 1970.
    pub(super) fn is_valid_at(&self, seconds: u64) -> bool {
        let mut times = Der(self.validity);
        let bounds = (times.next().and_then(unix_seconds), times.next().and_then(unix_seconds));
        let (Some(from), Some(until)) = bounds else { return false };
        i64::try_from(seconds).is_ok_and(|now| (from..=until).contains(&now))
    }
}

fn end_point_algorithm(signature_algorithm: &[u8]) -> Option<&'static Algorithm> {
    if let Some([kind]) = signature_algorithm.strip_prefix(PKCS_1) {
        // md5WithRSA 4, sha1WithRSA 5, sha256WithRSA 11, sha384WithRSA 12, sha512WithRSA 13
        return match kind {
            4 | 5 | 11 => Some(&digest::SHA256),
            12 => Some(&digest::SHA384),
            13 => Some(&digest::SHA512),
            _ => None,
        };
    }
    // ecdsa-with-SHA1 is .1, the SHA-2 family .3.2 to .3.4
    match signature_algorithm.strip_prefix(ECDSA)? {
        [1] | [3, 2] => Some(&digest::SHA256),
        [3, 3] => Some(&digest::SHA384),
        [3, 4] => Some(&digest::SHA512),
        _ => None,
    }
}

/// Reads `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, the two forms that RFC 5280, 4.1.2.5 allows.
fn unix_seconds((tag, text): (u8, &[u8])) -> Option<i64> {
    let digits: Vec<i64> = text
        .strip_suffix(b"Z")?
        .iter()
        .map(|byte| byte.is_ascii_digit().then(|| i64::from(byte - b'0')))
        .collect::<Option<_>>()?;
    let two = |at: usize| Some(digits.get(at)? * 10 + digits.get(at + 1)?);
    let (year, at) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let short = two(0)?;
            (if short < 50 { 2000 + short } else { 1900 + short }, 2)
        }
        (GENERALIZED_TIME, 14) => (two(0)? * 100 + two(2)?, 4),
        _ => return None,
    };
    let (month, day) = (two(at)?, two(at + 2)?);
    let seconds = two(at + 4)? * 3600 + two(at + 6)? * 60 + two(at + 8)?;
    Some(days_from_epoch(year, month, day) * 86_400 + seconds)
}

/// Days since 1970-01-01 in the Gregorian calendar, years counted from March so that the leap
/// day ends them.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_time(tag: u8, text: &str, expect: Option<i64>) {
        assert_eq!(unix_seconds((tag, text.as_bytes())), expect);
    }

    #[test]
    fn both_forms_of_time_are_read() {
        check_time(UTC_TIME, "700101000000Z", Some(0));
        check_time(UTC_TIME, "491231235959Z", Some(2_524_607_999));
        check_time(UTC_TIME, "500101000000Z", Some(-631_152_000));
        check_time(GENERALIZED_TIME, "20240229120000Z", Some(1_709_208_000));
        check_time(GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000));
        check_time(UTC_TIME, "7001010000Z", None);
        check_time(UTC_TIME, "70010100000xZ", None);
        check_time(GENERALIZED_TIME, "20240229120000", None);
    }

    #[track_caller]
    fn check_algorithm(oid: &[u8], expect: Option<&'static Algorithm>) {
        assert_eq!(end_point_algorithm(oid), expect);
    }

    #[test]
    fn digest_follows_the_signature_and_never_is_weaker_than_sha256() {
        let rsa = |kind| [PKCS_1, &[kind]].concat();
        check_algorithm(&rsa(4), Some(&digest::SHA256));
        check_algorithm(&rsa(5), Some(&digest::SHA256));
        check_algorithm(&rsa(11), Some(&digest::SHA256));
        check_algorithm(&rsa(12), Some(&digest::SHA384));
        check_algorithm(&rsa(13), Some(&digest::SHA512));
        check_algorithm(&rsa(10), None);
        check_algorithm(&[ECDSA, &[1]].concat(), Some(&digest::SHA256));
        check_algorithm(&[ECDSA, &[3, 2]].concat(), Some(&digest::SHA256));
        check_algorithm(&[ECDSA, &[3, 3]].concat(), Some(&digest::SHA384));
        check_algorithm(&[ECDSA, &[3, 4]].concat(), Some(&digest::SHA512));
        // Ed25519 has no hash of its own.
        check_algorithm(&[0x2b, 0x65, 0x70], None);
    }

    #[test]
    fn lengths_beyond_the_input_are_refused() {
        assert!(Der(&[0x30, 0x05, 0x00]).next().is_none());
        assert!(Der(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).next().is_none());
        assert!(Der(&[0x30, 0x80, 0x00]).next().is_none());
        assert!(Certificate::parse(&[0x30, 0x00]).is_none());
        assert!(Certificate::parse(&[]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            if let Some(certificate) = Certificate::parse(&bytes) {
                certificate.common_name();
                certificate.has_alternative_names();
                certificate.is_valid_at(0);
            }
        }
    }
}
